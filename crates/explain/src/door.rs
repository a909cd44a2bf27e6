//! Which frontend gets the request.

use program::Program;
use program::address::Listen;

use crate::ask::Ask;

/// The frontend and the listener that get the request.
pub fn door(program: &Program, ask: &Ask) -> Result<(u32, u32), String> {
    let fronts = || (0u32..).zip(program.proxies.beginning()).filter(|(_, p)| p.is_frontend && !p.disabled);
    if let Some(name) = &ask.frontend {
        let found = fronts().find(|(_, p)| *p.name == **name);
        return found.map(|(i, _)| (i, 0)).ok_or_else(|| format!("no frontend is called '{name}'"));
    }
    let port = ask.dst.map(|d| d.port()).filter(|p| *p != 0).or(ask.port);
    let ip = ask.dst.map(|d| d.ip());
    let fits = |address: &Listen| match address {
        Listen::Tcp(a) => {
            port.is_none_or(|p| p == a.port()) && ip.is_none_or(|i| a.ip().is_unspecified() || a.ip() == i)
        }
        _ => false,
    };
    let doors: Vec<(u32, u32)> = fronts()
        .flat_map(|(i, p)| (0u32..).zip(&p.binds).map(move |(l, b)| (i, l, b)))
        .filter(|(_, _, b)| fits(&b.address))
        .map(|(i, l, _)| (i, l))
        .collect();
    let mut owners: Vec<u32> = doors.iter().map(|(i, _)| *i).collect();
    owners.dedup();
    if let (Some(door), [_]) = (doors.first(), owners.as_slice()) {
        return Ok(*door);
    }
    let all: Vec<_> = fronts().filter(|(_, p)| !p.binds.is_empty()).collect();
    if let ([], [(only, _)]) = (doors.as_slice(), all.as_slice()) {
        return Ok((*only, 0));
    }
    let names = if doors.is_empty() { all.iter().map(|(i, _)| *i).collect() } else { owners };
    let names: Vec<_> = names.iter().map(|i| program.configured(*i).name.to_string()).collect();
    let what = if doors.is_empty() { "no frontend listens there" } else { "several frontends listen there" };
    Err(format!("{what}: choose one with --frontend ({})", names.join(", ")))
}

/// The address connected to.
pub fn destination(program: &Program, ask: &Ask, frontend: u32, listener: u32) -> std::net::SocketAddr {
    let bind = program.configured(frontend).binds.get(listener as usize).map(|b| &b.address);
    let mut dst = match (ask.dst, bind) {
        (Some(dst), _) => dst,
        (None, Some(Listen::Tcp(a))) if !a.ip().is_unspecified() => *a,
        (None, Some(Listen::Tcp(a))) => (std::net::Ipv4Addr::LOCALHOST, a.port()).into(),
        _ => (std::net::Ipv4Addr::LOCALHOST, 80).into(),
    };
    if let (0, Some(Listen::Tcp(a))) = (dst.port(), bind) {
        dst.set_port(a.port());
    }
    dst
}
