//! ACLs: what follows the name on an `acl` line, or stands between braces (section 7.1).

use std::borrow::Cow;
use std::sync::Arc;

use pattern::{Compare, Face, Flags, Kind, LiveSet, View};

use super::expression::{Around, Reader};
use super::text::{Text, printable};
use crate::cond::{Acl, Test};
use crate::names::Names;
use crate::registry::Registry;
use crate::sample::Type;
use crate::words::{Fault, Words};

/// One `acl` line.
pub struct AclLine {
    /// The name; `acl` lines of one name add up.
    pub name: Box<str>,
    /// What the line tests.
    pub test: Test,
}

/// The predefined ACLs (section 7.4): names and what an `acl` line would say.
const PREDEFINED: &[(&str, &str)] = &[
    ("FALSE", "always_false"),
    ("HTTP", "req.proto_http"),
    ("HTTP_1.0", "req.ver 1.0"),
    ("HTTP_1.1", "req.ver 1.1"),
    ("HTTP_2.0", "req.ver 2.0"),
    ("HTTP_3.0", "req.ver 3.0"),
    ("HTTP_CONTENT", "req.hdr_val(content-length) gt 0"),
    ("HTTP_URL_ABS", "url_reg ^[^/:]*://"),
    ("HTTP_URL_SLASH", "url_beg /"),
    ("HTTP_URL_STAR", "url *"),
    ("LOCALHOST", "src 127.0.0.1/8 ::1"),
    ("METH_CONNECT", "method CONNECT"),
    ("METH_DELETE", "method DELETE"),
    ("METH_GET", "method GET HEAD"),
    ("METH_HEAD", "method HEAD"),
    ("METH_OPTIONS", "method OPTIONS"),
    ("METH_POST", "method POST"),
    ("METH_PUT", "method PUT"),
    ("METH_TRACE", "method TRACE"),
    ("RDP_COOKIE", "req.rdp_cookie_cnt gt 0"),
    ("REQ_CONTENT", "req.len gt 0"),
    ("TRUE", "always_true"),
    ("WAIT_END", "wait_end"),
];

/// The names of the predefined ACLs.
pub fn predefined_names() -> impl Iterator<Item = &'static str> {
    PREDEFINED.iter().map(|(name, _)| *name)
}

/// The predefined ACLs: the name, and what an `acl` line would say behind it.
pub fn predefined_lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    PREDEFINED.iter().copied()
}

/// A predefined ACL; a resolver of names makes it when the configuration declares none of that name.
pub fn predefined(name: &str, reg: &Registry, names: &mut dyn Names) -> Option<Arc<Acl>> {
    let (_, line) = PREDEFINED.iter().find(|(n, _)| *n == name)?;
    let list: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let test = Test::parse(&mut Words::new(&list), reg, names).ok()?;
    Some(Arc::new(Acl { name: name.into(), tests: Box::new([test]) }))
}

impl Acl {
    /// Reads the words after `acl`: a name, a criterion, flags and patterns.
    ///
    /// # Errors
    /// In HAProxy's words, up to "error detected while parsing ACL 'x' : ".
    pub fn parse_line(
        words: &mut Words<'_>,
        reg: &Registry,
        names: &mut dyn Names,
    ) -> Result<AclLine, Fault> {
        let name = words.expect("missing acl name")?;
        if let Some(c) =
            name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')))
        {
            return Err(Fault::new(format!("character '{c}' is not permitted in acl name '{name}'")).at(0));
        }
        if name.eq_ignore_ascii_case("or") {
            let text = format!(
                "acl name '{name}' will never match. 'or' is used to express a logical disjunction within a condition"
            );
            return Err(Fault::new(text).at(0));
        }
        let test = Test::parse(words, reg, names)
            .map_err(|f| f.within(format_args!("error detected while parsing ACL '{name}'")))?;
        Ok(AclLine { name: name.into(), test })
    }
}

/// What flags and patterns said so far.
struct Patterns {
    kind: Option<Kind>,
    explicit: bool,
    flags: Flags,
    map: bool,
    /// `-u`
    number: Option<u32>,
    views: Vec<View>,
}

