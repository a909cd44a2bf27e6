//! `log` lines: targets, framing, facility, levels (manual, section 4.2, keyword `log`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use program::log::{Format, Sampling, Sink};
use syntax::addr::{self, Accept, Address, Host, Ports, Transport};
use syntax::{Diagnostic, Diagnostics, Environment, Line, Modifier, Sources, Span, Word};

use crate::draft::{Above, LineRef, LogDraft, LogLine, Named, SinkDraft, TargetDraft};
use crate::statement::{Statement, Step, Surroundings};
use crate::units;

/// The names of facilities in the order of their numbers.
pub(crate) const FACILITIES: &[&str] = &[
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2", "ftp", "ntp",
    "audit", "alert", "cron2", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
    "local7",
];

/// The names of levels in the order of their numbers.
pub(crate) const LEVELS: &[&str] = &["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

/// The names of framings.
const FORMATS: &[(&str, Format)] = &[
    ("rfc3164", Format::Rfc3164),
    ("rfc5424", Format::Rfc5424),
    ("local", Format::Local),
    ("short", Format::Short),
    ("priority", Format::Priority),
    ("timed", Format::Timed),
    ("iso", Format::Iso),
    ("raw", Format::Raw),
];

/// A framing by name.
pub(crate) fn format(name: &str) -> Option<Format> {
    FORMATS.iter().find(|(n, _)| *n == name).map(|(_, f)| *f)
}

/// A `log` line that stands in the file of an extension: its words, behind `no` if `off`.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn words(off: bool, words: &[Vec<u8>], logged: Above, log: &mut LogDraft) -> Result<(), String> {
    let no = off.then(|| b"no".to_vec());
    let list = no.iter().chain(words).map(|word| Word::new(word, Span::default())).collect();
    let Some(line) = Line::new(list) else { return Ok(()) };
    let (sources, environment) = (Sources::default(), Environment::default());
    let around = Surroundings {
        sources: &sources,
        environment: &environment,
        earlier: &[],
        experimental: false,
        described: false,
        logged,
    };
    let mut statement = Statement {
        line: &line,
        at: LineRef { section: u32::MAX, line: u32::MAX },
        args: line.cursor(),
        notes: &mut Diagnostics::new(),
        around: &around,
        section: "spoe-agent",
    };
    self::line(&mut statement, log, false).map_err(|diagnostic| diagnostic.text)
}

/// `log`, `no log`.
pub(crate) fn line(s: &mut Statement<'_>, log: &mut LogDraft, in_global: bool) -> Step {
    if s.line.modifier() == Modifier::No {
        if s.args.peek().is_some() {
            return Err(s.fail("log : 'no log' does not expect arguments"));
        }
        if in_global {
            log.take_back();
        } else {
            log.lines.clear();
        }
        return Ok(());
    }
    if s.peek() == "global" && s.args.peek_at(1).is_none() {
        if in_global {
            return Err(s.fail("log : 'global' is not supported for a global syslog server"));
        }
        log.inherit(s.around.logged);
        return Ok(());
    }
    let target = target(s, in_global)?;
    log.lines.push(LogLine::Own(target));
    Ok(())
}

fn target(s: &mut Statement<'_>, in_global: bool) -> Step<TargetDraft> {
    let Some(place) = s.next().filter(|_| s.args.peek().is_some()) else {
        let global = if in_global { "" } else { "or global" };
        return Err(s.fail(format!("log : expects <address> and <facility> {global} as arguments")));
    };
    let unknown = SinkDraft::Known(Sink::Fd(-1));
    let mut out = TargetDraft {
        sink: unknown,
        format: None,
        len: 1024,
        facility: 0,
        max_level: 7,
        min_level: 0,
        sample: None,
        profile: None,
        span: s.line.keyword().span(),
    };
    loop {
        match s.peek() {
            "len" => out.len = length(s)?,
            "format" => out.format = Some(framing(s)?),
            "sample" => out.sample = Some(Arc::new(sampling(s)?)),
            "profile" => {
                s.next();
                out.profile = s.next().map(|w| Named { name: w.text().into(), span: w.span() });
            }
            _ => break,
        }
    }
    let facility = s.word("log : expects <address> and <facility>  as arguments")?;
    out.facility = index(FACILITIES, facility)
        .ok_or_else(|| s.fail(format!("log : unknown log facility '{facility}'")))?;
    if let Some(level) = s.next() {
        out.max_level = index(LEVELS, level)
            .ok_or_else(|| s.fail(format!("log : unknown optional log level '{level}'")))?;
    }
    if let Some(level) = s.next() {
        out.min_level = index(LEVELS, level)
            .ok_or_else(|| s.fail(format!("log : unknown optional minimum log level '{level}'")))?;
    }
    out.sink = sink(s, place)?;
    match s.next() {
        Some(extra) => Err(s.fail(format!("log : cannot handle unexpected argument '{extra}'."))),
        None => Ok(out),
    }
}

