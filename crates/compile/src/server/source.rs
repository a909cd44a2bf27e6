//! `source`, of a proxy or a server (manual, sections 4.2 and 5.2, keyword `source`).

use std::net::SocketAddr;

use program::address::{Source, UseSource};
use syntax::Environment;
use syntax::addr::{self, Accept, Host, Ports};

use crate::resolve;
use crate::statement::{Statement, Step};

const ACCEPT: Accept = Accept { ranges: true, offsets: false, fd: false, datagrams: false, ..Accept::SERVER };

/// The words behind `source`. `stop_at_unknown`: other words may follow (server lines).
pub(crate) fn parse(s: &mut Statement<'_>, expects: &str, stop_at_unknown: bool) -> Step<Source> {
    let word = s.word(expects)?;
    let label = format!("'source {word}'");
    let (addr, ports) =
        inet(word.text(), s.around.environment).map_err(|why| s.fail(format!("{label} : {why}")))?;
    let mut source = Source { addr: Some(addr), ports, usesrc: None, interface: None };
    loop {
        match s.peek() {
            "usesrc" => {
                s.next();
                source.usesrc = Some(usesrc(s)?);
            }
            "interface" => {
                s.next();
                source.interface = Some(s.word("'interface' : missing interface name")?.text().into());
            }
            "" => return Ok(source),
            _ if stop_at_unknown => return Ok(source),
            _ => {
                s.next();
                return Err(s.fail("'source' only supports optional keywords 'interface' and 'usesrc'."));
            }
        }
    }
}

fn usesrc(s: &mut Statement<'_>) -> Step<UseSource> {
    let word = s.word("'usesrc' expects <addr>[:<port>], 'client', or 'clientip' as argument.")?;
    match word.text() {
        "client" => return Ok(UseSource::Client),
        "clientip" => return Ok(UseSource::ClientIp),
        _ => {}
    }
    if let Some(args) = word.text().strip_prefix("hdr_ip(") {
        let args = args.strip_suffix(')').unwrap_or(args);
        let (name, occurrence) = args.split_once(',').unwrap_or((args, "-1"));
        let occurrence = occurrence.trim().parse().ok();
        return match occurrence {
            Some(n) if !name.is_empty() => Ok(UseSource::Header(name.trim().as_bytes().into(), n)),
            _ => Err(s.fail(format!("usesrc hdr_ip(name,num) : cannot read '{word}'"))),
        };
    }
    let (addr, _) =
        inet(word.text(), s.around.environment).map_err(|why| s.fail(format!("'usesrc {word}' : {why}")))?;
    Ok(UseSource::Addr(addr))
}

/// An address with port 0 unless one is given, and the range of ports if there is one.
fn inet(text: &str, environment: &Environment) -> Result<(SocketAddr, Option<(u16, u16)>), String> {
    let address = addr::parse(text, ACCEPT, environment)?;
    let ip = match &address.host {
        Host::Ip(_) | Host::Name(..) => resolve::ip(&address.host),
        _ => None,
    };
    let ip = ip.ok_or_else(|| addr::unresolved(text, text))?;
    Ok(match address.ports {
        Ports::Range(from, to) => (SocketAddr::new(ip, 0), Some((from, to))),
        Ports::One(port) => (SocketAddr::new(ip, port), None),
        Ports::Missing | Ports::Offset(_) => (SocketAddr::new(ip, 0), None),
    })
}