impl Test {
    /// Reads a criterion, its flags and patterns, up to the last word.
    ///
    /// # Errors
    /// In HAProxy's words.
    pub fn parse(words: &mut Words<'_>, reg: &Registry, names: &mut dyn Names) -> Result<Test, Fault> {
        let at = words.position();
        let word = words.take().unwrap_or_default();
        let whole = printable(word);
        let mut reader = Reader { reg, names, around: Around::Acl, keyword: None, whole: whole.clone() };
        let expr = reader.criterion(&mut Text::new(word, 0), words).map_err(|f| f.at(at))?;
        let keyword = reader.keyword.clone();
        let def = keyword.as_deref().and_then(|k| reg.acl(k));
        let implied = def.map(|a| a.kind);
        let kind = match implied {
            Some(kind) if expr.convs().is_empty() => Some(kind),
            _ => default_kind(expr.out()),
        };
        let mut state = Patterns {
            kind,
            explicit: false,
            flags: Flags::default(),
            map: false,
            number: None,
            views: Vec::new(),
        };
        let ended = state.flags(words, &expr, names)?;
        let changed = state.explicit || !expr.convs().is_empty();
        if let Some(def) = def.filter(|def| changed && def.loses(state.kind)) {
            let text = format!(
                "original matching method '{}' was overwritten and will not be applied as expected.",
                def.name
            );
            names.warn(text);
        }
        let Some(kind) = state.kind else {
            let text = format!(
                "matching method must be specified first (using '-m') when using a sample fetch of this type ('{}')",
                expr.fetch.def.name
            );
            return Err(Fault::new(text).at(at));
        };
        if words.is_empty() && state.views.is_empty() && kind.takes_patterns() && !ended {
            names.warn(never_matches(&whole));
        }
        let criterion = match &keyword {
            Some(word) if expr.convs().is_empty() => word.as_str(),
            _ => expr.fetch.def.name,
        };
        let set = names.inline(criterion, state.number).map_err(|f| f.at(at))?;
        state.inline(kind, &set, words)?;
        if let Some(check) = expr.fetch.def.patterns {
            // What is matched in another manner than the fetch's own names nothing that it knows of.
            let own = !state.explicit && expr.convs().is_empty();
            let named = if own { state.texts() } else { Vec::new() };
            check(&expr.fetch.args, &named).map_err(|f| f.at(at))?;
        }
        Ok(Test { expr, kind, patterns: state.views.into() })
    }
}

fn never_matches(criterion: &str) -> String {
    format!(
        "parsing acl keyword '{criterion}' :\n  no pattern to match against were provided, so this ACL will never \
         match.\n  If this is what you intended, please add '--' to get rid of this warning.\n  If you intended to \
         match only for existence, please use '-m found'.\n  If you wanted to force an int to match as a bool, please \
         use '-m bool'.\n"
    )
}

impl Patterns {
    /// All patterns, those of files too.
    fn texts(&self) -> Vec<Box<[u8]>> {
        let mut texts = Vec::new();
        for view in &self.views {
            let mut entries = view.set().entries(None);
            while let Some(entry) = entries.advance() {
                texts.push((&*entry.pattern).into());
            }
        }
        texts
    }

    /// Reads flags; whether `--` ended them.
    fn flags(
        &mut self,
        words: &mut Words<'_>,
        expr: &crate::Expr,
        names: &mut dyn Names,
    ) -> Result<bool, Fault> {
        while let Some(flag) = words.peek_str().filter(|w| w.starts_with('-')) {
            let at = words.position();
            words.take();
            match flag {
                "--" => return Ok(true),
                "-i" => self.flags.ignore_case = true,
                "-n" => self.flags.no_names = true,
                "-M" => self.map = true,
                "-u" => {
                    let number = words.take().map(printable).unwrap_or_default();
                    let wrong = || Fault::new("the argument of -u must be an integer").at(at);
                    // Without a number HAProxy takes its own.
                    if !number.is_empty() {
                        self.number = Some(number.parse().map_err(|_| wrong())?);
                    }
                }
                "-m" => self.method(words, expr)?,
                "-f" => self.file(words, names, expr)?,
                _ => {
                    let text = format!(
                        "'{flag}' is not a valid ACL option. Please use '--' before any pattern beginning with a '-'"
                    );
                    return Err(Fault::new(text).at(at));
                }
            }
        }
        Ok(false)
    }

