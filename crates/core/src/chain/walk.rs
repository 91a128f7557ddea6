//! How likely a sequence is under a chain.
//!
//! The probability of a walk is the product of the probabilities of its transitions, each as often as it is taken. So its
//! logarithm is the sum, over the transitions that the sequence has, of count times logarithm: counts are all it takes.
//! The first state is given, not drawn (ICNC 2019, section V-D). A transition that the chain does not have is invalid and
//! makes the probability zero. The sum over the valid transitions is kept as well.

use super::markov::Chain;
use super::transitions::Transitions;

/// Additive smoothing: each of `support` calls is taken to have followed each state `alpha` times more than it did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothing {
    pub alpha: f64,
    /// How many calls there are in all chains and sequences that are held against each other.
    pub support: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Walk {
    pub transitions: u64,
    /// Of these, the ones that the chain does not have.
    pub invalid: u64,
    /// How many different ones are invalid.
    pub invalid_kinds: u64,
    /// log10 of the product over the valid transitions.
    pub log10_valid: f64,
}

impl Walk {
    /// log10 of the walk's probability; minus infinity where a transition is invalid.
    pub fn log10_probability(&self) -> f64 {
        if self.invalid > 0 {
            f64::NEG_INFINITY
        } else {
            self.log10_valid
        }
    }

    /// log10 of the valid transitions' geometric mean; `None` where there is none.
    pub fn log10_per_call(&self) -> Option<f64> {
        let valid = self.transitions.saturating_sub(self.invalid);
        (valid > 0).then(|| self.log10_valid / valid as f64)
    }
}

/// Walks the chain with a sequence that has these counts.
pub fn walk(chain: &Chain, sequence: &Transitions, smoothing: Option<Smoothing>) -> Walk {
    // What the chain does not know gets the number of no call.
    let unknown = u16::MAX;
    let places: Vec<u16> = sequence
        .names()
        .iter()
        .map(|name| chain.names().binary_search(name).ok().and_then(|at| u16::try_from(at).ok()).unwrap_or(unknown))
        .collect();
    let place = |number: u64| places.get((number & 0xffff) as usize).copied().unwrap_or(unknown);
    let mut walk = Walk { transitions: 0, invalid: 0, invalid_kinds: 0, log10_valid: 0.0 };
    let mut sum = Sum::default();
    for ((state, call), count) in sequence.of_order(chain.order()).counts {
        walk.transitions = walk.transitions.saturating_add(count);
        let key = (0..chain.order()).rev().fold(0, |key, back| key << 16 | u64::from(place(state >> (16 * back))));
        let row = chain.find(key).map(|state| &chain.rows()[state]);
        let (taken, total) =
            row.map_or((0, 0), |row| (row.to(place(call.into())).map_or(0, |edge| edge.count), row.total));
        let probability = match smoothing {
            Some(Smoothing { alpha, support }) => (taken as f64 + alpha) / (total as f64 + alpha * support as f64),
            None if taken > 0 => taken as f64 / total as f64,
            None => 0.0,
        };
        if probability > 0.0 {
            sum.add(count as f64 * probability.log10());
        } else {
            walk.invalid = walk.invalid.saturating_add(count);
            walk.invalid_kinds += 1;
        }
    }
    // A certain walk is 0, not -0.
    walk.log10_valid = sum.value() + 0.0;
    walk
}

/// Neumaier's compensated sum (1974, Z. angew. Math. Mech. 54:39).
#[derive(Default)]
pub(super) struct Sum {
    sum: f64,
    compensation: f64,
}

impl Sum {
    pub(super) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.compensation +=
            if self.sum.abs() >= value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
    }

    pub(super) fn value(&self) -> f64 {
        self.sum + self.compensation
    }
}
