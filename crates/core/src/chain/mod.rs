//! Markov chains of system calls: what follows what, how often, and how likely.
//!
//! A state is the last N calls of a thread (N is the chain's order, 1 to 3). The next call leads from it to another state.
//! [`Transitions`] counts these steps for all orders at once. [`Chain`] divides the counts by the totals of their rows.
//! [`compare`] holds two chains against each other. [`walk`] gives how likely a sequence is under a chain, in logarithms, from
//! counts alone.

pub mod compare;
mod grams;
pub mod graph;
mod markov;
mod probe_counts;
mod read;
mod tally;
mod totals;
mod transitions;
mod walk;

pub use compare::{compare, Comparison, Weights};
pub use markov::{Chain, Next, Row};
pub use read::{tally, tally_slice};
pub use tally::{Cut, Source, Tallied, Tally};
pub use totals::CallTotals;
pub use transitions::{names_of_both, Gram, Transitions, ORDERS, START};
pub use walk::{walk, Smoothing, Walk};
