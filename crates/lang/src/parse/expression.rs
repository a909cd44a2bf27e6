//! Sample expressions: `fetch(args),converter(args)`, and converters as words of their own.

use super::arguments::{self, Read, Wrong};
use super::did_you_mean;
use super::text::{Text, printable};
use crate::arg::Arg;
use crate::entry::{CheckFn, FetchDef};
use crate::expr::{Conv, Expr, Fetch, type_after};
use crate::names::{Missing, Names, PLACE};
use crate::places::Place;
use crate::registry::Registry;
use crate::words::{Fault, Words};

/// Where an expression stands, which decides how it ends and how its faults read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// Words of a rule.
    Words,
    /// The criterion of an ACL.
    Acl,
    /// Between brackets of a format.
    Format,
}

/// What is known while one expression is read.
pub(super) struct Reader<'r> {
    pub(super) reg: &'r Registry,
    pub(super) names: &'r mut dyn Names,
    pub(super) around: Around,
    /// The fetch was found through its ACL keyword.
    pub(super) keyword: Option<String>,
    /// Everything of the word, for messages.
    pub(super) whole: String,
}

impl Expr {
    /// Reads an expression from words: the fetch in the first, converters behind commas or as words.
    ///
    /// # Errors
    /// In HAProxy's words: unknown fetches and converters, wrong arguments, types that don't fit, data
    /// that does not exist at `place`.
    pub fn parse(
        words: &mut Words<'_>,
        place: Place,
        reg: &Registry,
        names: &mut dyn Names,
    ) -> Result<Expr, Fault> {
        let at = words.position();
        let whole = words.peek().map(String::from_utf8_lossy);
        let expr = Expr::parse_anywhere(words, reg, names)?;
        in_place(expr.fetch.def, whole.as_deref(), place).map_err(|f| f.at(at))?;
        if expr.fetch.def.reads_request() && place.is_before_response() {
            names.looks_at_http();
        }
        Ok(expr)
    }

    /// The same where nobody knows yet where the expression will stand: whoever does looks at the places of
    /// its fetch.
    ///
    /// # Errors
    /// As [`Expr::parse`], but of places.
    pub fn parse_anywhere(
        words: &mut Words<'_>,
        reg: &Registry,
        names: &mut dyn Names,
    ) -> Result<Expr, Fault> {
        let at = words.position();
        let Some(word) = words.take() else {
            return Err(Fault::new("missing fetch method").at(at.saturating_sub(1)));
        };
        let mut reader = Reader { reg, names, around: Around::Words, keyword: None, whole: printable(word) };
        let mut text = Text::new(word, 0);
        let (fetch, mut convs, mut whole) = reader.parts(&mut text).map_err(|f| f.at(at))?;
        reader.converter_words(words, &fetch, &mut convs, &mut whole)?;
        Ok(Expr::new(fetch, convs, &whole))
    }
}

/// Adds what an entry of an extension does, where the entry is one, behind all arguments.
fn with_body(args: Box<[Arg]>, body: Option<Arg>) -> Box<[Arg]> {
    match body {
        Some(body) => args.into_iter().chain([body]).collect(),
        None => args,
    }
}

/// Refuses a fetch whose data does not exist at a place. HAProxy names the whole word in which it stands.
fn in_place(def: &FetchDef, whole: Option<&str>, place: Place) -> Result<(), Fault> {
    if def.places.has(place) {
        return Ok(());
    }
    Err(Fault::new(format!(
        "fetch method '{}' extracts information from '{}', none of which is available here",
        whole.unwrap_or(def.name),
        def.places.source()
    )))
}

