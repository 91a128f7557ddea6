//! Two chains held against each other.
//!
//! * Edges: the share that only one chain has of all that either has, and the share of its own transitions over them.
//! * Weights: |p - q| of the edges that both have; the mean is weighted by the edges' use.
//! * Rows: the Jensen-Shannon divergence (Lin 1991, IEEE Trans. Inf. Theory 37:145) in bits of the two rows of each state,
//!   averaged with the states' use as weight: D = sum of (u + v)/2 JSD(P, Q), where u and v are the shares of each chain's
//!   transitions that leave the state. A state that one chain does not leave counts as disjoint rows (1 bit). The distance
//!   is sqrt(D): 0 for equal chains, 1 for chains without a common transition.

use super::markov::{Chain, Next, Row};
use super::transitions::{names_of_both, Transitions};
use super::walk::Sum;

/// An edge that at least one chain has.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    pub state: Vec<Box<str>>,
    pub call: Box<str>,
    /// By chain; `None` where it has no such edge.
    pub weights: [Option<Weights>; 2],
}

/// An edge in one chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    pub count: u64,
    pub probability: f64,
    /// The share of the chain's transitions that are this one.
    pub share: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Sorted by state and call.
    pub edges: Vec<Edge>,
    pub shared_edges: u64,
    /// Edges that only the first, or only the second chain has.
    pub only: [u64; 2],
    /// The share of a chain's own transitions over edges that only it has; `None` without transitions.
    pub only_share: [Option<f64>; 2],
    /// Over the shared edges; `None` without any.
    pub greatest_difference: Option<f64>,
    pub mean_difference: Option<f64>,
    /// `None` where a chain has no transitions.
    pub divergence_bits: Option<f64>,
}

impl Comparison {
    /// The share of all edges that only one chain has.
    pub fn different_edges(&self) -> Option<f64> {
        let only = self.only[0] + self.only[1];
        let all = only + self.shared_edges;
        (all > 0).then(|| only as f64 / all as f64)
    }

    /// The square root of the divergence.
    pub fn distance(&self) -> Option<f64> {
        self.divergence_bits.map(f64::sqrt)
    }
}

/// Compares the chains of one order and threshold (see [`Chain::new`]) of two counts.
pub fn compare(one: &Transitions, two: &Transitions, order: usize, threshold: f64) -> Comparison {
    let names = names_of_both(one, two);
    let chains = [one, two].map(|counts| Chain::new(&counts.numbered_by(&names), order, threshold));
    let totals = chains.each_ref().map(|chain| chain.transitions() as f64);
    let mut comparison = Comparison {
        edges: Vec::new(),
        shared_edges: 0,
        only: [0, 0],
        only_share: [None, None],
        greatest_difference: None,
        mean_difference: None,
        divergence_bits: None,
    };
    let (mut weighted, mut weight, mut divergence) = (Sum::default(), Sum::default(), Sum::default());
    let mut only = [Sum::default(), Sum::default()];
    for key in keys(&chains) {
        let rows = chains.each_ref().map(|chain| chain.find(key).map(|state| &chain.rows()[state]));
        let rows = rows.map(|row| row.filter(|row| row.total > 0));
        let Some((holder, at)) = chains.iter().find_map(|chain| Some((chain, chain.find(key)?))) else { continue };
        let state: Vec<Box<str>> = holder.calls(at).map(Into::into).collect();
        let mut row_divergence = Sum::default();
        for (call, edges) in merged(rows) {
            let weights: [Option<Weights>; 2] = std::array::from_fn(|side| {
                let (row, edge) = (rows[side]?, edges[side]?);
                let share = edge.count as f64 / totals[side];
                Some(Weights { count: edge.count, probability: row.probability(edge), share })
            });
            let [p, q] = weights.map(|weights| weights.map_or(0.0, |weights| weights.probability));
            row_divergence.add(divergence_term(p, q));
            match weights {
                [Some(one), Some(two)] => {
                    comparison.shared_edges += 1;
                    let difference = (p - q).abs();
                    let most = comparison.greatest_difference.unwrap_or(0.0);
                    comparison.greatest_difference = Some(most.max(difference));
                    weighted.add((one.share + two.share) * difference);
                    weight.add(one.share + two.share);
                }
                [one, two] => {
                    for (side, weights) in [one, two].into_iter().enumerate() {
                        if let Some(weights) = weights {
                            comparison.only[side] += 1;
                            only[side].add(weights.share);
                        }
                    }
                }
            }
            comparison.edges.push(Edge { state: state.clone(), call: holder.name(call).into(), weights });
        }
        let uses: [f64; 2] = std::array::from_fn(|side| rows[side].map_or(0.0, |row| row.total as f64 / totals[side]));
        let bits = if rows.iter().all(Option::is_some) { row_divergence.value().clamp(0.0, 1.0) } else { 1.0 };
        divergence.add((uses[0] + uses[1]) / 2.0 * bits);
    }
    if comparison.shared_edges > 0 {
        comparison.mean_difference = Some(weighted.value() / weight.value());
    }
    comparison.only_share = std::array::from_fn(|side| (totals[side] > 0.0).then(|| only[side].value()));
    if totals.iter().all(|total| *total > 0.0) {
        comparison.divergence_bits = Some(divergence.value().clamp(0.0, 1.0));
    }
    comparison
}

/// The states that either chain leaves, sorted.
fn keys(chains: &[Chain; 2]) -> Vec<u64> {
    let left = |chain: &Chain| -> Vec<u64> {
        let rows = chain.rows().iter().enumerate();
        rows.filter(|(_, row)| row.total > 0).map(|(state, _)| chain.key(state)).collect()
    };
    let mut keys = [left(&chains[0]), left(&chains[1])].concat();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The calls of two rows, sorted, each with its edge in either.
fn merged(rows: [Option<&Row>; 2]) -> Vec<(u16, [Option<&Next>; 2])> {
    let mut calls: Vec<u16> = rows.iter().flatten().flat_map(|row| row.edges.iter().map(|edge| edge.call)).collect();
    calls.sort_unstable();
    calls.dedup();
    calls.into_iter().map(|call| (call, rows.map(|row| row?.to(call)))).collect()
}

/// One outcome's part of the Jensen-Shannon divergence, in bits.
fn divergence_term(p: f64, q: f64) -> f64 {
    let middle = (p + q) / 2.0;
    let part = |p: f64| if p > 0.0 { p / 2.0 * (p / middle).log2() } else { 0.0 };
    part(p) + part(q)
}
