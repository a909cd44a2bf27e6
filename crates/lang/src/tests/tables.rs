//! What polices the tables.

use crate::registry::Sets;
use crate::testing::Stage;

const SETS: [Sets; 7] = [
    Sets::TCP_CONN,
    Sets::TCP_SESS,
    Sets::TCP_REQ,
    Sets::TCP_RES,
    Sets::HTTP_REQ,
    Sets::HTTP_RES,
    Sets::HTTP_AFTER,
];

#[test]
fn every_fetch_is_documented_and_its_example_compiles() {
    let mut stage = Stage::new();
    for def in stage.reg.all_fetches() {
        assert!(!def.doc.is_empty(), "{}", def.name);
        assert!(def.example.starts_with(def.name), "{}: {}", def.name, def.example);
        let list = [def.example.as_bytes()];
        let place = crate::places::Place::FrontConn;
        let known = (0..crate::places::COUNT).any(|bit| def.places.0 & (1 << bit) != 0);
        assert!(known, "{} exists nowhere", def.name);
        let reg = &stage.reg;
        let parsed = crate::Expr::parse(&mut crate::Words::new(&list), place, reg, &mut stage.names);
        if let Err(fault) = parsed {
            assert!(fault.text.contains("none of which is available here"), "{}: {fault}", def.example);
        }
    }
}

#[test]
fn every_converter_is_documented_and_its_example_compiles() {
    let mut stage = Stage::new();
    for def in stage.reg.all_converters() {
        assert!(!def.doc.is_empty(), "{}", def.name);
        assert!(def.example.contains(def.name), "{}: {}", def.name, def.example);
        if let Err(fault) = stage.compile(def.example) {
            panic!("{}: {fault}", def.example);
        }
    }
}

#[test]
fn every_action_is_documented_and_its_example_compiles() {
    let mut stage = Stage::new();
    for def in stage.reg.all_actions().to_vec() {
        assert!(!def.doc.is_empty(), "{}", def.name);
        if def.example.is_empty() {
            continue;
        }
        let words: Vec<&str> = def.example.split(' ').collect();
        for set in SETS.into_iter().filter(|s| def.sets.has(*s)) {
            match stage.rule(set, &words) {
                Ok(_) => {}
                Err(f) if f.text.contains("available here") => {}
                Err(f) if def.name == "use-service" && f.text.contains("only available on") => {}
                Err(f) if def.name == "capture" && f.text.contains("expects 'id'") => {}
                Err(f) => panic!("{} {}: {f}", set.words(), def.example),
            }
        }
    }
}

#[test]
fn every_acl_keyword_stands_for_a_fetch() {
    let stage = Stage::new();
    for acl in stage.reg.all_acls() {
        assert!(stage.reg.fetch(acl.fetch).is_some(), "{} stands for {}", acl.name, acl.fetch);
    }
}

#[test]
fn every_predefined_acl_reads() {
    let mut stage = Stage::new();
    for name in crate::parse::predefined_names() {
        assert!(crate::parse::predefined(name, &stage.reg, &mut stage.names).is_some(), "{name}");
    }
    assert!(stage.names.warnings.is_empty(), "{:?}", stage.names.warnings);
}