    fn method(&mut self, words: &mut Words<'_>, expr: &crate::Expr) -> Result<(), Fault> {
        let at = words.position();
        let name = words.take().map(printable).unwrap_or_default();
        if self.explicit {
            let text = "only one explicit matching method can be defined with '-m' parameter. if migrating from an old \
                        version, just keep the last one";
            return Err(Fault::new(text).at(at));
        }
        let Some(kind) = Kind::from_name(&name) else {
            let text = format!("unknown matching method '{name}' when parsing ACL expression");
            return Err(Fault::new(text).at(at));
        };
        if !allowed(kind, expr.out()) {
            let text = format!(
                "matching method '{name}' cannot be used with fetch keyword '{}'",
                expr.fetch.def.name
            );
            return Err(Fault::new(text).at(at));
        }
        self.kind = Some(kind);
        self.explicit = true;
        Ok(())
    }

    fn file(
        &mut self,
        words: &mut Words<'_>,
        names: &mut dyn Names,
        expr: &crate::Expr,
    ) -> Result<(), Fault> {
        let at = words.position();
        let name = words.take().map(printable).unwrap_or_default();
        let Some(kind) = self.kind else {
            let text = format!(
                "matching method must be specified first (using '-m') when using a sample fetch of this type ('{}')",
                expr.fetch.def.name
            );
            return Err(Fault::new(text).at(at));
        };
        let view = names.patterns(&name, Face::of_acl(kind, self.flags), self.map).map_err(|f| f.at(at))?;
        self.views.push((*view).clone());
        Ok(())
    }

    /// Reads the patterns that stand on the line.
    fn inline(&mut self, kind: Kind, set: &Arc<LiveSet>, words: &mut Words<'_>) -> Result<(), Fault> {
        let view = set.view(kind, self.flags).map_err(|e| Fault::new(e.text))?;
        set.face(Face::of_acl(kind, self.flags)).map_err(|e| Fault::new(e.text))?;
        self.views.push(view);
        if words.is_empty() || !kind.takes_patterns() || set.is_filled() {
            words.seek(usize::MAX);
            return Ok(());
        }
        let numeric = matches!(kind, Kind::Int | Kind::Len | Kind::Version);
        let (mut patterns, mut places, mut operator) = (Vec::new(), Vec::new(), None);
        while let Some(word) = words.peek() {
            let at = words.position();
            words.take();
            let new = words_operator(word).filter(|_| numeric);
            if new.is_some() {
                operator = new;
                continue;
            }
            patterns.push(apply(kind, operator, word).map_err(|f| f.at(at))?);
            places.push(at);
        }
        set.fill(patterns.iter().map(|p| &**p), self.flags).map_err(|(n, e)| {
            let fault = Fault::new(e.to_string());
            places.get(n as usize).map_or(fault.clone(), |at| fault.at(*at))
        })
    }
}

fn words_operator(word: &[u8]) -> Option<Compare> {
    Compare::from_name(std::str::from_utf8(word).ok()?)
}

/// The pattern that a word stands for behind an operator.
fn apply(kind: Kind, operator: Option<Compare>, word: &[u8]) -> Result<Cow<'_, [u8]>, Fault> {
    let Some(operator) = operator else { return Ok(word.into()) };
    let text = || format!("'{}' is neither a number nor a supported operator", printable(word));
    let range = operator.apply(kind == Kind::Version, word).map_err(|_| Fault::new(text()))?;
    Ok(range.into())
}

/// The method that a type implies.
fn default_kind(out: Type) -> Option<Kind> {
    match out {
        Type::Bool => Some(Kind::Bool),
        Type::Int => Some(Kind::Int),
        Type::Addr | Type::Ipv4 | Type::Ipv6 => Some(Kind::Ip),
        Type::Str => Some(Kind::Str),
        Type::Any | Type::Same | Type::Bin | Type::Method => None,
    }
}

/// Whether a method can look at a type.
fn allowed(kind: Kind, out: Type) -> bool {
    match kind {
        Kind::Bool => out.casts_to(Type::Bool) && !matches!(out, Type::Ipv4),
        Kind::Int => out.casts_to(Type::Int),
        Kind::Ip => out.casts_to(Type::Addr),
        _ => true,
    }
}
