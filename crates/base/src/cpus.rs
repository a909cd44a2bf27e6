//! The processors of the machine: which share a core, a cache, a node of memory, and how strong they are.

use std::path::Path;

/// A processor as the system sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: usize,
    /// The process may run on it.
    pub allowed: bool,
    /// Node of memory.
    pub node: usize,
    /// Processors with the same last cache, and of the same kind.
    pub cluster: usize,
    /// Processors with the same last cache.
    pub complex: usize,
    /// Its core, counted over all of the machine.
    pub core: usize,
    /// Which of the threads of its core it is.
    pub thread: usize,
    /// How much work it does, beside others.
    pub capacity: u64,
}

impl Cpu {
    /// One that nothing is known of, a core of its own.
    pub fn alone(id: usize) -> Cpu {
        Cpu { id, allowed: true, node: 0, cluster: 0, complex: 0, core: id, thread: 0, capacity: 1024 }
    }
}

/// Those that are online, by number; what the system does not tell of is taken for one of its kind. `allowed`
/// are those that the process may run on.
pub fn read(allowed: &[usize]) -> Vec<Cpu> {
    read_below(Path::new("/sys/devices/system"), allowed)
}

fn text(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The numbers in a list such as `0-3,8`.
pub fn list(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
        if to.saturating_sub(from) > 1 << 16 {
            return None;
        }
        all.extend(from..=to);
    }
    Some(all)
}

fn read_below(root: &Path, allowed: &[usize]) -> Vec<Cpu> {
    let online = text(&root.join("cpu/online")).and_then(|t| list(&t)).unwrap_or_else(|| allowed.to_vec());
    let folder = |id: usize| root.join(format!("cpu/cpu{id}"));
    let nodes = nodes(root);
    let mut cpus: Vec<Cpu> = Vec::new();
    let (mut cores, mut complexes) = (Vec::new(), Vec::new());
    for id in online {
        let siblings = text(&folder(id).join("topology/thread_siblings_list")).and_then(|t| list(&t));
        let siblings = siblings.filter(|s| s.contains(&id)).unwrap_or_else(|| vec![id]);
        let last =
            (0..=4).rev().find_map(|n| text(&folder(id).join(format!("cache/index{n}/shared_cpu_list"))));
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(&id)).map_or(0, |(node, _)| *node);
        let shared = last.filter(|_| is_third(&folder(id))).unwrap_or_else(|| format!("node {node}"));
        let thread = siblings.iter().position(|s| *s == id).unwrap_or(0);
        cpus.push(Cpu {
            allowed: allowed.contains(&id),
            node,
            complex: number_of(&mut complexes, shared),
            core: number_of(&mut cores, siblings),
            thread,
            capacity: capacity(&folder(id)),
            ..Cpu::alone(id)
        });
    }
    let mut clusters = Vec::new();
    for cpu in &mut cpus {
        // Processors of one kind do not differ by more than a twentieth.
        let (complex, capacity) = (cpu.complex, cpu.capacity);
        let like = |(of, strong): &(usize, u64)| *of == complex && capacity.abs_diff(*strong) * 20 <= *strong;
        cpu.cluster = clusters.iter().position(like).unwrap_or_else(|| {
            clusters.push((complex, capacity));
            clusters.len() - 1
        });
    }
    cpus
}

/// Whether the last cache of a processor is one of the third level or beyond: others belong to a core.
fn is_third(folder: &Path) -> bool {
    (0..=4).any(|n| text(&folder.join(format!("cache/index{n}/level"))).is_some_and(|level| level == "3"))
}

fn nodes(root: &Path) -> Vec<(usize, Vec<usize>)> {
    let online = text(&root.join("node/online")).and_then(|t| list(&t)).unwrap_or_default();
    let cpus = |node: usize| text(&root.join(format!("node/node{node}/cpulist"))).and_then(|t| list(&t));
    online.into_iter().filter_map(|node| Some((node, cpus(node)?))).collect()
}

fn capacity(folder: &Path) -> u64 {
    let number = |name: &str| text(&folder.join(name))?.parse::<u64>().ok().filter(|n| *n > 0);
    number("cpu_capacity").or_else(|| number("cpufreq/cpuinfo_max_freq")).unwrap_or(1024)
}

/// The place of a value in a list, to which it is added if it is new.
fn number_of<T: PartialEq>(known: &mut Vec<T>, value: T) -> usize {
    known.iter().position(|k| *k == value).unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_those_of_the_kernel() {
        assert_eq!(list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!((list(""), list("x"), list("0-99999999")), (Some(vec![]), None, None));
    }

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = std::env::temp_dir().join(format!("harrier-cpus-{}", std::process::id()));
        let put = |name: &str, content: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, format!("{content}\n")).expect("a file");
        };
        put("cpu/online", "0-3");
        put("node/online", "0-1");
        put("node/node0/cpulist", "0-1");
        put("node/node1/cpulist", "2-3");
        for id in 0..4 {
            let (first, cpu) = (id / 2 * 2, format!("cpu/cpu{id}"));
            let (next, level) = (first + 1, "3");
            put(&format!("{cpu}/topology/thread_siblings_list"), &format!("{first}-{next}"));
            put(&format!("{cpu}/cache/index3/shared_cpu_list"), &format!("{first}-{next}"));
            put(&format!("{cpu}/cache/index3/level"), level);
        }
        put("cpu/cpu3/cpu_capacity", "512");
        let cpus = read_below(&root, &[0, 1, 2]);
        std::fs::remove_dir_all(&root).expect("gone");
        let of =
            |at: usize| (cpus[at].node, cpus[at].complex, cpus[at].cluster, cpus[at].core, cpus[at].thread);
        assert_eq!((of(0), of(1)), ((0, 0, 0, 0, 0), (0, 0, 0, 0, 1)));
        assert_eq!((of(2), of(3)), ((1, 1, 1, 1, 0), (1, 1, 2, 1, 1)));
        assert!(cpus[2].allowed && !cpus[3].allowed && cpus[3].capacity == 512);
        assert_eq!(read_below(&root, &[4]), [Cpu { core: 0, ..Cpu::alone(4) }]);
    }
}
