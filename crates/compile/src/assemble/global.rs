//! The `global` section, finished: what was not said is computed.

use base::outside;
use lang::{Expr, LogFormat, Words};
use model::adoption::ProcessTerms;
use model::vars::VarRef;
use program::Global;
use program::global::{SetVar, Tune};
use program::proxy::Proxy;
use syntax::{Diagnostic, Diagnostics, Level, Style};

use super::Assembly;
use crate::draft::LineRef;
use crate::global::draft::{CasePairs as Pairs, CpuMapLine, GlobalDraft};
use crate::global::places;
use crate::notes::refusal;

/// Descriptors that the process needs besides connections: its own, and some for every thread.
const RESERVED: u64 = 20;
const PER_THREAD: u64 = 3;

impl Assembly<'_> {
    /// Settings of the process.
    pub(super) fn global(
        &mut self,
        g: GlobalDraft,
        set_vars: Vec<(VarRef, SetVar)>,
        proxies: &[Proxy],
        notes: &mut Diagnostics,
        crowd: &mut Diagnostics,
    ) -> Global {
        let cli = self.cli(&g, notes);
        let listeners = proxies.iter().map(|p| p.binds.len()).sum::<usize>() + cli.len();
        let Room { maxconn, ulimit_n, pipe_ends } = self.room(&g, proxies, listeners, notes);
        self.process = Some(terms(maxconn, &g));
        let localpeer = self.ground.options.localpeer.clone().or(g.localpeer);
        let hostname = crate::global::process::hostname;
        let tune = Tune { maxrewrite: g.tune.maxrewrite.min(g.tune.bufsize / 2), ..g.tune };
        Global {
            maxconn,
            ulimit_n,
            pipe_ends,
            threads: self.threads(),
            thread_groups: self.thread_groups.count(),
            affinity: self.affinity(&g.cpu_map, crowd),
            client_tls: g.tls.client(),
            ocsp: super::http_client::settings(&g.tls, &self.memory.resolvers),
            maxpipes: if g.maxpipes == 0 { maxconn / 4 } else { g.maxpipes },
            daemon: g.daemon,
            pidfile: g.pidfile,
            figures: g.figures,
            master: g.master,
            chroot: g.chroot,
            uid: g.uid,
            gid: g.gid,
            log: self.global_log.get(g.log.above().from..).unwrap_or_default().into(),
            log_tag: g.log_tag.unwrap_or_else(|| "haproxy".into()),
            log_hostname: g.log_hostname,
            cli,
            cli_timeout: g.cli_timeout,
            cli_maxconn: g.cli_maxconn,
            node: g.node.unwrap_or_else(hostname),
            description: g.description,
            localpeer: localpeer.unwrap_or_else(hostname),
            grace: g.grace,
            hard_stop_after: g.hard_stop_after,
            close_spread_time: g.close_spread_time,
            spread_checks: g.spread_checks,
            max_spread_checks: g.max_spread_checks,
            case_adjust: case_adjust(g.case_adjust, g.case_adjust_file, notes).into(),
            disabled: g.disabled,
            busy_polling: g.busy_polling,
            reject_privileged_ports: g.reject_privileged_ports,
            set_dumpable: g.set_dumpable,
            setuid_wanted: g.setuid_wanted,
            prealloc_fd: g.prealloc_fd,
            never_local: g.never_local,
            capabilities: g.capabilities,
            nice: g.nice,
            strict_limits: g.strict_limits,
            warn_blocked_after: g.warn_blocked_after,
            h1_any_payload: g.h1_any_payload,
            h1_keep_insecure_te: g.h1_keep_insecure_te,
            err_codes: g.err_codes,
            fail_codes: g.fail_codes,
            set_vars,
            tune,
        }
    }

    /// How many connections and descriptors there may be.
    fn room(&self, g: &GlobalDraft, proxies: &[Proxy], listeners: usize, notes: &mut Diagnostics) -> Room {
        let other = RESERVED + PER_THREAD * u64::from(self.threads()) + listeners as u64;
        let hard = g.fd_hard_limit.unwrap_or(u64::MAX).min(self.ground.options.fd_limit);
        let given = self.ground.options.maxconn.or(g.maxconn);
        // Pipes that somebody asked for have two ends each; where they leave nothing they are asked for on
        // top. Whoever splices asks for one for four connections.
        let splices = g.maxpipes == 0 && proxies.iter().any(splices);
        let open = g.ulimit_n.unwrap_or(hard).saturating_sub(other);
        let left = open.checked_sub(u64::from(g.maxpipes) * 2).filter(|left| *left > 0).unwrap_or(open);
        let room = if splices { left.saturating_mul(2) / 5 } else { left / 2 };
        let maxconn = given.unwrap_or_else(|| u32::try_from(room.max(1)).unwrap_or(u32::MAX));
        let pipes = u64::from(if splices { maxconn / 4 } else { g.maxpipes }) * 2;
        let ulimit_n = g.ulimit_n.unwrap_or(u64::from(maxconn) * 2 + pipes + other);
        if given.is_some() && ulimit_n > hard {
            let text = format!(
                "{ulimit_n} file descriptors are needed for {maxconn} connections but the limit is {hard}."
            );
            notes.push(Diagnostic::plain(Level::Diag, text));
        }
        let asked = g.ulimit_n.is_some() || pipes > 0;
        Room { maxconn, ulimit_n, pipe_ends: if asked { 0 } else { u64::from(maxconn / 4) * 2 } }
    }

    /// `set-var` and `set-var-fmt`: evaluated once, when the process starts.
    pub(super) fn set_vars(&mut self, lines: &[LineRef], notes: &mut Diagnostics) -> Vec<(VarRef, SetVar)> {
        let registry = self.ground.registry;
        let mut out = Vec::new();
        for at in lines {
            let Some(line) = self.ground.line(*at) else { continue };
            let list: Vec<&[u8]> = line.args().iter().map(|w| w.bytes()).collect();
            let [name, value, ..] = list.as_slice() else { continue };
            let mut names = self.names_of_global();
            let place = lang::places::Place::Config;
            let var = lang::Names::variable(&mut names, &String::from_utf8_lossy(name));
            let parsed = var.and_then(|var| {
                let value = if line.keyword() == "set-var" {
                    let mut words = Words::new(&list);
                    words.take();
                    SetVar::Expr(Expr::parse(&mut words, place, registry, &mut names)?)
                } else {
                    SetVar::Format(LogFormat::parse(value, place, registry, &mut names)?)
                };
                Ok((var, value))
            });
            match parsed {
                Ok(pair) => out.push(pair),
                Err(fault) => {
                    let text = fault.text.clone();
                    notes.push(Diagnostic { text, ..super::complaint(fault, line, 1) });
                }
            }
        }
        out
    }
}

