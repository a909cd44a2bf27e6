use super::*;
use crate::{Inherited, SECTION_WORDS};

struct Nothing;

impl Facts for Nothing {
    fn version(&self) -> &str {
        "3.5-dev5"
    }
    fn feature(&self, name: &str) -> bool {
        name == "THREAD"
    }
    fn enabled(&self, option: &str) -> Option<bool> {
        (option == "EPOLL").then_some(true)
    }
    fn openssl_version(&self) -> Option<&str> {
        Some("3.0.2")
    }
    fn ssl_library(&self) -> &str {
        "OpenSSL 3.0.2"
    }
    fn awslc_api(&self) -> Option<u64> {
        None
    }
    fn fips_mode(&self) -> bool {
        false
    }
}

fn read_with(text: &[u8], environment: &[(&str, &str)]) -> Reading {
    let mut values = Environment::new();
    for (name, value) in environment {
        values.set(name, value);
    }
    let grammar = Grammar { sections: SECTION_WORDS, facts: &Nothing };
    read(vec![Source::new("t.cfg", text.to_vec())], values, grammar)
}

/// Each complaint as `line:text`, the first line of the text only.
fn complaints(text: &str) -> Vec<String> {
    let reading = read_with(text.as_bytes(), &[]);
    let line = |item: &Diagnostic| item.text.lines().next().unwrap_or_default().to_owned();
    reading.diagnostics.iter().map(|d| format!("{}:{}", d.span.map_or(0, |s| s.line), line(d))).collect()
}

#[test]
fn sections_hold_their_lines() {
    let reading = read_with(b"global#x\n daemon#y\n\n  frontend  f \n mode http # z\n bind :80\n", &[]);
    assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
    let [global, frontend] = &reading.tree.sections[..] else { panic!("two sections") };
    assert_eq!((global.word(), global.name(), global.lines.len()), ("global", "", 1));
    assert_eq!((frontend.word(), frontend.name(), frontend.lines.len()), ("frontend", "f", 2));
    assert_eq!(frontend.inherits, Inherited::Nothing);
    let word = &frontend.lines[1].args()[0];
    assert_eq!((word.span().line, word.span().start, word.span().end), (6, 6, 9));
}

#[test]
fn one_fault_does_not_hide_the_next() {
    assert_eq!(
        complaints(
            "foo bar\nglobal\n balance 'foo\n x \\xzz\n y \"$\"\n y \"${a\"\n z \"${a[*}\"\n bind :80"
        ),
        [
            "1:unknown keyword 'foo' out of section.",
            "3:unmatched quote at position 10:",
            "4:truncated or invalid hexadecimal sequence at position 4:",
            "5:forbidden first char in environment variable name at position 6:",
            "6:unmatched brace in environment variable name at position 6:",
            "7:truncated or invalid word expansion sequence at position 8:",
            "8:Missing LF on last line, file might have been truncated at position 10.",
        ]
    );
}
