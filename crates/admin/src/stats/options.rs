//! What is asked of the page behind its URI: `;csv`, `;json`, `;typed`, `;up`, `;no-maint`, `;norefresh`,
//! `;st=CODE`, `scope=TEXT` (configuration manual, `stats uri`; management manual, 9.1).

/// The longest text that `scope=` may look for.
const LONGEST_SCOPE: usize = 20;

/// Which form is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The page.
    #[default]
    Html,
    /// CSV.
    Csv,
    /// A line for each figure.
    Typed,
    /// JSON.
    Json,
    /// The schema of the JSON.
    Schema,
}

/// Forms by their words, of which the first that stands in a target counts. `json-schema` begins like `json`.
const FORMS: [(&str, Form); 4] =
    [("json-schema", Form::Schema), ("json", Form::Json), ("typed", Form::Typed), ("csv", Form::Csv)];

/// What became of an action, as the page reports it after the redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Result {
    /// Done.
    Done,
    /// Nothing was to be done.
    None,
    /// Done for some of the servers.
    Part,
    /// Bad parameters.
    Errp,
    /// Not allowed.
    Deny,
    /// Too much at once.
    Excd,
    /// Anything else.
    Unkn,
}

/// Codes and what they say: a class of the style sheet, and the text.
pub const RESULTS: &[(Result, &str, &str, &str)] = &[
    (Result::Done, "DONE", "active_up", "The action was carried out."),
    (Result::None, "NONE", "active_going_down", "Nothing has changed."),
    (
        Result::Part,
        "PART",
        "active_going_down",
        "The action was carried out for some of the servers only: the others are unknown.",
    ),
    (
        Result::Errp,
        "ERRP",
        "active_down",
        "The action was not carried out: the action, the backend or a server is unknown.",
    ),
    (Result::Deny, "DENY", "active_down", "The action was denied."),
    (Result::Excd, "EXCD", "active_down", "The action was not carried out: too many servers at once."),
    (Result::Unkn, "UNKN", "active_no_check", "Unexpected result."),
];

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Form.
    pub form: Form,
    /// Without servers that are down.
    pub up: bool,
    /// Without servers in maintenance.
    pub no_maint: bool,
    /// Without refresh.
    pub no_refresh: bool,
    /// A message about an action.
    pub result: Option<Result>,
    /// Only proxies with this in their name.
    pub scope: String,
}

impl Options {
    /// Reads what stands behind the page's URI.
    pub fn parse(rest: &str) -> Options {
        let mut o = Options::default();
        let words = || rest.split([';', '?', '&']);
        // A word may go on: `;csvx` is `;csv`.
        let asked = |option: &str| words().any(|word| word.starts_with(option));
        o.form = FORMS.iter().find(|(word, _)| asked(word)).map(|(_, form)| *form).unwrap_or_default();
        (o.up, o.no_maint, o.no_refresh) = (asked("up"), asked("no-maint"), asked("norefresh"));
        words().for_each(|word| o.pair(word));
        o
    }

    fn pair(&mut self, word: &str) {
        if let Some(code) = word.strip_prefix("st=") {
            let known = RESULTS.iter().find(|(_, name, ..)| *name == code);
            self.result = Some(known.map_or(Result::Unkn, |(result, ..)| *result));
        } else if let Some(scope) = word.strip_prefix("scope=") {
            self.scope = decode(scope).chars().take(LONGEST_SCOPE).collect();
        }
    }

    /// What to write behind the page's URI to ask for the same page again.
    pub fn link(&self) -> String {
        let mut out = String::new();
        if let Some(result) = self.result {
            let name = RESULTS.iter().find(|(r, ..)| *r == result).map_or("UNKN", |(_, name, ..)| *name);
            out.push_str(&format!(";st={name}"));
        }
        for (on, word) in [(self.up, ";up"), (self.no_maint, ";no-maint"), (self.no_refresh, ";norefresh")] {
            if on {
                out.push_str(word);
            }
        }
        if !self.scope.is_empty() {
            out.push_str(&format!("?scope={}", encode(&self.scope)));
        }
        out
    }
}

/// Takes `+` and `%XX` out of a word of a form. Bytes that are not UTF-8 become replacement characters.
pub fn decode(word: &str) -> String {
    let mut out = Vec::with_capacity(word.len());
    let mut bytes = word.as_bytes().iter().copied();
    while let Some(b) = bytes.next() {
        let rest = bytes.clone().take(2).collect::<Vec<_>>();
        match (b, rest.as_slice()) {
            (b'+', _) => out.push(b' '),
            (b'%', [hi, lo, ..]) if hi.is_ascii_hexdigit() && lo.is_ascii_hexdigit() => {
                let digit =
                    |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok()).unwrap_or(0);
                out.push(digit(*hi) << 4 | digit(*lo));
                bytes.nth(1);
            }
            _ => out.push(b),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes a text so that it may stand in a URI.
fn encode(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).into() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_behind_semicolons_and_question_marks() {
        let o = Options::parse(";csv;up?scope=b%31;no-maint");
        assert_eq!((o.form, o.up, o.no_maint, o.scope.as_str()), (Form::Csv, true, true, "b1"));
        assert_eq!(Options::parse("?;csv;scope=b1").scope, "b1");
        assert_eq!(Options::parse(";st=DENY").result, Some(Result::Deny));
        assert_eq!(Options::parse(";st=<b>").result, Some(Result::Unkn));
        assert_eq!(Options::parse(";norefresh").link(), ";norefresh");
        assert_eq!(Options::parse("?scope=a%22%0d%0ab").link(), "?scope=a%22%0D%0Ab");
        assert_eq!(Options::parse(&format!("?scope={}", "x".repeat(50))).scope.len(), 20);
    }

    #[test]
    fn words_of_forms_are_decoded() {
        for (word, text) in
            [("a+b", "a b"), ("%233", "#3"), ("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%ff", "\u{fffd}")]
        {
            assert_eq!(decode(word), text);
        }
    }
}
