//! `userlist` sections (manual, section 12.1): users, groups and passwords for `http_auth`.

use lang::fetch::{Hashed, Password, User, Userlist};
use syntax::{Diagnostic, Diagnostics, Section, Word};

use crate::draft::LineRef;
use crate::statement::{Statement, Step, Surroundings, tight};

/// A name's bytes.
type Name = Box<[u8]>;

/// A list while it is read: groups name users and users name groups.
pub(crate) struct Draft<'t> {
    /// The first section of its name.
    section: &'t Section,
    users: Vec<(Name, Option<Password>, Vec<Name>)>,
    groups: Vec<(Name, Vec<Name>)>,
}

/// Reads one section. One whose name is taken adds to the list of that name.
pub(crate) fn section<'t>(
    section: &'t Section,
    index: u32,
    around: &Surroundings<'_>,
    lists: &mut Vec<Draft<'t>>,
    notes: &mut Diagnostics,
) {
    let known = lists.iter().position(|list| list.section.name() == section.name());
    if known.is_some() {
        let text = format!("ignoring duplicated userlist '{}'.", section.name());
        notes.push(tight(Diagnostic::warning(section.header.span(), text)));
    } else {
        lists.push(Draft { section, users: Vec::new(), groups: Vec::new() });
    }
    let last = lists.len() - 1;
    let Some(draft) = lists.get_mut(known.unwrap_or(last)) else { return };
    for (number, line) in section.lines.iter().enumerate() {
        let at = LineRef { section: index, line: u32::try_from(number).unwrap_or(u32::MAX) };
        let args = line.cursor();
        let mut s = Statement { line, at, args, notes, around, section: "userlist" };
        let result = match s.keyword() {
            "user" => user(&mut s, draft),
            "group" => group(&mut s, draft),
            other => Err(s.fail(format!("unknown keyword '{other}' in 'userlist' section"))),
        };
        if let Err(diagnostic) = result {
            notes.push(tight(diagnostic));
        }
    }
}

/// The lists, once all sections are read.
pub(crate) fn finish(lists: Vec<Draft<'_>>, notes: &mut Diagnostics) -> impl Iterator<Item = Userlist> {
    lists.into_iter().map(|list| list.finish(notes))
}

impl Draft<'_> {
    fn finish(mut self, notes: &mut Diagnostics) -> Userlist {
        let section = self.section;
        for (group, members) in &self.groups {
            for member in members {
                match self.users.iter_mut().find(|(name, ..)| name == member) {
                    Some((.., groups)) => groups.push(group.clone()),
                    None => notes.alert(section.span(), missing(section, "user", member, "group", group)),
                }
            }
        }
        for (user, _, groups) in &self.users {
            for group in groups.iter().filter(|g| !self.groups.iter().any(|(name, _)| name == *g)) {
                notes.alert(section.span(), missing(section, "group", group, "user", user));
            }
        }
        let users = self.users.into_iter().map(|(name, password, groups)| User {
            name,
            password,
            groups: groups.into(),
        });
        let groups = self.groups.into_iter().map(|(name, _)| name);
        Userlist { name: section.name().into(), users: users.collect(), groups: groups.collect() }
    }
}

/// Says that a name is taken, so that its line counts for nothing.
fn taken(s: &mut Statement<'_>, what: &str, name: &Word, list: &Section) {
    let text = format!("ignoring duplicated {what} '{name}' in userlist '{}'.", list.name());
    s.notes.push(tight(Diagnostic::warning(name.span(), text)));
}

fn missing(section: &Section, what: &str, name: &[u8], by: &str, owner: &[u8]) -> String {
    let (name, owner) = (String::from_utf8_lossy(name), String::from_utf8_lossy(owner));
    format!("userlist '{}': no such {what} '{name}' specified in {by} '{owner}'", section.name())
}

fn user(s: &mut Statement<'_>, out: &mut Draft<'_>) -> Step {
    let name = s.word("'user' expects <name> as arguments.")?;
    if out.users.iter().any(|(known, ..)| **known == *name.bytes()) {
        taken(s, "user", name, out.section);
        return Ok(());
    }
    let (mut password, mut groups) = (None, Vec::new());
    while let Some(word) = s.next() {
        match word.text() {
            "password" => password = Some(Password::Crypt(Hashed::new(s.next().map_or("", Word::text)))),
            "insecure-password" => {
                password = Some(Password::Plain(s.next().map_or(&b""[..], Word::bytes).into()))
            }
            "groups" => groups = names(s),
            _ => {
                let text = "'user' only supports 'password', 'insecure-password' and 'groups' options.";
                return Err(s.fail(text));
            }
        }
    }
    out.users.push((name.bytes().into(), password, groups));
    Ok(())
}

fn group(s: &mut Statement<'_>, out: &mut Draft<'_>) -> Step {
    let name = s.word("'group' expects <name> as arguments.")?;
    if out.groups.iter().any(|(known, _)| **known == *name.bytes()) {
        taken(s, "group", name, out.section);
        return Ok(());
    }
    let members = match s.next().map_or("", Word::text) {
        "" => Vec::new(),
        "users" => names(s),
        _ => return Err(s.fail("'group' only supports 'users' option.")),
    };
    out.groups.push((name.bytes().into(), members));
    Ok(())
}

fn names(s: &mut Statement<'_>) -> Vec<Box<[u8]>> {
    let list = s.next().map_or(&b""[..], Word::bytes);
    list.split(|b| *b == b',').filter(|n| !n.is_empty()).map(Into::into).collect()
}