fn index(names: &[&str], word: &Word) -> Option<u8> {
    names.iter().position(|n| word == n).and_then(|i| u8::try_from(i).ok())
}

fn length(s: &mut Statement<'_>) -> Step<usize> {
    s.next();
    let word = s.next().map_or("", Word::text);
    match usize::try_from(units::lenient(word)) {
        Ok(n) if (80..=65535).contains(&n) => Ok(n),
        _ => Err(s.fail(format!("log : invalid log length '{word}', must be between 80 and 65535"))),
    }
}

fn framing(s: &mut Statement<'_>) -> Step<Format> {
    s.next();
    let word = s.word("log : 'format' expects a log format")?;
    format(word.text()).ok_or_else(|| {
        let near = syntax::nearest(word.text(), FORMATS.iter().map(|(n, _)| *n));
        s.fail(format!("log : unknown log format '{word}'")).meant(near)
    })
}

/// `sample <ranges>:<size>`.
fn sampling(s: &mut Statement<'_>) -> Step<Sampling> {
    s.next();
    let word = s.word("log : 'sample' expects <ranges>:<size>")?;
    let bad = |why: &str| s.fail(format!("log : {why} in '{word}'"));
    let (ranges, size) = word.text().split_once(':').ok_or_else(|| s.fail("log : Missing sample size"))?;
    let size: u32 = size.parse().ok().filter(|n| *n > 0).ok_or_else(|| bad("invalid sample size"))?;
    let mut out = Sampling { size, ..Sampling::default() };
    let highest = ranges.split([',', '-']).filter_map(|n| n.parse::<u32>().ok()).max();
    if let Some(highest) = highest.filter(|n| *n > size) {
        return Err(s.fail(format!(
            "log : sample size {size} should be greater or equal to {highest} the maximum of the high ranges limits"
        )));
    }
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        match (low.parse(), high.parse()) {
            (Ok(low), Ok(high)) if low > 0u32 && low <= high && high <= size => out.ranges.push((low, high)),
            _ => return Err(bad(&format!("invalid sampling range '{range}'"))),
        }
    }
    out.ranges.sort_unstable();
    if out.ranges.windows(2).any(|w| w[1].0 <= w[0].1) {
        return Err(bad("sampling ranges overlap"));
    }
    Ok(out)
}

fn sink(s: &Statement<'_>, word: &Word) -> Step<SinkDraft> {
    let later = |what: &str| s.fail(format!("'{what}' is not supported yet by Harrier (planned)"));
    let text = match word.text() {
        "stdout" => "fd@1",
        "stderr" => "fd@2",
        text => text,
    };
    if let Some(name) = text.strip_prefix("backend@") {
        return Ok(SinkDraft::Backend(Named { name: name.into(), span: word.span() }));
    }
    if let Some(name) = text.strip_prefix("ring@") {
        return Ok(SinkDraft::Ring(Named { name: name.into(), span: word.span() }));
    }
    let address =
        addr::parse(text, Accept::LOG, s.around.environment).map_err(|why| s.fail(format!("log : {why}")))?;
    if address.transport == Transport::Stream {
        let target = crate::resolve::stream_target(&address);
        let target = target.ok_or_else(|| unresolved(s, word, &address))?;
        return Ok(SinkDraft::Stream(target));
    }
    if address.transport != Transport::Datagram {
        return Err(later("this kind of log target"));
    }
    Ok(SinkDraft::Known(match address.host {
        Host::Ip(_) | Host::Name(..) => Sink::Udp(socket(s, word, &address)?),
        Host::Unix(path) => Sink::Unix(path.into_bytes().into()),
        Host::Abstract(name) | Host::AbstractZero(name) => Sink::Abstract(name.into_bytes().into()),
        Host::Fd(fd) => Sink::Fd(fd),
        Host::SockPair(_) | Host::Reverse(_) => return Err(s.fail(format!("log : invalid address '{word}'"))),
    }))
}

fn unresolved(s: &Statement<'_>, word: &Word, address: &Address) -> Diagnostic {
    let why = match &address.host {
        Host::Name(name, _) => addr::unresolved(name, word.text()),
        _ => format!("invalid address '{word}'"),
    };
    s.fail(format!("log : {why}"))
}

/// No address is the machine itself, no port is that of syslog.
fn socket(s: &Statement<'_>, word: &Word, address: &Address) -> Step<SocketAddr> {
    let port = match address.ports {
        Ports::One(port) if port > 0 => port,
        _ => 514,
    };
    let ip = crate::resolve::ip(&address.host);
    let ip = ip.ok_or_else(|| unresolved(s, word, address))?;
    let ip = if ip.is_unspecified() { IpAddr::from([127, 0, 0, 1]) } else { ip };
    Ok(SocketAddr::new(ip, port))
}
