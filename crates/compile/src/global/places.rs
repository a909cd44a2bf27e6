//! Which processors the threads run on, and how many threads there are (`cpu-set`, `cpu-policy`,
//! `cpu-affinity`; manual, section 3.1).
//!
//! Groups of threads have no processors of their own, so a policy that would make a group of each cluster
//! only chooses processors. `cpu-map` says all of it itself: then nothing of this counts.

use base::cpus::Cpu;
use syntax::{Line, Modifier, Tree};

use super::limits::{MAX_THREADS, cpu_range};

/// How many threads there are, and the processors of each; none: it is free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Threads.
    pub threads: usize,
    /// For each its processors.
    pub affinity: Vec<Vec<usize>>,
}

/// What processors a `cpu-set` directive is about.
type Trait = fn(&Cpu) -> usize;

/// The directives of `cpu-set` that have a set, what they call it, and what it is about.
pub(crate) const SETS: &[(&str, &str, Trait)] = &[
    ("cpu", "CPU", |cpu| cpu.id),
    ("node", "node", |cpu| cpu.node),
    ("cluster", "cluster", |cpu| cpu.cluster),
    ("core", "core", |cpu| cpu.core),
    ("thread", "thread", |cpu| cpu.thread),
];

/// The numbers of a set of `cpu-set`; `None`: it is none.
pub(crate) fn set(text: &str) -> Option<Vec<std::ops::RangeInclusive<usize>>> {
    let part = |part: &str| {
        let range = cpu_range(part)?;
        Some(*range.start() as usize..=*range.end() as usize)
    };
    text.split(',').map(part).collect()
}

/// What was said.
struct Said<'t> {
    lines: Vec<&'t Line>,
    threads: Option<usize>,
    most: usize,
    policy: &'t str,
    one_each: bool,
    affinity: &'t str,
    numa: bool,
}

impl<'t> Said<'t> {
    fn of(tree: &'t Tree) -> Said<'t> {
        let lines: Vec<&Line> = tree.with_word("global").flat_map(|(_, section)| &section.lines).collect();
        let last = |keyword: &str| lines.iter().rev().find(|line| line.keyword() == keyword);
        let word = |keyword: &str, at: usize| last(keyword)?.args().get(at).map(|word| word.text());
        let number = |keyword: &str| word(keyword, 0)?.parse::<usize>().ok().filter(|n| *n > 0);
        let most = number("thread-hard-limit").unwrap_or(usize::MAX).min(MAX_THREADS as usize);
        let policy = word("cpu-policy", 0).unwrap_or("performance");
        let one_each =
            word("cpu-policy", 1) == Some("threads-per-core") && word("cpu-policy", 2) == Some("1");
        let affinity = word("cpu-affinity", 0).unwrap_or("auto");
        let numa = last("numa-cpu-mapping").is_none_or(|line| line.modifier() == Modifier::Set);
        Said { threads: number("nbthread"), most, policy, one_each, affinity, numa, lines }
    }

    fn with(&self, keyword: &str) -> impl Iterator<Item = &'t Line> {
        self.lines.iter().copied().filter(move |line| line.keyword() == keyword)
    }

    /// What `cpu-set` leaves of the processors; all that may be used, if it would leave none.
    fn chosen(&self, machine: &[Cpu]) -> Vec<Cpu> {
        let mut pool: Vec<Cpu> = machine.iter().copied().filter(|cpu| cpu.allowed).collect();
        let mut all = pool.clone();
        for line in self.with("cpu-set") {
            let mut words = line.args().iter().map(|word| word.text());
            while let Some(word) = words.next() {
                if word == "reset" {
                    (pool, all) = (machine.to_vec(), machine.to_vec());
                    continue;
                }
                let (only, name) = match (word.strip_prefix("only-"), word.strip_prefix("drop-")) {
                    (Some(name), _) => (true, name),
                    (_, Some(name)) => (false, name),
                    _ => continue,
                };
                let known = SETS.iter().find(|(known, ..)| *known == name);
                let (Some((.., of)), Some(set)) = (known, words.next().and_then(set)) else { continue };
                pool.retain(|cpu| set.iter().any(|range| range.contains(&of(cpu))) == only);
            }
        }
        if pool.is_empty() { all } else { pool }
    }

