//! `-dC`: the configuration as it was understood (management guide, chapter 3).
//!
//! Lines are shown after quotes and variables have been resolved, blocks that were skipped and directives
//! among them. With a key, what could tell who the user is gives way to 24 bits of XXH32 seeded with the key,
//! the same as in the runtime API's anonymised mode, so that a dump and a trace can be laid side by side. How
//! much of a line survives is a rule per keyword; a keyword without one keeps two arguments.

use crate::addr::{self, Accept, Host, Ports};
use crate::environment::Environment;
use crate::word::Word;
use base::hash::xxh32;

/// Collects the text of a dump.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dump {
    key: u32,
    /// The number of the last line, if lines are numbered.
    number: Option<u32>,
    text: String,
}

/// What becomes of one argument.
#[derive(Clone, Copy)]
enum Show {
    Raw,
    Id,
    Path,
    Address,
}

use Show::{Address, Id, Path, Raw};

/// Keywords, perhaps with a first argument, whose leading arguments are not simply shown; what follows is
/// left out.
const RULES: &[(&str, Option<&str>, &[Show])] = &[
    ("acl", None, &[Id, Raw]),
    ("use_backend", None, &[Id]),
    ("server", None, &[Id, Address]),
    ("peer", None, &[Id, Address]),
    ("nameserver", None, &[Id, Address]),
    ("user", None, &[Id]),
    ("cookie", None, &[Id, Raw]),
    ("bind", None, &[Address]),
    ("source", None, &[Address]),
    ("log", None, &[Address]),
    ("stats", Some("socket"), &[Raw, Address]),
    ("http-request", None, &[Raw]),
    ("http-response", None, &[Raw]),
    ("http-after-response", None, &[Raw]),
    ("errorfile", None, &[Raw, Path]),
    ("redirect", Some("location"), &[Raw, Path]),
];

impl Dump {
    pub(crate) fn new(key: u32, numbered: bool) -> Self {
        Dump { key, number: numbered.then_some(0), text: String::new() }
    }

    /// Another file begins.
    pub(crate) fn begin_file(&mut self) {
        self.number = self.number.map(|_| 0);
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, words: &[Word], opens_section: bool) {
        if let Some(number) = &mut self.number {
            *number = number.saturating_add(1);
            self.text.push_str(&format!("{number}\t"));
        }
        if !opens_section {
            self.text.push('\t');
        }
        let Some((keyword, args)) = words.split_first() else { return self.text.push('\n') };
        self.text.push_str(keyword.text());
        match () {
            () if self.key == 0 => self.open(args),
            () if opens_section => self.bare(args.first(), Id),
            () if matches!(keyword.text(), "mode" | "maxconn") => self.bare(args.first(), Raw),
            () if keyword == "default_backend" => self.bare(args.first(), Id),
            () if keyword == "timeout" => {
                self.bare(args.first(), Raw);
                self.bare(args.get(1), Raw);
            }
            () => self.hidden(keyword, args),
        }
        self.text.push('\n');
    }

    fn open(&mut self, args: &[Word]) {
        self.text.push(' ');
        for arg in args {
            self.text.push_str(arg.text());
            self.text.push(' ');
        }
    }

    /// One argument and nothing behind it.
    fn bare(&mut self, arg: Option<&Word>, show: Show) {
        if let Some(arg) = arg {
            self.text.push(' ');
            self.show(arg.text(), show);
        }
    }

    fn hidden(&mut self, keyword: &Word, args: &[Word]) {
        let first = args.first().map_or("", Word::text);
        let rule =
            RULES.iter().find(|(word, with, _)| keyword == word && with.is_none_or(|with| with == first));
        let shows = rule.map_or(&[Raw, Raw][..], |(_, _, shows)| shows);
        self.text.push(' ');
        for (arg, show) in args.iter().zip(shows) {
            self.show(arg.text(), *show);
            self.text.push(' ');
        }
        if args.len() > shows.len() {
            self.text.push_str("[...]");
        }
    }

    fn show(&mut self, text: &str, show: Show) {
        let shown = match show {
            Raw => text.to_owned(),
            Id => format!("ID({:06x})", self.hash(text)),
            Path => format!("PATH({:06x})", self.hash(text)),
            Address => self.address(text),
        };
        self.text.push_str(&shown);
    }

    fn hash(&self, text: &str) -> u32 {
        xxh32(text.as_bytes(), self.key) & 0x00ff_ffff
    }

