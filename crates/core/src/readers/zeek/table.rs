//! The connections that are not over, so many at most.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use super::connection::Live;
use crate::flow::Key;

/// With the table full, this share of it goes: those that have been silent the longest.
const EVICTED_SHARE: usize = 16;
/// What has ended is looked for this often at most, in packet time.
const SWEEP_NS: i64 = 2_000_000_000;

/// No place.
const NONE: u32 = u32::MAX;

struct Place {
    live: Live,
    hash: u64,
    /// The next connection with the same hash.
    next: u32,
    is_taken: bool,
}

pub(super) struct Table {
    places: Vec<Place>,
    free: Vec<u32>,
    taken: usize,
    /// The place of the latest connection whose key has a hash: keys are long, and are in the places already.
    index: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    hasher: foldhash::fast::RandomState,
    /// What the last packet belonged to: the next one often does too.
    last: u32,
    max_connections: usize,
    /// What [`Table::drain`] has still to take, the next one last.
    rest: Vec<(u64, u32)>,
    swept_ns: i64,
    packets_since_sweep: usize,
    pub evicted: u64,
}

/// For numbers that are hashes.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }
}

impl Table {
    pub fn new(max_connections: usize) -> Self {
        Table {
            places: Vec::new(),
            free: Vec::new(),
            taken: 0,
            index: HashMap::default(),
            hasher: foldhash::fast::RandomState::default(),
            last: NONE,
            max_connections: max_connections.clamp(1, NONE as usize - 1),
            rest: Vec::new(),
            swept_ns: i64::MIN,
            packets_since_sweep: 0,
            evicted: 0,
        }
    }

    /// The connection of a key; its hash is needed to insert one where there is none.
    #[inline]
    pub fn find(&mut self, key: &Key) -> Result<u32, u64> {
        if let Some(place) = self.places.get(self.last as usize) {
            if place.live.key == *key && place.is_taken {
                return Ok(self.last);
            }
        }
        let hash = self.hasher.hash_one(key);
        let mut at = self.index.get(&hash).copied().unwrap_or(NONE);
        while let Some(place) = self.places.get(at as usize) {
            if place.live.key == *key {
                self.last = at;
                return Ok(at);
            }
            at = place.next;
        }
        Err(hash)
    }

    #[inline]
    pub fn get(&mut self, at: u32) -> Option<&mut Live> {
        self.places.get_mut(at as usize).filter(|place| place.is_taken).map(|place| &mut place.live)
    }

    /// Makes room first, for which `ended` may be handed connections. `hash` is what [`Table::find`] gave.
    pub fn insert(&mut self, live: Live, hash: u64, mut ended: impl FnMut(&mut Live)) -> u32 {
        if self.taken >= self.max_connections {
            self.evict(&mut ended);
        }
        let new = self.free.pop().unwrap_or(self.places.len() as u32);
        let next = self.index.insert(hash, new).unwrap_or(NONE);
        let place = Place { live, hash, next, is_taken: true };
        match self.places.get_mut(new as usize) {
            Some(free) => *free = place,
            None => self.places.push(place),
        }
        self.taken += 1;
        self.last = new;
        new
    }

    /// Takes a connection out; it stays where it is until its place is needed.
    pub fn remove(&mut self, at: u32) -> Option<&mut Live> {
        let place = self.places.get_mut(at as usize).filter(|place| place.is_taken)?;
        place.is_taken = false;
        let (hash, next) = (place.hash, place.next);
        self.unlink(at, hash, next);
        self.taken -= 1;
        self.free.push(at);
        self.places.get_mut(at as usize).map(|place| &mut place.live)
    }

    fn unlink(&mut self, at: u32, hash: u64, next: u32) {
        match self.index.get_mut(&hash) {
            Some(first) if *first == at && next == NONE => {
                self.index.remove(&hash);
            }
            Some(first) if *first == at => *first = next,
            Some(first) => {
                let mut before = *first;
                while let Some(place) = self.places.get_mut(before as usize) {
                    if place.next == at {
                        place.next = next;
                        break;
                    }
                    before = place.next;
                }
            }
            None => {}
        }
    }

    /// Takes out what has ended by `now`. Only memory and the rows' order depend on when this is done.
    #[inline]
    pub fn sweep(&mut self, now: i64, ended: impl FnMut(&mut Live)) {
        self.packets_since_sweep += 1;
        // Not for so few packets that looking would cost more than they do.
        if now.saturating_sub(self.swept_ns) >= SWEEP_NS && self.packets_since_sweep > self.taken / 4 {
            self.sweep_now(now, ended);
        }
    }

    #[cold]
    fn sweep_now(&mut self, now: i64, ended: impl FnMut(&mut Live)) {
        self.swept_ns = now;
        self.packets_since_sweep = 0;
        let over = self.chosen(|live| (live.end_ns() <= now).then_some(()));
        self.take(over, ended);
    }

    #[cold]
    fn evict(&mut self, ended: &mut impl FnMut(&mut Live)) {
        let mut silent = self.chosen(|live| Some(live.last_ns()));
        let share = (silent.len() / EVICTED_SHARE).max(1).min(silent.len());
        if share < silent.len() {
            silent.select_nth_unstable(share);
            silent.truncate(share);
        }
        self.evicted += silent.len() as u64;
        self.take(silent, ended);
    }

    /// (order, number, place) of the connections that have an order.
    fn chosen<Order>(&self, order: impl Fn(&Live) -> Option<Order>) -> Vec<(Order, u64, u32)> {
        let one = |(at, place): (usize, &Place)| {
            let live = place.is_taken.then_some(&place.live)?;
            Some((order(live)?, live.number, at as u32))
        };
        self.places.iter().enumerate().filter_map(one).collect()
    }

    /// In the order of their first packets.
    fn take<Order>(&mut self, mut chosen: Vec<(Order, u64, u32)>, mut ended: impl FnMut(&mut Live)) {
        chosen.sort_unstable_by_key(|(_, number, _)| *number);
        let first = self.free.len();
        for (_, _, at) in chosen {
            if let Some(live) = self.remove(at) {
                ended(live);
            }
        }
        // Used again in the same order: connections of one time stay neighbours.
        self.free[first..].reverse();
    }

    /// So many of what is left, in the order of their first packets; false when nothing is. Nothing may be inserted
    /// in between.
    pub fn drain(&mut self, at_most: usize, mut ended: impl FnMut(&mut Live)) -> bool {
        if self.rest.is_empty() {
            let mut rest: Vec<(u64, u32)> = self.chosen(|_| Some(())).iter().map(|&(_, n, at)| (n, at)).collect();
            rest.sort_unstable_by(|one, other| other.cmp(one));
            self.rest = rest;
        }
        for _ in 0..at_most {
            let Some((_, at)) = self.rest.pop() else { break };
            if let Some(live) = self.remove(at) {
                ended(live);
            }
        }
        !self.rest.is_empty()
    }
}
