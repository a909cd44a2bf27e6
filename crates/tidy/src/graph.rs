//! Circles in a graph.

use std::collections::{BTreeMap, BTreeSet};

/// Who names whom.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// The sets of nodes of which each reaches each other, if they have more than one.
pub fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|node| (node.as_str(), reached(graph, node))).collect();
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for (node, seen) in &reach {
        if circles.iter().any(|circle| circle.contains(*node)) {
            continue;
        }
        let circle: BTreeSet<String> = seen
            .iter()
            .filter(|other| reach.get(*other).is_some_and(|back| back.contains(node)))
            .map(|other| (*other).to_owned())
            .collect();
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles
}

fn reached<'g>(graph: &'g Graph, from: &'g str) -> BTreeSet<&'g str> {
    let mut seen = BTreeSet::new();
    let mut ahead = vec![from];
    while let Some(node) = ahead.pop() {
        for next in graph.get(node).into_iter().flatten() {
            if seen.insert(next.as_str()) {
                ahead.push(next);
            }
        }
    }
    seen
}

#[test]
fn a_circle_is_found_and_a_line_is_none() {
    let edges = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")];
    let mut graph = Graph::new();
    for (from, to) in edges {
        graph.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    let found = circles(&graph);
    assert_eq!(found, [BTreeSet::from(["b".to_owned(), "c".to_owned()])]);
}