/// See [`Assembly::room`]; the fields are those of [`Global`].
struct Room {
    maxconn: u32,
    ulimit_n: u64,
    pipe_ends: u64,
}

/// Whether an option has the data of a proxy go through pipes.
fn splices(proxy: &Proxy) -> bool {
    let options = &proxy.options;
    options.splice_auto || options.splice_request || options.splice_response
}

fn terms(maxconn: u32, g: &GlobalDraft) -> ProcessTerms {
    ProcessTerms {
        maxconn,
        conn_rate: g.maxconnrate,
        sess_rate: g.maxsessrate,
        ssl: g.tls.most,
        ssl_rate: g.tls.most_rate,
        anon_key: g.anon_key,
        profiling: g.tune.profiling,
        compression: g.compression.clone(),
    }
}

impl Assembly<'_> {
    /// For each worker the processors that `cpu-map` lines name; the last line that names a worker counts.
    fn affinity(&self, map: &[CpuMapLine], notes: &mut Diagnostics) -> Vec<Vec<usize>> {
        let (tree, options, threads) = (self.ground.tree, self.ground.options, self.threads());
        let machine = options.machine();
        let allowed: Vec<usize> = machine.iter().filter(|cpu| cpu.allowed).map(|cpu| cpu.id).collect();
        let processors = allowed.len();
        if map.is_empty() {
            let placed = places::place(tree, &machine).affinity;
            // HAProxy binds its threads to what there is without being told.
            let bound = (0..threads as usize).map(|n| placed.get(n).filter(|cpus| !cpus.is_empty()));
            let bound: Vec<Vec<usize>> = bound.map(|cpus| cpus.unwrap_or(&allowed).clone()).collect();
            crowded(&bound, processors, notes);
            return if placed.iter().all(Vec::is_empty) { Vec::new() } else { placed };
        }
        let of = |n: u32| {
            map.iter().rev().find(|line| line.names(n, &self.thread_groups)).map(|line| line.cpus.clone())
        };
        let bound: Vec<Vec<usize>> = (0..threads).map(|n| of(n).unwrap_or_default()).collect();
        crowded(&bound, processors, notes);
        bound
    }
}

