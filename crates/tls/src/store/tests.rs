use std::sync::Arc;

use super::{BindSpec, Ground, Kind, Label, ListLine, Lookup, ServerSpec, Show, Store};
use crate::files::Sources;
use crate::sessions::{Limits, Sessions};
use crate::tests::{Folder, encounter, own};
use crate::words::{Verify, Words};
use crate::{Acceptor, Connector, Failure};

fn bind(store: &Store, shows: Vec<Show>, words: Words) -> Arc<Acceptor> {
    let limits = Limits { cache: 0, lifetime: std::time::Duration::from_secs(300) };
    let spec = BindSpec {
        label: Label::default(),
        words: Arc::new(words),
        shows,
        http: false,
        sessions: Sessions::new(limits, None),
        captures: 0,
    };
    store.bind(spec, None).unwrap().0
}

fn server(store: &Store, verify: Verify, ca: Option<&str>) -> Arc<Connector> {
    let words = Words { ca_file: ca.map(Into::into), ..Words::default() };
    let spec = ServerSpec { words, verify, crt: None, host: None, no_reuse: true };
    store.server(spec).unwrap().0
}

/// The common name that a client sees.
fn seen(connector: &Connector, acceptor: &Arc<Acceptor>, name: &str) -> Result<String, Failure> {
    let peer = encounter(connector, acceptor, name)?.peer;
    let leaf = x509::Certificate::parse(&peer[0]).unwrap();
    Ok(String::from_utf8_lossy(leaf.dns_names().next().unwrap()).into_owned())
}

#[test]
fn a_certificate_changes_for_new_handshakes_when_it_is_committed() {
    let folder = Folder::new("store-commit");
    let (cert, key) = own(&["one.example"]);
    let path = folder.write("a.pem", &format!("{cert}{key}"));
    let store = Store::new(Ground::default());
    let accept = bind(&store, vec![Show::Certificate(Sources::plain(&path), false)], Words::default());
    let connect = server(&store, Verify::None, None);
    store.seal();
    assert_eq!(seen(&connect, &accept, "x").unwrap(), "one.example");
    let (cert, key) = own(&["two.example"]);
    let text = store.set_cert(&path, &format!("{cert}{key}")).unwrap();
    assert_eq!(text, format!("Transaction created for certificate {path}!"));
    assert_eq!(seen(&connect, &accept, "x").unwrap(), "one.example");
    assert_eq!(store.commit_cert(&path).unwrap(), (1, None));
    assert_eq!(seen(&connect, &accept, "x").unwrap(), "two.example");
    // One without its key is refused, and what is shown stays.
    let (other, _) = own(&["three.example"]);
    store.set_cert(&path, &other).unwrap();
    assert!(store.commit_cert(&path).is_err());
    assert_eq!(seen(&connect, &accept, "x").unwrap(), "two.example");
}

#[test]
fn a_server_is_believed_by_the_authorities_of_the_moment() {
    let folder = Folder::new("store-ca");
    let (cert, key) = own(&["one.example"]);
    let path = folder.write("a.pem", &format!("{cert}{key}"));
    let ca = folder.write("ca.pem", &cert);
    let store = Store::new(Ground::default());
    let accept = bind(&store, vec![Show::Certificate(Sources::plain(&path), false)], Words::default());
    let connect = server(&store, Verify::Required, Some(&ca));
    store.seal();
    assert!(seen(&connect, &accept, "one.example").is_ok());
    assert!(store.delete_file(Kind::Ca, &ca).is_err());
    let (stranger, _) = own(&["stranger"]);
    store.set_file(Kind::Ca, &ca, &stranger, false).unwrap();
    assert!(seen(&connect, &accept, "one.example").is_ok());
    assert_eq!(store.commit_file(Kind::Ca, &ca).unwrap(), 1);
    assert!(matches!(seen(&connect, &accept, "one.example"), Err(Failure::Untrusted(_))));
    store.set_file(Kind::Ca, &ca, &cert, true).unwrap();
    store.commit_file(Kind::Ca, &ca).unwrap();
    assert!(seen(&connect, &accept, "one.example").is_ok());
    store.forget_server(&connect);
    assert!(store.delete_file(Kind::Ca, &ca).is_ok());
}

#[test]
fn entries_of_a_list_come_and_go_while_it_is_used() {
    let folder = Folder::new("store-list");
    let mut paths = Vec::new();
    for name in ["one.example", "two.example"] {
        let (cert, key) = own(&[name]);
        paths.push(folder.write(&format!("{name}.pem"), &format!("{cert}{key}")));
    }
    let line = |path: &str, number, filter: &str| ListLine {
        number,
        sources: Sources::plain(path),
        filters: vec![filter.into()],
        ..ListLine::default()
    };
    let store = Store::new(Ground::default());
    store.list("list", vec![line(&paths[0], 1, "first.example")], 1).unwrap();
    let words = Words { strict_sni: Some(true), ..Words::default() };
    let accept = bind(&store, vec![Show::List("list".into())], words);
    let connect = server(&store, Verify::None, None);
    store.seal();
    assert!(matches!(seen(&connect, &accept, "second.example"), Err(Failure::Protocol(_))));
    // Nothing is read from a disk any more.
    assert!(store.add_to_list(Lookup("list"), &line(&paths[1], 1, "second.example")).is_err());
    store.new_cert(&paths[1]).unwrap();
    let text = std::fs::read_to_string(&paths[1]).unwrap();
    store.set_cert(&paths[1], &text).unwrap();
    store.commit_cert(&paths[1]).unwrap();
    let (cert, dots) = store.add_to_list(Lookup("list//"), &line(&paths[1], 1, "second.example")).unwrap();
    assert_eq!((&*cert, dots), (paths[1].as_str(), 1));
    assert_eq!(seen(&connect, &accept, "second.example").unwrap(), "two.example");
    assert_eq!(seen(&connect, &accept, "first.example").unwrap(), "one.example");
    assert!(store.delete_cert(&paths[1]).is_err());
    store.remove_from_list(Lookup("list"), &format!("{}:2", paths[1])).unwrap();
    assert!(seen(&connect, &accept, "second.example").is_err());
    assert!(store.delete_cert(&paths[1]).is_ok());
}

#[test]
fn what_is_said_of_a_certificate_twice_has_to_agree() {
    let folder = Folder::new("store-agree");
    let (cert, key) = own(&["one.example"]);
    let path = folder.write("a.pem", &format!("{cert}{key}"));
    let line = |update| ListLine {
        number: 1,
        sources: Sources { ocsp_update: update, ..Sources::plain(&path) },
        ..ListLine::default()
    };
    let store = Store::new(Ground::default());
    store.list("with", vec![line(Some(true)), line(Some(true))], 2).unwrap();
    let why = store.list("without", vec![line(None)], 1).unwrap_err();
    assert!(
        why.contains(
            "- different parameter 'ocsp-update' : previously 'on' vs 'default' (ocsp-update.mode off)"
        ),
        "{why}"
    );
}
