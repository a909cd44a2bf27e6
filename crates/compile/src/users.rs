//! `userlist` sections (manual, section 12.1): users, groups and passwords for `http_auth`.

use std::collections::HashMap;

use syntax::{Diagnostics, Section, Word};

use crate::statement::{LineRef, Statement, Step, Surroundings};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The password: as it is, or as `crypt(3)` has it.
    pub password: Box<str>,
    /// It is in clear (`insecure-password`).
    pub clear: bool,
    /// The groups the user is in.
    pub groups: Vec<Box<str>>,
}

/// The users of one list by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// By name.
    pub users: HashMap<Box<str>, User>,
}

/// Reads one section.
pub(crate) fn section(
    section: &Section,
    index: u32,
    around: &Surroundings<'_>,
    notes: &mut Diagnostics,
) -> Users {
    let mut out = Users::default();
    let mut groups: Vec<(Box<str>, Vec<Box<str>>)> = Vec::new();
    for (number, line) in section.lines.iter().enumerate() {
        let at = LineRef { section: index, line: u32::try_from(number).unwrap_or(u32::MAX) };
        let args = line.cursor();
        let mut s = Statement { line, at, args, notes, around, section: "userlist" };
        let result = match s.keyword() {
            "user" => user(&mut s, &mut out),
            "group" => group(&mut s, &mut groups),
            other => Err(s.fail(format!("unknown keyword '{other}' in 'userlist' section"))),
        };
        if let Err(diagnostic) = result {
            notes.push(diagnostic);
        }
    }
    for (name, members) in groups {
        for member in members {
            match out.users.get_mut(&member) {
                Some(user) => user.groups.push(name.clone()),
                None => notes.alert(
                    section.span(),
                    format!(
                        "userlist '{}': no such user '{member}' specified in group '{name}'",
                        section.name()
                    ),
                ),
            }
        }
    }
    out
}

fn user(s: &mut Statement<'_>, out: &mut Users) -> Step {
    let name = s.word("'user' expects <name> as arguments.")?;
    if out.users.contains_key(name.text()) {
        s.warn(format!("ignoring duplicated user '{name}' in userlist."));
        return Ok(());
    }
    let mut user = User { password: "".into(), clear: false, groups: Vec::new() };
    while let Some(word) = s.next() {
        match word.text() {
            kind @ ("password" | "insecure-password") => {
                user.clear = kind == "insecure-password";
                user.password = s.next().map_or("", Word::text).into();
            }
            "groups" => user.groups = names(s),
            other => {
                let text = format!(
                    "'user' only supports 'password', 'insecure-password' and 'groups' options (got '{other}')."
                );
                return Err(s.fail(text));
            }
        }
    }
    out.users.insert(name.text().into(), user);
    Ok(())
}

fn group(s: &mut Statement<'_>, groups: &mut Vec<(Box<str>, Vec<Box<str>>)>) -> Step {
    let name = s.word("'group' expects <name> as arguments.")?;
    let members = match s.next().map_or("", Word::text) {
        "" => Vec::new(),
        "users" => names(s),
        _ => return Err(s.fail("'group' only supports 'users' option.")),
    };
    groups.push((name.text().into(), members));
    Ok(())
}

fn names(s: &mut Statement<'_>) -> Vec<Box<str>> {
    let list = s.next().map_or("", Word::text);
    list.split(',').filter(|n| !n.is_empty()).map(Into::into).collect()
}
