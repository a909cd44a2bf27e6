//! Network namespaces: the `namespace_list` section, and names on `bind` and `server` lines
//! (network-namespaces.txt).

use base::netns::{self, Namespace};
use program::Program;
use syntax::{Diagnostic, Style, Word};

use crate::statement::{Statement, Step};

/// The namespace of a name, which must be there.
///
/// # Errors
/// It is not.
pub(crate) fn open(word: &Word) -> Result<Namespace, String> {
    let name = word.text();
    let known =
        (!name.is_empty() && base::outside::exists(netns::path_of(name))).then(|| Namespace::named(name));
    known.flatten().ok_or_else(|| format!("Cannot open namespace '{name}'"))
}

/// One line of the section.
pub(crate) fn line(s: &mut Statement<'_>, list: &mut Vec<Namespace>) -> Step {
    if s.keyword() != "namespace" {
        // HAProxy says nothing.
        let text = format!("unknown keyword '{}' in 'namespace_list' section", s.keyword());
        s.args.eat_rest();
        s.warn(text);
        return Ok(());
    }
    let Some(word) = s.args.next() else { return Ok(()) };
    s.args.eat_rest();
    let refuse = |text: String| Diagnostic::alert(word.span(), format!("{text}.")).styled(Style::Plain);
    let namespace = open(word).map_err(refuse)?;
    if list.contains(&namespace) {
        return Err(refuse(format!("Namespace '{word}' is already added")));
    }
    list.push(namespace);
    Ok(())
}

/// All that a program names.
pub(crate) fn named(program: &Program, listed: &[Namespace]) -> Vec<Namespace> {
    let mut all: Vec<Namespace> = listed.to_vec();
    let binds = program.global.cli.iter().chain(program.forwards.iter().flat_map(|f| &f.binds));
    let binds = binds.chain(program.peers.iter().map(|section| &section.bind));
    all.extend(binds.filter_map(|bind| bind.namespace));
    all.extend(program.forwards.iter().flat_map(|f| &f.datagrams).filter_map(|d| d.namespace));
    for proxy in &program.proxies {
        all.extend(proxy.binds.iter().filter_map(|bind| bind.namespace));
        all.extend(proxy.present().filter_map(|server| server.namespace.without_client()));
    }
    let others = program.peers.iter().flat_map(|section| &section.others);
    all.extend(others.filter_map(|other| other.namespace));
    let rings = program.rings.iter().flat_map(|ring| &ring.servers);
    all.extend(rings.filter_map(|server| server.plain.namespace.without_client()));
    all.sort_by_key(|namespace| namespace.index());
    all.dedup();
    all
}