impl Reader<'_> {
    /// Reads the criterion of an ACL from `text`. Words behind it that are converters belong to it, unless it
    /// is one of the keywords that ACLs have of their own. HAProxy applies them and takes them for patterns
    /// as well, so they are not taken from `behind`.
    pub(super) fn criterion(&mut self, text: &mut Text<'_>, behind: &Words<'_>) -> Result<Expr, Fault> {
        let (fetch, mut convs, mut whole) = self.parts(text)?;
        if self.keyword.is_none() {
            self.converter_words(&mut behind.clone(), &fetch, &mut convs, &mut whole)?;
        }
        Ok(Expr::new(fetch, convs, &whole))
    }

    /// Takes the words that begin like a converter.
    fn converter_words(
        &mut self,
        words: &mut Words<'_>,
        fetch: &Fetch,
        convs: &mut Vec<Conv>,
        whole: &mut String,
    ) -> Result<(), Fault> {
        while let Some(next) = words.peek() {
            let at = words.position();
            let name = Text::new(next, 0).keyword();
            if name.is_empty() || self.reg.converter(&name).is_none() {
                break;
            }
            self.converters(&mut Text::new(next, 0), fetch, convs).map_err(|f| f.at(at))?;
            *whole = format!("{whole} {}", printable(next));
            words.take();
        }
        Ok(())
    }

    /// Reads one expression from `text`, as far as it goes.
    pub(super) fn read(&mut self, text: &mut Text<'_>) -> Result<Expr, Fault> {
        let (fetch, convs, whole) = self.parts(text)?;
        Ok(Expr::new(fetch, convs, &whole))
    }

    /// A fetch, the converters behind it, and both as written.
    fn parts(&mut self, text: &mut Text<'_>) -> Result<(Fetch, Vec<Conv>, String), Fault> {
        let from = text.at();
        let name = text.keyword();
        let def_name = self.fetch_name(&name);
        let Some((def, signature)) = self.reg.fetch(&def_name) else { return Err(self.no_fetch(&name)) };
        let read = arguments::read(text, signature, self.names).map_err(|w| self.bad_fetch_args(&name, w))?;
        let place = self.fetch_words(&name);
        let what = format!("fetch method '{name}'");
        let args = self.checked(def.check, read, &what, &place, false)?;
        let args = with_body(args, self.reg.fetch_body(def.name));
        if !matches!(text.peek(), None | Some(b',')) && self.around != Around::Format {
            return Err(self.outside("missing comma after fetch keyword".into(), true));
        }
        let fetch = Fetch { def, args };
        let mut convs = Vec::new();
        if text.peek() == Some(b',') {
            self.converters(text, &fetch, &mut convs)?;
        }
        let whole = printable(text.since(from));
        Ok((fetch, convs, whole))
    }

    /// Reads converters, each behind any number of commas.
    pub(super) fn converters(
        &mut self,
        text: &mut Text<'_>,
        fetch: &Fetch,
        convs: &mut Vec<Conv>,
    ) -> Result<(), Fault> {
        loop {
            let commas = text.take_while(|c| c == b',').len();
            if text.peek().is_none() {
                break;
            }
            let name = text.keyword();
            let Some((def, signature)) = self.reg.converter(&name) else {
                let help = did_you_mean(&name, self.reg.all_converters().iter().map(|d| d.name));
                let fault = self.outside(format!("unknown converter '{name}'"), true);
                return Err(Fault { help, ..fault });
            };
            let _ = commas;
            let read = arguments::read(text, signature, self.names)
                .map_err(|w| self.bad_conv_args(&name, fetch, w))?;
            let from = type_after(fetch.def.out, convs);
            if !from.casts_to(def.from) {
                return Err(self.outside(format!("converter '{name}' cannot be applied"), true));
            }
            let place = format!("conversion keyword '{name}' for {}", self.fetch_words(fetch.def.name));
            let args = self.checked(def.check, read, &format!("converter '{name}'"), &place, true)?;
            let args = with_body(args, self.reg.converter_body(def.name));
            convs.push(Conv { def, args });
            match text.peek() {
                Some(b',') => {}
                None => break,
                Some(_) if self.around == Around::Format => break,
                Some(_) => return Err(self.outside(format!("missing comma after converter '{name}'"), true)),
            }
        }
        Ok(())
    }

    fn fetch_name(&mut self, name: &str) -> String {
        match self.reg.acl(name) {
            Some(acl) if self.around == Around::Acl => {
                self.keyword = Some(name.into());
                acl.fetch.into()
            }
            _ => name.into(),
        }
    }

    fn no_fetch(&self, name: &str) -> Fault {
        let text = if name.is_empty() {
            "missing fetch method".into()
        } else {
            format!("unknown fetch method '{name}'")
        };
        let acls = self.reg.all_acls();
        let all = self.reg.all_fetches();
        let words = all.iter().map(|d| d.name).chain(acls.iter().map(|d| d.name));
        Fault { help: did_you_mean(name, words), ..self.in_acl(text) }
    }

    fn checked(
        &mut self,
        check: Option<CheckFn>,
        read: Read,
        what: &str,
        place: &str,
        conv: bool,
    ) -> Result<Box<[Arg]>, Fault> {
        let Read { mut args, missing } = read;
        // What is not there can't be looked at.
        let check = check.filter(|_| missing.is_empty());
        for (i, fault) in missing {
            let (before, behind) = fault.text.split_once(PLACE).unwrap_or((fault.text.as_str(), ""));
            let text = format!("{} in arg {} of {place}", before.trim_end(), i + 1);
            let acl = self.around == Around::Acl;
            self.names.miss(Missing::Argument { text, behind: behind.into(), acl });
        }
        if let Some(check) = check {
            check(&mut args, self.names).map_err(|f| {
                let outer = self.outside(format!("invalid args in {what} : {}", f.text), conv);
                Fault { help: f.help, ..outer }
            })?;
        }
        Ok(args.into())
    }

    /// How messages about names call the fetch.
    fn fetch_words(&self, name: &str) -> String {
        match self.around {
            Around::Acl => format!("ACL keyword '{}'", self.keyword.as_deref().unwrap_or(name)),
            _ => format!("sample fetch keyword '{name}'"),
        }
    }

    fn bad_fetch_args(&self, name: &str, wrong: Wrong) -> Fault {
        match wrong {
            Wrong::Text(_, what) => match &self.keyword {
                Some(word) => Fault::new(format!("ACL keyword '{word}' : {what}")),
                None => self.in_acl(format!("fetch method '{name}' : {what}")),
            },
            Wrong::Name(i, fault) => {
                let text =
                    format!("{} referenced in arg {} of sample fetch keyword '{name}'", fault.text, i + 1);
                Fault { text, ..fault }
            }
        }
    }

    fn bad_conv_args(&self, name: &str, fetch: &Fetch, wrong: Wrong) -> Fault {
        match wrong {
            Wrong::Text(i, what) => {
                self.outside(format!("invalid arg {} in converter '{name}' : {what}", i + 1), true)
            }
            Wrong::Name(i, fault) => {
                let text = format!(
                    "{} referenced in arg {} of conversion keyword '{name}' for sample fetch keyword '{}'",
                    fault.text,
                    i + 1,
                    fetch.def.name
                );
                Fault { text, ..fault }
            }
        }
    }

    /// Names the ACL keyword in front, or the whole criterion behind.
    fn outside(&self, text: String, conv: bool) -> Fault {
        match &self.keyword {
            Some(word) if conv => Fault::new(format!("ACL keyword '{word}' : {text}")),
            _ => self.in_acl(text),
        }
    }

    fn in_acl(&self, text: String) -> Fault {
        match self.around {
            Around::Acl => Fault::new(format!("{text} in ACL expression '{}'", self.whole)),
            _ => Fault::new(text),
        }
    }
}