    /// What a policy leaves of them.
    fn by_policy(&self, machine: &[Cpu], mut pool: Vec<Cpu>) -> Vec<Cpu> {
        let free = machine.iter().all(|cpu| cpu.allowed);
        match self.policy {
            "first-usable-node" if self.numa && free => {
                let node = pool.iter().map(|cpu| cpu.node).min();
                pool.retain(|cpu| Some(cpu.node) == node);
            }
            // Clusters far weaker than the next stronger one, and all that are weaker still.
            "performance" => keep(&mut pool, true, |strong, next| next * 100 < strong * 80),
            "efficiency" => keep(&mut pool, false, |weak, next| next * 100 > weak * 125),
            "resource" => {
                let least = clusters(&pool).into_iter().min_by_key(|(_, strong, count)| (*strong, *count));
                pool.retain(|cpu| least.is_none_or(|(cluster, ..)| cpu.cluster == cluster));
            }
            _ => {}
        }
        if self.one_each {
            let mut cores = Vec::new();
            pool.retain(|cpu| {
                let first = !cores.contains(&cpu.core);
                cores.extend(first.then_some(cpu.core));
                first
            });
        }
        pool
    }
}

/// The clusters of processors, with the strength of one and how many there are.
fn clusters(pool: &[Cpu]) -> Vec<(usize, u64, usize)> {
    let mut all: Vec<(usize, u64, usize)> = Vec::new();
    for cpu in pool {
        match all.iter_mut().find(|(cluster, ..)| *cluster == cpu.cluster) {
            Some((.., count)) => *count += 1,
            None => all.push((cpu.cluster, cpu.capacity, 1)),
        }
    }
    all
}

/// Keeps the strongest clusters, or the weakest, up to the first that is `apart` from the one before it.
fn keep(pool: &mut Vec<Cpu>, strongest: bool, apart: fn(u64, u64) -> bool) {
    let mut order = clusters(pool);
    order.sort_by_key(|(_, strong, _)| if strongest { u64::MAX - strong } else { *strong });
    let end = order.windows(2).position(|pair| apart(pair[0].1, pair[1].1)).map_or(order.len(), |at| at + 1);
    pool.retain(|cpu| order[..end].iter().any(|(cluster, ..)| *cluster == cpu.cluster));
}