    /// Addresses that say nothing about the user's network stay; of others the port stays.
    fn address(&self, text: &str) -> String {
        if matches!(text, "stdout" | "stderr" | "global") {
            return text.to_owned();
        }
        let accept =
            Accept { port_required: false, ranges: true, offsets: true, datagrams: true, ..Accept::BIND };
        let known = addr::parse(text, accept, &Environment::new()).ok().filter(|_| !text.contains('$'));
        let Some(address) = known else { return format!("{:06x}", self.hash(text)) };
        let port = match address.ports {
            Ports::Missing => String::new(),
            Ports::One(port) | Ports::Range(port, _) => format!(":{port}"),
            Ports::Offset(offset) => format!(":{offset}"),
        };
        match address.host {
            Host::Fd(_) | Host::SockPair(_) => text.to_owned(),
            Host::Name(name, _) if name == "localhost" => text.to_owned(),
            Host::Ip(ip) if ip.is_loopback() || ip.is_unspecified() => text.to_owned(),
            Host::Ip(ip) => {
                let family = if ip.is_ipv4() { "IPV4" } else { "IPV6" };
                format!("{family}({:06x}){port}", self.hash(&ip.to_string()))
            }
            _ => format!("{:06x}", self.hash(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::reader::tests::Build;
    use crate::{Environment, Grammar, SECTION_WORDS, Source, dump};

    fn dumped(text: &str, key: u32) -> String {
        let grammar = Grammar { sections: SECTION_WORDS, facts: &Build };
        dump(vec![Source::new("t.cfg", text.into())], Environment::new(), grammar, (key, false))
    }

    #[test]
    fn lines_are_shown_as_they_were_understood() {
        let text = "global # x\n  log 'a b' # y\n\n.if 0\nlisten foo\nbind :90\n.endif\n x \"\n";
        let shown = "global \n\tlog a b \n\t\n\t.if 0 \nlisten foo \n\tbind :90 \n\t.endif \n";
        assert_eq!(dumped(text, 0), shown);
    }

    #[test]
    fn a_key_hides_names_and_addresses_as_the_oracle_does() {
        let cases = [
            ("defaults foo from bar", "defaults ID(e87a94)"),
            ("mode http", "\tmode http"),
            ("timeout connect 5 6", "\ttimeout connect 5"),
            ("stats socket /tmp/x.sock level admin", "\tstats socket 270720 [...]"),
            ("stats timeout 2m", "\tstats timeout 2m "),
            ("log 10.0.0.1:514 local0", "\tlog IPV4(00fdaf):514 [...]"),
            ("log 127.0.0.1:514 local0", "\tlog 127.0.0.1:514 [...]"),
            ("acl secret hdr(host) -i example.com", "\tacl ID(f85352) hdr(host) [...]"),
            ("use_backend be1", "\tuse_backend ID(5a471b) "),
            ("default_backend be1", "\tdefault_backend ID(5a471b)"),
            ("http-request set-header X y", "\thttp-request set-header [...]"),
            ("server s1 10.0.0.1 check", "\tserver ID(0a7bc4) IPV4(00fdaf) [...]"),
            ("server s3 www.example.com:80", "\tserver ID(b15bbd) 9d399f "),
            ("server s7 [2001:db8::1]:80 x", "\tserver ID(cbe4d8) IPV6(281a59):80 [...]"),
            ("server s6 10.0.0.1:+80", "\tserver ID(a5cb6f) IPV4(00fdaf):80 "),
            ("bind 10.0.0.1:8080,[2001:db8::1]:80 ssl", "\tbind 8b6503 [...]"),
            ("bind unix@/tmp/a mode 600", "\tbind d13a20 [...]"),
            ("bind *:80", "\tbind *:80 "),
            ("bind fd@3", "\tbind fd@3 "),
            ("errorfile 404 /etc/x", "\terrorfile 404 PATH(05bc97) "),
            ("redirect location /x", "\tredirect location PATH(2ca0f7) "),
            ("user joe password x", "\tuser ID(be79ca) [...]"),
            ("option httpchk GET /secret", "\toption httpchk GET [...]"),
            ("foo a b", "\tfoo a b "),
        ];
        for (line, shown) in cases {
            assert_eq!(dumped(&format!("{line}\n"), 123), format!("{shown}\n"), "{line}");
        }
    }
}
