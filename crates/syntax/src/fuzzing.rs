//! The entry for fuzzers: whatever the bytes, reading ends, soon, and all it says points at something that
//! exists.

use crate::{Environment, Facts, Grammar, Render, SECTION_WORDS, Source, Span, read};

struct Anything;

impl Facts for Anything {
    fn version(&self) -> &str {
        "3.5-dev5"
    }
    fn feature(&self, name: &str) -> bool {
        name.len().is_multiple_of(2)
    }
    fn enabled(&self, option: &str) -> Option<bool> {
        (!option.is_empty()).then_some(true)
    }
    fn openssl_version(&self) -> Option<&str> {
        Some("3.0.2")
    }
    fn ssl_library(&self) -> &str {
        "OpenSSL"
    }
    fn awslc_api(&self) -> Option<u64> {
        Some(35)
    }
    fn fips_mode(&self) -> bool {
        false
    }
}

/// Reads `data` as a configuration, checks every span and shows every complaint.
///
/// # Panics
/// If a span lies outside its line: that is the finding.
pub fn config(data: &[u8]) {
    let mut environment = Environment::new();
    environment.set("L", "a b  c");
    let grammar = Grammar { sections: SECTION_WORDS, facts: &Anything };
    let reading = read(vec![Source::new("fuzz.cfg", data.to_vec())], environment, grammar);
    let check = |span: Span| {
        let length = reading.sources.line(span).len();
        assert!(span.start <= span.end && span.start as usize <= length, "{span:?} in a line of {length}");
    };
    for section in &reading.tree.sections {
        for line in section.lines.iter().chain([&section.header]) {
            line.words().iter().for_each(|word| check(word.span()));
            assert!(
                line.words()
                    .iter()
                    .all(|word| word.span().end as usize <= reading.sources.line(word.span()).len())
            );
        }
        assert!(reading.tree.ancestry(section).count() <= reading.tree.sections.len());
    }
    reading.diagnostics.iter().filter_map(|item| item.span).for_each(check);
    let render = Render { diag: true, ..Render::default() };
    render.verdict(&reading.diagnostics, &reading.sources);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = crate::addr::parse_list(text, crate::addr::Accept::BIND, &crate::Environment::new());
    }
}

#[cfg(test)]
mod tests {
    use super::config;
    use std::time::{Duration, Instant};

    const PIECES: &[&str] = &[
        "global",
        "defaults",
        "frontend",
        " from ",
        "\n",
        "\n",
        "\n",
        " ",
        "\t",
        "#",
        "\"",
        "'",
        "\\",
        "\\x",
        "\\x00",
        "$",
        "${",
        "}",
        "[*]",
        "-",
        "L",
        "A",
        ".if",
        ".elif",
        ".else",
        ".endif",
        ".alert",
        "(",
        ")",
        "&&",
        "||",
        "!",
        "1",
        "0",
        "streq",
        "defined",
        ",",
        " setenv ",
        "\"$A$A\"",
        "\"${L[*]}\"",
        "\0",
        "\r",
        "\u{e9}",
        "$.LINE",
        "unsetenv",
        "no ",
        ":80",
        "[::1]",
        "listen",
        "a",
        "b",
        " .notice ",
        "version_atleast",
        "999999999999999999999",
    ];

    #[test]
    fn two_seconds_of_hostile_text() {
        let end = Instant::now() + Duration::from_secs(2);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % bound as u64) as usize
        };
        while Instant::now() < end {
            let mut text: Vec<u8> = Vec::new();
            for _ in 0..next(120) {
                text.extend_from_slice(PIECES[next(PIECES.len())].as_bytes());
            }
            if next(4) == 0 && !text.is_empty() {
                let at = next(text.len());
                text[at] = next(256) as u8;
            }
            config(&text);
        }
    }

    #[test]
    fn large_inputs_take_time_in_proportion() {
        let start = Instant::now();
        let size = 200_000;
        for text in [
            "\"".repeat(size),
            "'".repeat(size + 1),
            "\"${A".repeat(size / 4),
            "\"${L[*]}".repeat(size / 8),
            format!("global\n{}", " setenv A x\n".repeat(size / 12)),
            "defaults a\nbackend b from a\n".repeat(size / 28),
            (0..size / 20).map(|n| format!("frontend f{n} from a\n")).collect(),
            ".if 1\n".repeat(size / 6),
            format!(".if {}\n", "(".repeat(size)),
            format!(".if {}\n", "1&&".repeat(size / 3)),
            format!(".if {}\n", "1 ".repeat(60)),
        ] {
            config(text.as_bytes());
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}
