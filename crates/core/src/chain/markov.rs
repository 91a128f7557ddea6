//! A chain: each state's row of next calls, with probabilities.

use super::transitions::{OfOrder, State, Transitions};

/// A Markov chain of order N over calls.
#[derive(Debug, Clone)]
pub struct Chain {
    order: usize,
    names: Vec<Box<str>>,
    /// Sorted.
    states: Vec<State>,
    rows: Vec<Row>,
    /// By state: sequences that begin with it.
    starts: Vec<u64>,
}

/// The transitions out of one state.
#[derive(Debug, Clone, Default)]
pub struct Row {
    pub edges: Vec<Next>,
    /// The sum of the edges' counts.
    pub total: u64,
}

/// One transition: the next call, the state that it leads to, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    pub call: u16,
    pub state: usize,
    pub count: u64,
}

impl Row {
    /// The probability of an edge of this row. The row's probabilities sum to 1.
    pub fn probability(&self, edge: &Next) -> f64 {
        edge.count as f64 / self.total as f64
    }

    pub fn to(&self, call: u16) -> Option<&Next> {
        self.edges.binary_search_by_key(&call, |edge| edge.call).ok().map(|at| &self.edges[at])
    }
}

impl Chain {
    /// The chain of order 1 to 3 (other orders are clamped). Edges with a probability below `threshold` are dropped and the
    /// rows normalised again; 0 drops none.
    pub fn new(counts: &Transitions, order: usize, threshold: f64) -> Self {
        let order = order.clamp(1, 3);
        let OfOrder { counts: transitions, starts } = counts.of_order(order);
        let mask = State::MAX >> (64 - 16 * order);
        let next = |state: State, call: u16| (state << 16 | State::from(call)) & mask;
        let mut states: Vec<State> = starts.keys().copied().collect();
        states.extend(transitions.keys().flat_map(|(state, call)| [*state, next(*state, *call)]));
        states.sort_unstable();
        states.dedup();
        let place = |state: &State| states.binary_search(state).unwrap_or_default();
        let mut rows = vec![Row::default(); states.len()];
        for ((state, call), count) in &transitions {
            let row = &mut rows[place(state)];
            row.edges.push(Next { call: *call, state: place(&next(*state, *call)), count: *count });
            row.total = row.total.saturating_add(*count);
        }
        for row in &mut rows {
            let total = row.total as f64;
            row.edges.retain(|edge| edge.count as f64 / total >= threshold);
            row.total = row.edges.iter().fold(0, |sum, edge| sum.saturating_add(edge.count));
        }
        let mut begin = vec![0; states.len()];
        for (state, count) in &starts {
            begin[place(state)] = *count;
        }
        Chain { order, names: counts.names().to_vec(), states, rows, starts: begin }
    }

    pub fn order(&self) -> usize {
        self.order
    }

    /// The calls, sorted.
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    pub fn name(&self, call: u16) -> &str {
        self.names.get(usize::from(call)).map_or("", AsRef::as_ref)
    }

    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Rows by state; the row of a state that nothing follows is empty.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Sequences that begin with each state.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The calls of a state, the latest last.
    pub fn calls(&self, state: usize) -> impl Iterator<Item = &str> {
        let key = self.states.get(state).copied().unwrap_or_default();
        (0..self.order).rev().map(move |back| self.name((key >> (16 * back) & 0xffff) as u16))
    }

    /// A state by its calls.
    pub fn state(&self, calls: &[impl AsRef<str>]) -> Option<usize> {
        let number = |name: &str| self.names.binary_search_by(|one| one.as_ref().cmp(name)).ok();
        let key = calls.iter().try_fold(0, |key, call| Some(key << 16 | number(call.as_ref())? as State))?;
        if calls.len() == self.order {
            self.find(key)
        } else {
            None
        }
    }

    pub(super) fn key(&self, state: usize) -> State {
        self.states.get(state).copied().unwrap_or_default()
    }

    pub(super) fn find(&self, key: State) -> Option<usize> {
        self.states.binary_search(&key).ok()
    }

    /// Transitions in all rows.
    pub fn transitions(&self) -> u64 {
        self.rows.iter().fold(0, |sum, row| sum.saturating_add(row.total))
    }
}
