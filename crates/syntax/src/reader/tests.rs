use super::*;
use crate::{Inherited, SECTION_WORDS};

/// Answers for tests.
pub(crate) struct Build;

impl Facts for Build {
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
    let grammar = Grammar { sections: SECTION_WORDS, facts: &Build };
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

/// What `.notice` makes of each line's words, as an easy view on them.
fn notice(line: &str, environment: &[(&str, &str)]) -> String {
    let reading = read_with(format!(".notice {line}\n").as_bytes(), environment);
    let texts: Vec<String> = reading.diagnostics.iter().map(|d| d.text.clone()).collect();
    texts.join("|")
}

#[test]
fn quotes_escapes_and_variables_are_those_of_the_oracle() {
    let world = [("L", "a b  c"), ("S", " x y "), ("E", "")];
    for (line, expected) in [
        (r"a\x41\n\q\'\#\$\ z", "'aA\n\\q'#\\$ z'."),
        (r#""a\x41\t\q\"\'\#\$\ \\z""#, "'aA\t\\q\"'#$ \\z'."),
        (r"'a\x41'", r"'a\x41'."),
        ("$L${L}", "'$L${L}'."),
        ("\"$L|${L}|$S|$E|$NO|${NO}|${NO-def}|${E-def}|${L-def}\"", "'a b  c|a b  c| x y ||||def||a b  c'."),
        ("\"x${NO-a$L}y\"", "'xa$Ly'."),
        ("a#b", "'a'."),
        ("a\"#\"b", "'a#b'."),
        ("\"a\"'b'c", "'abc'."),
        ("\"$L-x $L.x\"", "'a b  c-x a b  c.x'."),
        ("\"${NO-a b[*]}\"", "'a b[*]'."),
        ("\"$.FILE:${.LINE}:$.SECTION${.LINE-x}\"", "'t.cfg:1:1'."),
        (r#""${NO-a\}b\x41}c""#, r"'a\bA}c'."),
        ("\"${NO-a\"b\"}c\"", "'a\"b\"c'."),
        (r"\a\b\7", r"'\a\b\7'."),
        (r"a\x00b", "'a'."),
        ("a\rb c", "'a'."),
    ] {
        assert_eq!(notice(line, &world), expected, "{line}");
    }
    let unexpected = |word: &str| {
        format!(
            "Unexpected argument '{word}' for '.notice'. Use quotes if the message should contain spaces."
        )
    };
    for (line, second) in [
        ("one two", "two"),
        ("\"${L[*]}\"", "b"),
        ("<\"${S[*]}\">", "x"),
        ("\"<${NO[*]-a b}>\"", "b>"),
        ("\\\tx", "x"),
    ] {
        assert_eq!(notice(line, &world), unexpected(second), "{line}");
    }
}

#[test]
fn an_empty_word_is_refused_but_an_empty_list_is_no_word() {
    assert_eq!(
        complaints("global\n x \"\"\n x a '' b\n x \"$N\"\n x \"${N}\"\n x \"${N[*]}\" a\n\"\" x\n"),
        [
            "2:argument number 1 at position 5 is empty and marks the end of the argument list:",
            "3:argument number 2 at position 7 is empty and marks the end of the argument list:",
            "4:argument number 1 at position 6 is empty and marks the end of the argument list:",
            "5:argument number 1 at position 7 is empty and marks the end of the argument list:",
        ]
    );
}

#[test]
fn a_line_has_at_most_64_words() {
    let line =
        |words: usize| format!("global\n{}\n", (0..words).map(|n| format!(" w{n}")).collect::<String>());
    assert!(complaints(&line(64)).is_empty());
    let text = format!("global\n x{}\n", (0..64).map(|n| format!(" w{n}")).collect::<String>());
    assert_eq!(complaints(&text), ["2:too many words, truncating after word 64, position 241: <w62>."]);
}

#[test]
fn environment_keywords_act_at_once_and_on_the_second_reading() {
    assert_eq!(
        complaints(
            ".if defined(F)\n.notice yes\n.endif\nglobal\n setenv F 1\n.notice \"$F\"\n unsetenv F\n setenv F 2\n"
        ),
        ["2:'yes'.", "6:'1'."]
    );
    assert_eq!(
        complaints(
            "global\n setenv B\n presetenv a b c\nsetenv\nunsetenv\nresetenv a b\nsetenv a=b c\nunsetenv a=b\n"
        ),
        [
            "2:'setenv' expects environment variable value for 'B'.",
            "3:'presetenv' cannot handle unexpected argument 'c'.",
            "4:'setenv' expects environment variable name.",
            "5:'unsetenv' expects at least one variable name.",
            "7:'setenv' failed on variable 'a=b' : Invalid argument.",
            "8:'unsetenv' failed on variable 'a=b' : Invalid argument.",
        ]
    );
    let reading = read_with(b"global\n presetenv A 2\n setenv B 3\n resetenv B\n", &[("A", "1")]);
    assert_eq!(reading.environment.get("A"), None);
    assert_eq!(reading.environment.get("B"), Some(b"3".as_slice()));
}

#[test]
fn blocks_nest_and_their_faults_are_named() {
    let cases: [(&str, &[&str]); 14] = [
        (".elif 1\n", &["1:lone '.elif' with no matching '.if'."]),
        (".else\n", &["1:lone '.else' with no matching '.if'."]),
        (".endif\n", &["1:lone '.endif' with no matching '.if'."]),
        (".if 1\n", &["1:non-terminated '.if' block."]),
        (".if 1\n.else\n.elif 1\n.endif\n", &["3:'.elif' after '.else' is not permitted."]),
        (".if 1\n.else\n.else\n.endif\n", &["3:'.else' after '.else' is not permitted."]),
        (".if 1 #c\n.endif x\n", &["2:Unexpected argument 'x' for '.endif'."]),
        (
            ".if foo\n.notice 1\n.else\n.notice 2\n.endif\n",
            &["1:unparsable conditional expression 'foo' in '.if' at position 1:"],
        ),
        (".if 1\n.elif foo\n.endif\n", &[]),
        (
            ".if 0\n.if foo\n.elif (\n.alert x y\n.foo\n bar\n.else\n.notice 1\n.endif\n.elif 1\n.notice 2\n.endif\n",
            &["11:'2'."],
        ),
        (".foo\n", &["1:unknown directive '.foo'."]),
        (
            ".if 1 1\n.endif\n",
            &[
                "1:unexpected character '1' at the end of conditional expression '1 1' in '.if' at position 3:",
            ],
        ),
        (
            ".if 0\n x \"$\"\n.endif\n",
            &["2:forbidden first char in environment variable name at position 6:"],
        ),
        (".if streq(\"$.SECTION\",)\n.alert 'x'\n.endif\n", &["2:'x'."]),
    ];
    for (text, expected) in cases {
        assert_eq!(complaints(text), expected, "{text}");
    }
}

#[test]
fn a_modifier_is_for_few_keywords() {
    let complaint = format!("3:{}", settings::NOT_MODIFIABLE);
    assert_eq!(complaints("global\n no log\n no maxconn 3\n default option x\n"), [complaint]);
}

/// Which defaults section each section starts from, by name; `?` for none.
fn inheritance(text: &str) -> String {
    let tree = read_with(text.as_bytes(), &[]).tree;
    let from = |section: &crate::Section| match section.inherits.section().map(|index| &tree.sections[index])
    {
        Some(from) => format!("{}<{}", section.name(), from.name()),
        None => format!("{}<?", section.name()),
    };
    tree.sections.iter().map(from).collect::<Vec<_>>().join(" ")
}

#[test]
fn proxies_start_from_the_last_or_the_named_defaults() {
    assert_eq!(
        inheritance("backend x\ndefaults a\nbackend y\ndefaults b\nbackend z\nbackend w from a\n"),
        "x<? a<? y<a b<? z<b w<a"
    );
    assert_eq!(
        inheritance("defaults a\ndefaults from a\nbackend z\ndefaults from from a\n"),
        "a<? <a z< from<a"
    );
}

#[test]
fn headers_are_checked_as_the_oracle_does() {
    let mixed = "defaults section 'a' (declared at t.cfg:1) is explicitly referenced by another proxy and implicitly \
        used here. To avoid any ambiguity don't mix both usage. Add a last defaults section not explicitly used or \
        always use explicit references.";
    let cases: [(&str, &[&str]); 17] = [
        ("global foo\n", &["1:'global' cannot handle unexpected argument 'foo'."]),
        ("frontend\n", &["1:'frontend' expects an <id> argument"]),
        ("frontend f x\n", &["1:please use the 'bind' keyword for listening addresses."]),
        ("backend f x\n", &[]),
        ("defaults a b\n", &[]),
        ("defaults a from\n", &["1:defaults section '' not found for defaults 'a'."]),
        ("defaults from a\n", &["1:defaults section 'a' not found for defaults ''."]),
        ("listen l from x\n", &["1:defaults section 'x' not found for proxy 'l'."]),
        ("defaults a\nbackend f from a x y\n", &["2:'backend' cannot handle unexpected argument 'x'."]),
        ("frontend a*b\n", &["1:character '*' is not permitted in 'frontend' name 'a*b'."]),
        ("defaults a\ndefaults a\n", &[]),
        (
            "defaults a\ndefaults a\nbackend g from a\n",
            &[
                "3:ambiguous defaults section name 'a' referenced by backend 'g' exists at least at t.cfg:2 and t.cfg:1.",
            ],
        ),
        (
            "defaults a\nbackend f from a\ndefaults a\n",
            &[
                "3:defaults 'a' has the same name as another defaults section declared at t.cfg:1 which was explicitly \
                 referenced hence cannot be replaced. Please remove or rename one of the offending defaults section.",
            ],
        ),
        (
            "listen a\nbackend a\n",
            &[
                "2:backend 'a' has the same name as proxy 'a' declared at t.cfg:1. This is no longer supported as of \
                 3.3. Please rename one or the other.",
            ],
        ),
        ("defaults a\nbackend b from a\nbackend c\n", &[&format!("3:{mixed}")]),
        ("defaults a\nbackend b\nbackend c from a\n", &[&format!("3:{mixed}")]),
        (
            "defaults x*\nbackend b from x*\n",
            &[
                "2:character '*' is not permitted in defaults section name 'x*' when designated by its name (section \
                 found at t.cfg:1).",
            ],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(complaints(text), expected, "{text}");
    }
}

#[test]
fn expansion_cannot_eat_the_memory() {
    let doubling = format!("global\n setenv A 0123456789\n{}", " setenv A \"$A$A\"\n".repeat(60));
    let reading = read_with(doubling.as_bytes(), &[]);
    assert!(reading.diagnostics.has_errors());
    assert!(reading.environment.get("A").is_some_and(|value| value.len() <= MAX_EXPANDED));
}
