//! `show sess` of connections that no stream serves: the runtime API, `log-forward` sections, peers.

use std::fmt::Write;

use engine::Worker;
use engine::applets::Applet;
use model::Peer;
use rt::Watched;

use crate::cli::anon::Anon;
use crate::cli::date::human_age;

/// Appends the line of a connection, or all lines with `long`.
pub fn tell(
    worker: &Worker,
    applet: &Applet,
    (watched, anon, long): (&[Watched], Anon, bool),
    out: &mut String,
) {
    let door = &applet.door;
    let own = |w: &&Watched| w.reader == Some(applet.task) || w.writer == Some(applet.task);
    let fd = watched.iter().find(own).map_or("-1".into(), |w| format!("1/{}", w.number));
    let bind = door.listener.as_ref();
    let unix = || format!("unix:{}", bind.map_or(0, |b| b.id));
    let (protocol, source) = match applet.source {
        Peer::Inet(at) if at.is_ipv4() => ("tcpv4", anon.peer(applet.source)),
        Peer::Inet(_) => ("tcpv6", anon.peer(applet.source)),
        _ if bind.is_none() => ("sockpair", unix()),
        _ => ("unix_stream", unix()),
    };
    let (id, section) = (applet.serial + 1, anon.word(&door.section));
    let age = human_age(rt::now().since(applet.accepted).as_secs());
    if !long {
        let _ = writeln!(
            out,
            "0x{id:x}: proto={protocol} src={source} fe={section} be=<NONE> srv=<none> ts=00 epoch=0 age={age} \
calls=0 rate=0 cpu=0 lat=0 rq[f=0h,i=0,an=00h,ax=] rp[f=0h,i=0,an=00h,ax=] scf=[8,0h,fd={fd},rex=,wex=] \
scb=[8,0h,fd=-1,rex=,wex=] exp= rc=0 c_exp="
        );
        return;
    }
    let date = crate::cli::date::micros(applet.date);
    let thread = worker.index + 1;
    let name = bind.map(|b| &*b.name).filter(|name| !name.is_empty()).unwrap_or("?");
    let local = match applet.local {
        Peer::Inet(_) => anon.peer(applet.local),
        _ => unix(),
    };
    let _ = writeln!(
        out,
        "0x{id:x}: [{date}] id={} proto={protocol} source={source}\n  frontend={section} (id={} mode={}), \
listener={name} (id={}) addr={local}\n  backend=<NONE> (id=-1 mode=-)\n  server=<NONE> (id=-1)\n  \
task: nice={} tid={thread}(1/{thread}) age={age}\n  scf: state=EST\n      fd={fd}\n  scb: state=EST\n      \
app1: applet={}",
        applet.serial,
        door.id,
        door.mode,
        bind.map_or(0, |b| b.id),
        rt::nice(applet.task),
        door.kind.word(),
    );
}
