//! A chain as a graph: what pictures and tables of it show.

use super::markov::Chain;

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub calls: Vec<Box<str>>,
    /// Transitions that leave it.
    pub count: u64,
    /// Share of all transitions; `None` where there are none.
    pub share: Option<f64>,
    /// Sequences that begin with it.
    pub starts: u64,
}

/// A directed edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Places in [`states`].
    pub from: usize,
    pub to: usize,
    pub call: Box<str>,
    pub count: u64,
    pub probability: f64,
    /// Share of all transitions.
    pub share: f64,
}

pub fn states(chain: &Chain) -> Vec<State> {
    let all = chain.transitions();
    let rows = chain.rows().iter().zip(chain.starts()).enumerate();
    rows.map(|(state, (row, starts))| State {
        calls: chain.calls(state).map(Into::into).collect(),
        count: row.total,
        share: (all > 0).then(|| row.total as f64 / all as f64),
        starts: *starts,
    })
    .collect()
}

pub fn edges(chain: &Chain) -> Vec<Edge> {
    let all = chain.transitions() as f64;
    let mut edges = Vec::new();
    for (from, row) in chain.rows().iter().enumerate() {
        edges.extend(row.edges.iter().map(|edge| Edge {
            from,
            to: edge.state,
            call: chain.name(edge.call).into(),
            count: edge.count,
            probability: row.probability(edge),
            share: edge.count as f64 / all,
        }));
    }
    edges
}