/// Warns of threads that have to share a processor.
fn crowded(bound: &[Vec<usize>], processors: usize, notes: &mut Diagnostics) {
    let (on, off) =
        (bound.iter().filter(|cpus| !cpus.is_empty()).count(), bound.iter().filter(|c| c.is_empty()).count());
    let mut warn =
        |text: String| notes.push(Diagnostic::plain(Level::Warning, text).styled(Style::Bare).settling());
    if let (Some(first), Some(free)) =
        (bound.iter().position(|c| !c.is_empty()), bound.iter().position(|c| c.is_empty()))
    {
        warn(format!(
            "Found {on} thread(s) mapped to a CPU and {off} thread(s) not mapped to any CPU. This will result in some \
             threads being randomly assigned to the same CPU, which will occasionally cause severe performance \
             degradation. First thread bound is {first} and first thread not bound is {free}. Please either bind all \
             threads or none (maybe some cpu-map directives are missing?)."
        ));
    }
    let mut cpus: Vec<usize> = bound.iter().flatten().copied().collect();
    cpus.sort_unstable();
    cpus.dedup();
    let shared = "This means that some threads will compete for the same CPU, which will cause severe performance \
                  degradation. Please";
    if on > cpus.len() {
        warn(format!(
            "This configuration binds {on} threads to a total of {} CPUs via cpu-map directives. {shared} fix either \
             the 'cpu-map' directives or set the global 'nbthread' value accordingly.",
            cpus.len()
        ));
    } else if off > 0 && bound.len() > processors {
        warn(format!(
            "This configuration enables {} threads running on a total of {processors} CPUs. {shared} either the \
             'cpu-map' directives to adjust the CPUs to use, or fix the global 'nbthread' value.",
            bound.len()
        ));
    }
}

/// A path from the root.
fn whole(path: &std::path::Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

/// The pairs of the configuration and of the file, one pair a line.
fn case_adjust(
    mut pairs: Pairs,
    file: Option<(std::path::PathBuf, syntax::Span)>,
    notes: &mut Diagnostics,
) -> Pairs {
    let Some((path, span)) = file else { return pairs };
    let Ok(text) = outside::read_to_string(&path) else {
        let text = format!("h1-headers-case-adjust-file '{}': failed to open file.", whole(&path).display());
        notes.push(refusal(span, text).settling());
        return pairs;
    };
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next(), words.next()) {
            (None, ..) => {}
            (Some(from), Some(to), None) if from.eq_ignore_ascii_case(to) => {
                pairs.push((from.to_ascii_lowercase().into_bytes().into(), to.as_bytes().into()));
            }
            _ => notes.alert(span, format!("h1-case-adjust-file '{}' : line {number} expects <from> and <to> that differ in case only.", path.display())),
        }
    }
    pairs
}
