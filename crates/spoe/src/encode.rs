//! Messages of a NOTIFY frame out of a stream's samples.

use std::sync::Arc;

use lang::Value;
use lang::action::Exec;
use lang::cond::Outcome;
use wire::spop::Data;
use wire::spop::data::text;

use crate::agent::Message;

/// Appends those messages whose condition holds. An argument without a sample is null.
pub fn messages(list: &[Arc<Message>], exec: &Exec<'_>, out: &mut Vec<u8>) {
    let env = exec.env();
    for message in list {
        if message.condition.as_ref().is_some_and(|condition| condition.holds(&env) != Outcome::Yes) {
            continue;
        }
        text(out, &message.name);
        out.push(u8::try_from(message.args.len()).unwrap_or(u8::MAX));
        for (name, expr) in message.args.iter().take(usize::from(u8::MAX)) {
            text(out, name);
            data(expr.eval(&env).ok()).write(out);
        }
    }
}

fn data(value: Option<Value<'_>>) -> Data<'_> {
    match value {
        None => Data::Null,
        Some(Value::Bool(set)) => Data::Bool(set),
        Some(Value::Int(n)) => Data::Int64(n),
        Some(Value::Ipv4(address)) => Data::Ipv4(address),
        Some(Value::Ipv6(address)) => Data::Ipv6(address),
        Some(Value::Str(bytes) | Value::Method(bytes)) => Data::Text(bytes),
        Some(Value::Bin(bytes)) => Data::Binary(bytes),
    }
}
