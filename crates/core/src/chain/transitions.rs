//! Counts of what came after what, for the orders 1 to 3 at once.
//!
//! A gram is a call with the three before it. At a sequence's start there are fewer: their places are [`START`]. So every
//! call is the last of exactly one gram, and the counts of lower orders are sums of these, exactly those of the trace.

use std::collections::BTreeMap;

/// The orders that counts hold.
pub const ORDERS: std::ops::RangeInclusive<usize> = 1..=3;

/// Three calls, and the one that came next: places in the sorted list of names, or [`START`].
pub type Gram = [u16; 4];

/// Before the sequence's first call.
pub const START: u16 = u16::MAX;

/// A state of order N: its calls, the latest in the lowest 16 bits.
pub(crate) type State = u64;

/// Counts over sequences. There is no transition between sequences. Two values with the same counts are equal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transitions {
    /// Sorted; each occurs in a gram.
    names: Vec<Box<str>>,
    grams: BTreeMap<Gram, u64>,
}

/// The transitions of one order.
pub(crate) struct OfOrder {
    pub counts: BTreeMap<(State, u16), u64>,
    /// States that sequences begin with. A sequence shorter than the order has none.
    pub starts: BTreeMap<State, u64>,
}

impl Transitions {
    /// Takes counts in any order and repetition. `names` are what the grams' numbers stand for. Grams with a number that has no
    /// name, or with a start after a call, are left out.
    pub fn new(names: &[impl AsRef<str>], grams: impl IntoIterator<Item = (Gram, u64)>) -> Self {
        let mut sorted: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let rank = |name: &str| sorted.binary_search(&name).ok().and_then(|at| u16::try_from(at).ok());
        let ranks: Vec<Option<u16>> =
            names.iter().map(|name| rank(name.as_ref()).filter(|rank| *rank != START)).collect();
        let mut ranked: BTreeMap<Gram, u64> = BTreeMap::new();
        for (gram, count) in grams {
            let place = |number: u16| match number {
                START => Some(START),
                _ => ranks.get(usize::from(number)).copied().flatten(),
            };
            let [Some(third), Some(second), Some(first), Some(call)] = gram.map(place) else { continue };
            let starts_late = second == START && third != START || first == START && second != START;
            if count == 0 || starts_late || call == START {
                continue;
            }
            let total = ranked.entry([third, second, first, call]).or_default();
            *total = total.saturating_add(count);
        }
        let names = sorted.into_iter().map(Into::into).collect();
        Transitions { names, grams: ranked }.without_unused()
    }

    fn without_unused(self) -> Self {
        let mut used = vec![false; self.names.len()];
        for number in self.grams.keys().flatten().filter(|number| **number != START) {
            used[usize::from(*number)] = true;
        }
        if used.iter().all(|used| *used) {
            return self;
        }
        let mut next = 0;
        let places: Vec<u16> = used
            .iter()
            .map(|used| {
                let place = next;
                next += u16::from(*used);
                place
            })
            .collect();
        let place = |number: u16| if number == START { START } else { places[usize::from(number)] };
        let grams = self.grams.into_iter().map(|(gram, count)| (gram.map(place), count)).collect();
        let names = self.names.into_iter().zip(used).filter_map(|(name, used)| used.then_some(name)).collect();
        Transitions { names, grams }
    }

    /// The counts of one sequence.
    pub fn of_sequence(calls: &[impl AsRef<str>]) -> Self {
        let names: Vec<&str> = calls.iter().map(AsRef::as_ref).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let mut past = [START; 3];
        let mut grams: BTreeMap<Gram, u64> = BTreeMap::new();
        for name in names {
            let call = sorted.binary_search(&name).ok().and_then(|at| u16::try_from(at).ok()).unwrap_or(START);
            *grams.entry([past[0], past[1], past[2], call]).or_default() += 1;
            past = [past[1], past[2], call];
        }
        Transitions::new(&sorted, grams)
    }

    /// The counts of all together, with a break between one and the next.
    pub fn pool<'a>(all: impl IntoIterator<Item = &'a Transitions> + Clone) -> Self {
        let mut names: Vec<Box<str>> = all.clone().into_iter().flat_map(|one| one.names.iter().cloned()).collect();
        names.sort_unstable();
        names.dedup();
        let mut grams: BTreeMap<Gram, u64> = BTreeMap::new();
        for one in all {
            for (gram, count) in one.numbered_by(&names).grams {
                let total = grams.entry(gram).or_default();
                *total = total.saturating_add(count);
            }
        }
        Transitions { names, grams }
    }

    /// The calls, sorted.
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// The name of a gram's number; `None` for a start.
    pub fn name(&self, number: u16) -> Option<&str> {
        self.names.get(usize::from(number)).map(AsRef::as_ref)
    }

    pub fn grams(&self) -> impl Iterator<Item = (&Gram, u64)> {
        self.grams.iter().map(|(gram, count)| (gram, *count))
    }

    /// Calls counted.
    pub fn calls(&self) -> u64 {
        self.grams.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Sequences counted: threads, and what follows a gap.
    pub fn sequences(&self) -> u64 {
        let starts = self.grams.iter().filter(|(gram, _)| gram[2] == START);
        starts.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The same counts, numbered by a sorted list of names that has all of theirs.
    pub(crate) fn numbered_by(&self, names: &[Box<str>]) -> Transitions {
        let places: Vec<u16> = self
            .names
            .iter()
            .map(|name| names.binary_search(name).ok().and_then(|at| u16::try_from(at).ok()).unwrap_or(START))
            .collect();
        let place = |number: u16| places.get(usize::from(number)).copied().unwrap_or(START);
        let grams = self.grams.iter().map(|(gram, count)| (gram.map(place), *count)).collect();
        Transitions { names: names.to_vec(), grams }
    }

    pub(crate) fn of_order(&self, order: usize) -> OfOrder {
        let mut of_order = OfOrder { counts: BTreeMap::new(), starts: BTreeMap::new() };
        for (gram, count) in &self.grams {
            // The state before the call, and the state that it leads to.
            let (before, after) = (&gram[3 - order..3], &gram[4 - order..]);
            if before[0] != START {
                let total = of_order.counts.entry((state(before), gram[3])).or_default();
                *total = total.saturating_add(*count);
            } else if after[0] != START {
                let total = of_order.starts.entry(state(after)).or_default();
                *total = total.saturating_add(*count);
            }
        }
        of_order
    }
}

fn state(calls: &[u16]) -> State {
    calls.iter().fold(0, |state, call| state << 16 | u64::from(*call))
}

/// The names of two, sorted.
pub fn names_of_both(one: &Transitions, two: &Transitions) -> Vec<Box<str>> {
    let mut names = [one.names(), two.names()].concat();
    names.sort_unstable();
    names.dedup();
    names
}