/// Places the threads that a configuration asks for.
pub(crate) fn place(tree: &Tree, machine: &[Cpu]) -> Placed {
    let said = Said::of(tree);
    let allowed: Vec<usize> = machine.iter().filter(|cpu| cpu.allowed).map(|cpu| cpu.id).collect();
    let limit = |threads: usize| threads.clamp(1, said.most);
    if said.with("cpu-map").next().is_some() {
        return Placed { threads: limit(said.threads.unwrap_or(allowed.len())), affinity: Vec::new() };
    }
    let ids = |cpus: &[Cpu]| cpus.iter().map(|cpu| cpu.id).collect::<Vec<_>>();
    let bound = |set: Vec<usize>| if set == allowed { Vec::new() } else { set };
    let pool = said.chosen(machine);
    if let Some(threads) = said.threads {
        let threads = limit(threads);
        return Placed { threads, affinity: vec![bound(ids(&pool)); threads] };
    }
    if said.policy == "none" {
        let threads = limit(pool.len());
        return Placed { threads, affinity: vec![bound(ids(&pool)); threads] };
    }
    let enabled = pool.clone();
    let pool = said.by_policy(machine, pool);
    let threads = limit(pool.len());
    let among = |of: Trait, cpu: &Cpu| {
        let same: Vec<Cpu> = enabled.iter().copied().filter(|other| of(other) == of(cpu)).collect();
        ids(&same)
    };
    let each = |set: &dyn Fn(&Cpu) -> Vec<usize>| pool.iter().take(threads).map(set).collect();
    let affinity = match (said.affinity, said.one_each) {
        ("per-thread", _) => each(&|cpu| vec![cpu.id]),
        ("per-core", _) | ("auto", true) => each(&|cpu| among(|c| c.core, cpu)),
        ("per-ccx", _) => each(&|cpu| bound(among(|c| c.complex, cpu))),
        _ => vec![bound(ids(pool.get(..threads).unwrap_or(&pool))); threads],
    };
    Placed { threads, affinity }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of two cores of two threads each; the second node is half as strong.
    fn machine() -> Vec<Cpu> {
        let cpu = |id: usize| Cpu {
            node: id / 4,
            cluster: id / 4,
            complex: id / 4,
            core: id / 2,
            thread: id % 2,
            capacity: if id < 4 { 1000 } else { 500 },
            ..Cpu::alone(id)
        };
        (0..8).map(cpu).collect()
    }

    fn placed(global: &str) -> (usize, Vec<Vec<usize>>) {
        let text = format!("global\n{global}\n");
        let grammar = syntax::Grammar { sections: syntax::SECTION_WORDS, facts: &syntax::PlainBuild };
        let source = syntax::Source::new("t.cfg", text.into_bytes());
        let reading = syntax::read(vec![source], syntax::Environment::new(), grammar);
        let Placed { threads, affinity } = place(&reading.tree, &machine());
        (threads, affinity)
    }

    #[test]
    fn sets_choose_processors() {
        assert_eq!(placed(" cpu-policy none\n"), (8, vec![vec![]; 8]));
        assert_eq!(placed(" cpu-set drop-node 1\n cpu-set only-thread 0\n"), (2, vec![vec![0, 2]; 2]));
        assert_eq!(placed(" cpu-set only-cpu 1,4-5\n nbthread 2\n"), (2, vec![vec![1, 4, 5]; 2]));
        assert_eq!(placed(" cpu-set only-core 9\n cpu-policy none\n").0, 8, "none is no choice");
        assert_eq!(placed(" cpu-set only-cpu 1\n cpu-map 1/1 0\n"), (8, vec![]));
    }

    #[test]
    fn policies_choose_processors() {
        assert_eq!(placed(""), (4, vec![vec![0, 1, 2, 3]; 4]), "the strong ones");
        assert_eq!(placed(" cpu-policy efficiency\n").1[0], [4, 5, 6, 7]);
        assert_eq!(placed(" cpu-policy resource\n").1[0], [4, 5, 6, 7]);
        assert_eq!(placed(" cpu-policy first-usable-node\n").1[0], [0, 1, 2, 3]);
        assert_eq!(placed(" no numa-cpu-mapping\n cpu-policy first-usable-node\n"), (8, vec![vec![]; 8]));
        let cores = vec![vec![0, 1], vec![2, 3]];
        assert_eq!(placed(" cpu-policy performance threads-per-core 1\n"), (2, cores));
        assert_eq!(placed(" thread-hard-limit 1\n"), (1, vec![vec![0]]));
    }

    #[test]
    fn threads_are_bound_as_was_said() {
        assert_eq!(placed(" cpu-affinity per-thread\n").1, [[0], [1], [2], [3]]);
        assert_eq!(placed(" cpu-affinity per-core\n").1, [[0, 1], [0, 1], [2, 3], [2, 3]]);
        assert_eq!(placed(" cpu-policy group-by-ccx\n cpu-affinity per-ccx\n").1[4], [4, 5, 6, 7]);
        let one = placed(" cpu-policy group-by-ccx threads-per-core 1\n cpu-affinity per-thread\n").1;
        assert_eq!(one, [[0], [2], [4], [6]]);
        assert_eq!(placed(" nbthread 2\n cpu-affinity per-thread\n"), (2, vec![vec![]; 2]));
    }
}
