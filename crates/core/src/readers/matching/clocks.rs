//! How far apart the two captures' clocks are, roughly, so that both can be read side by side.
//!
//! One direction shows only the sum of clock offset and delay. Both directions show which capture is at the sender's
//! side: packets go from first to second in the direction with the larger differences (second capture's time less the
//! first's).

use std::collections::{HashMap, VecDeque};

use super::packet::{Identity, Seen};
use crate::flow::Key;

/// Packets at the start of each capture that are compared; what each holds in memory at most.
pub const COMPARED: usize = 1 << 16;

type Sighting = (Key, bool, Identity);

/// Second clock less first clock, such that as many packets as possible are read at their sender's side first; `None`
/// where the two have nothing in common.
pub(super) fn offset(first: &VecDeque<Seen>, second: &VecDeque<Seen>) -> Option<i64> {
    let mut sighted: HashMap<Sighting, Option<i64>, foldhash::fast::RandomState> = HashMap::default();
    for seen in first {
        let sighting = (seen.key, seen.sender_is_low, seen.identity);
        // A packet that comes twice tells nothing.
        sighted.entry(sighting).and_modify(|time| *time = None).or_insert(Some(seen.time_ns));
    }
    /// Least and greatest difference of the high end's packets and the low end's.
    type Extremes = [Option<(i64, i64)>; 2];
    let mut connections: HashMap<Key, Extremes, foldhash::fast::RandomState> = HashMap::default();
    let mut least: Option<i64> = None;
    for seen in second {
        let sighting = (seen.key, seen.sender_is_low, seen.identity);
        let Some(Some(time)) = sighted.get(&sighting).copied() else { continue };
        let difference = seen.time_ns.saturating_sub(time);
        least = Some(least.map_or(difference, |least| least.min(difference)));
        let extremes = &mut connections.entry(seen.key).or_default()[usize::from(seen.sender_is_low)];
        let (low, high) = extremes.unwrap_or((difference, difference));
        *extremes = Some((low.min(difference), high.max(difference)));
    }
    let between = |extremes: &Extremes| {
        let [Some(high), Some(low)] = *extremes else { return None };
        // From the latest of those that go back to the earliest of those that go there.
        let (back, there) = if high.0 > low.1 { (low.1, high.0) } else { (high.1, low.0) };
        (back < there).then_some((back, there))
    };
    let narrowest =
        connections.values().filter_map(between).min_by_key(|(back, there)| (there.saturating_sub(*back), *back));
    match narrowest {
        Some((back, there)) => Some(back.saturating_add(there.saturating_sub(back) / 2)),
        None => least,
    }
}
