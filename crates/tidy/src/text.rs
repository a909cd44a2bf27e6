//! Rust sources as far as this test reads them: the text without comments, literals and test modules.

/// The source with the inside of comments, strings and characters made blank; lines stay where they are.
pub fn bare(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => end_of_line(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => {
                find(bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2)
            }
            b'r' if raw_hashes(bytes, at).is_some()
                && !is_word(at.checked_sub(1).map(|before| bytes[before])) =>
            {
                let hashes = raw_hashes(bytes, at).unwrap_or(0);
                let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
                find(bytes, at + hashes + 2, &close).map_or(bytes.len(), |end| end + close.len())
            }
            b'"' => end_of_string(bytes, at + 1),
            b'\'' => end_of_character(bytes, at),
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("blanks in place of whole literals")
}

/// The bare source without its modules of tests, which may look at whatever they like.
pub fn without_tests(bare: &str) -> String {
    let mut out = String::new();
    let mut lines = bare.lines().peekable();
    while let Some(line) = lines.next() {
        let module = line.trim() == "#[cfg(test)]"
            && lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if module {
            lines.by_ref().take_while(|line| *line != "}").for_each(drop);
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The paths of a bare source: those of its `use` items, groups written out, and those in its code that begin
/// with `crate`, `self` or `super`, or with one of `children`.
pub fn paths(bare: &str, children: &[&str]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = bare;
    while let Some(at) = next_use(rest) {
        code_paths(&rest[..at], children, &mut found);
        let item = &rest[at + "use ".len()..];
        let end = item.find(';').unwrap_or(item.len());
        expand(&[], &item[..end], &mut found);
        rest = &item[end..];
    }
    code_paths(rest, children, &mut found);
    found
}

/// Where the next `use` item begins.
fn next_use(text: &str) -> Option<usize> {
    text.match_indices("use ").map(|(at, _)| at).find(|at| {
        let line = text[..*at].rsplit('\n').next().unwrap_or_default().trim();
        line.is_empty() || line.starts_with("pub") && !line.contains('=')
    })
}

/// Writes the tree of a `use` item out as single paths.
fn expand(prefix: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
    for part in split_commas(tree) {
        let part = part.trim();
        let (head, group) = match part.find('{') {
            Some(open) => (&part[..open], part[open + 1..].strip_suffix('}')),
            None => (part, None),
        };
        let head = head.split(" as ").next().unwrap_or_default();
        let mut path = prefix.to_vec();
        for word in head.split("::").map(str::trim) {
            let redundant = word.is_empty() || word == "self" && !path.is_empty();
            if !redundant {
                path.push(word.to_owned());
            }
        }
        match group {
            Some(group) => expand(&path, group, found),
            None if path.is_empty() => {}
            None => found.push(path),
        }
    }
}

fn split_commas(tree: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, byte) in tree.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&tree[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[start..]);
    parts
}

/// Paths in code.
fn code_paths(code: &str, children: &[&str], found: &mut Vec<Vec<String>>) {
    let bytes = code.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_word(Some(bytes[at])) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && (is_word(Some(bytes[at])) || path_goes_on(bytes, at)) {
            at += if bytes[at] == b':' { 2 } else { 1 };
        }
        let behind_path = start >= 2 && &bytes[start - 2..start] == b"::";
        let path: Vec<String> =
            code[start..at].split("::").map(str::to_owned).filter(|word| !word.is_empty()).collect();
        let first = path.first().map(String::as_str).unwrap_or_default();
        let ours = matches!(first, "crate" | "self" | "super") || children.contains(&first);
        if path.len() > 1 && ours && !behind_path {
            found.push(path);
        }
    }
}

/// Whether `::` and a word follow.
fn path_goes_on(bytes: &[u8], at: usize) -> bool {
    bytes[at..].starts_with(b"::") && is_word(bytes.get(at + 2).copied())
}

fn is_word(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    find(bytes, at, b"\n").unwrap_or(bytes.len())
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    bytes.get(from..)?.windows(what.len()).position(|window| window == what).map(|at| from + at)
}

/// The number of `#` of a raw string that begins here.
fn raw_hashes(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    (bytes.get(at + 1 + hashes) == Some(&b'"')).then_some(hashes)
}

fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of a character; of a lifetime only its tick.
fn end_of_character(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        Some(b'\\') => find(bytes, at + 3, b"'").map_or(bytes.len(), |end| end + 1),
        Some(_) => {
            let width = bytes[at + 1..].iter().skip(1).take_while(|byte| **byte & 0xc0 == 0x80).count() + 1;
            if bytes.get(at + 1 + width) == Some(&b'\'') { at + width + 2 } else { at + 1 }
        }
        None => at + 1,
    }
}

#[test]
fn sources_are_read_as_they_are_meant() {
    let source = "// use crate::no;\nuse crate::{a::{self, B}, c as d};\nconst X: &str = \"crate::no\"; // crate::no\nfn f<'a>(x: &'a u8) -> char { super::g::<crate::h::I>(x); kid::run(); other::run(); '\\'' }\n";
    let bare = bare(source);
    assert_eq!(bare.len(), source.len());
    let mut found: Vec<String> = paths(&bare, &["kid"]).iter().map(|path| path.join("::")).collect();
    found.sort();
    assert_eq!(found, ["crate::a", "crate::a::B", "crate::c", "crate::h::I", "kid::run", "super::g"]);
}

#[test]
fn tests_are_left_out() {
    let text = without_tests("a\n#[cfg(test)]\nmod tests {\n    b\n}\nc\n");
    assert_eq!(text, "a\nc\n");
}
