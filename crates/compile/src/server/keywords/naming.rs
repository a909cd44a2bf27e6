//! Words about the name of a server, which resolvers keep fresh.

use std::net::IpAddr;

use crate::draft::{Draft, Named, ServerDraft};
use crate::statement::{Statement, Step};

/// The most networks of `resolve-net`.
const NETWORKS: usize = 5;

/// `resolvers <section>`; whether there is one shows later.
pub(super) fn resolvers(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let span = s.eaten().span();
    let name = s.args.next().map_or("", syntax::Word::text);
    v.resolvers = Some(Named { name: name.into(), span });
    Ok(())
}

/// `resolve-prefer ipv4|ipv6`.
pub(super) fn prefer(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    const EXPECTS: &str = "'resolve-prefer' expects either ipv4 or ipv6 as argument.";
    v.naming.prefer_v4 = match s.word(EXPECTS)?.text() {
        "ipv4" => true,
        "ipv6" => false,
        _ => return Err(s.fail(EXPECTS)),
    };
    Ok(())
}

/// `resolve-opts <option>,...`; none is fine.
pub(super) fn options(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let Some(word) = s.next() else { return Ok(()) };
    for option in word.text().split(',') {
        match option {
            "allow-dup-ip" => v.naming.allow_dup_ip = true,
            "prevent-dup-ip" => v.naming.allow_dup_ip = false,
            "ignore-weight" => v.naming.ignore_weight = true,
            other => {
                let text = format!(
                    "'resolve-opts' : unknown resolve-opts option '{other}', supported methods are 'allow-dup-ip', 'ignore-weight', and 'prevent-dup-ip'."
                );
                return Err(s.fail(text));
            }
        }
    }
    Ok(())
}

/// `resolve-net <network>,...`.
pub(super) fn net(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'resolve-net' expects a list of networks.")?;
    for text in word.text().split(',') {
        if v.naming.nets.len() >= NETWORKS {
            return Err(s.fail(format!("'resolve-net' exceed {NETWORKS} networks.")));
        }
        let net = network(text).ok_or_else(|| s.fail(format!("'resolve-net' invalid network '{text}'.")))?;
        v.naming.nets.push(net);
    }
    Ok(())
}

/// A network as `<address>[/<length>]`.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, length) = text.split_once('/').map_or((text, None), |(ip, length)| (ip, Some(length)));
    let ip: IpAddr = ip.parse().ok()?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Some(most), |text| text.parse().ok())?;
    (length <= most).then_some((ip, length))
}
