//! A figure, what it means, and the three ways of writing both: text, typed line, JSON.

use std::borrow::Cow;
use std::fmt::Write;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Not meaningful here: left out, or an empty column.
    None,
    /// 32 bits.
    U32(u32),
    /// 64 bits.
    U64(u64),
    /// Signed.
    S32(i32),
    /// With a fraction.
    Flt(f64),
    /// Text.
    Str(Cow<'static, str>),
}

impl From<u32> for Value {
    fn from(n: u32) -> Value {
        Value::U32(n)
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::U64(n)
    }
}

impl From<&'static str> for Value {
    fn from(s: &'static str) -> Value {
        Value::Str(s.into())
    }
}

impl From<Cow<'static, str>> for Value {
    fn from(s: Cow<'static, str>) -> Value {
        Value::Str(s)
    }
}

impl From<String> for Value {
    fn from(s: String) -> Value {
        Value::Str(s.into())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Value {
        v.map_or(Value::None, Into::into)
    }
}

impl Value {
    /// Whether there is something to show.
    pub fn is_some(&self) -> bool {
        *self != Value::None
    }

    /// The name of its type in typed lines.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::None => "",
            Value::U32(_) => "u32",
            Value::U64(_) => "u64",
            Value::S32(_) => "s32",
            Value::Flt(_) => "flt",
            Value::Str(_) => "str",
        }
    }

    /// Appends it as text.
    pub fn text(&self, out: &mut String) {
        let _ = match self {
            Value::None => Ok(()),
            Value::U32(n) => write!(out, "{n}"),
            Value::U64(n) => write!(out, "{n}"),
            Value::S32(n) => write!(out, "{n}"),
            Value::Flt(n) => {
                let text = format!("{n:.6}");
                write!(out, "{}", text.trim_end_matches('0').trim_end_matches('.'))
            }
            Value::Str(s) => write!(out, "{s}"),
        };
    }

    /// It as text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.text(&mut text);
        text
    }

    /// Appends it as a column of CSV (RFC 4180): in quotes if it holds a comma, a quote or a line's end.
    pub fn csv(&self, out: &mut String) {
        match self {
            Value::Str(s) if s.contains([',', '"', '\n', '\r']) => {
                out.push('"');
                out.push_str(&s.replace('"', "\"\""));
                out.push('"');
            }
            other => other.text(out),
        }
    }

    /// Appends `"type":...,"value":...`.
    pub fn json(&self, out: &mut String) {
        let _ = write!(out, "\"type\":\"{}\",\"value\":", self.type_name());
        match self {
            Value::Str(s) => json_string(s, out),
            other => other.text(out),
        }
    }
}

/// Appends a JSON string (RFC 8259).
pub fn json_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' || c == '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The four letters of a typed line: origin, nature, scope, persistence (management manual, 9.2).
pub type Tag = &'static str;

/// Appends the JSON object of the first three letters.
pub fn json_tag(tag: Tag, out: &mut String) {
    let mut letters = tag.chars();
    let mut next = || letters.next().unwrap_or('?');
    let origin = match next() {
        'M' => "Metric",
        'S' => "Status",
        'K' => "Key",
        'C' => "Config",
        'P' => "Product",
        _ => "Unknown",
    };
    let nature = match next() {
        'G' => "Gauge",
        'L' => "Limit",
        'm' => "Min",
        'M' => "Max",
        'R' => "Rate",
        'C' => "Counter",
        'D' => "Duration",
        'A' => "Age",
        'T' => "Time",
        'N' => "Name",
        'O' => "Output",
        'a' => "Avg",
        _ => "Unknown",
    };
    let scope = match next() {
        'C' => "Cluster",
        'P' => "Process",
        'S' => "Service",
        's' => "System",
        _ => "Unknown",
    };
    let _ = write!(out, "\"tags\":{{\"origin\":\"{origin}\",\"nature\":\"{nature}\",\"scope\":\"{scope}\"}}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_its_format() {
        let v = Value::from("a,\"b\"\nc\u{1}".to_owned());
        let mut csv = String::new();
        v.csv(&mut csv);
        assert_eq!(csv, "\"a,\"\"b\"\"\nc\u{1}\"");
        let mut json = String::new();
        v.json(&mut json);
        assert_eq!(json, "\"type\":\"str\",\"value\":\"a,\\\"b\\\"\\nc\\u0001\"");
    }

    #[test]
    fn a_tag_is_spelled_out() {
        let mut out = String::new();
        json_tag("MGP", &mut out);
        assert_eq!(out, "\"tags\":{\"origin\":\"Metric\",\"nature\":\"Gauge\",\"scope\":\"Process\"}");
    }
}
