//! The connections that are not over, so many at most.

use std::collections::HashMap;

use super::connection::Live;
use crate::flow::Key;

/// With the table full, this share of it goes: those that have been silent the longest.
const EVICTED_SHARE: usize = 16;
/// What has ended is looked for this often at most, in packet time.
const SWEEP_NS: i64 = 5_000_000_000;

pub(super) struct Table {
    places: Vec<Option<Live>>,
    free: Vec<u32>,
    index: HashMap<Key, u32, foldhash::fast::RandomState>,
    /// What the last packet belonged to: the next one often does too.
    last: Option<(Key, u32)>,
    max_connections: usize,
    swept_ns: i64,
    packets_since_sweep: usize,
    pub evicted: u64,
}

impl Table {
    pub fn new(max_connections: usize) -> Self {
        Table {
            places: Vec::new(),
            free: Vec::new(),
            index: HashMap::default(),
            last: None,
            max_connections: max_connections.clamp(1, u32::MAX as usize),
            swept_ns: i64::MIN,
            packets_since_sweep: 0,
            evicted: 0,
        }
    }

    #[inline]
    pub fn find(&mut self, key: &Key) -> Option<u32> {
        match self.last {
            Some((last, at)) if last == *key => Some(at),
            _ => {
                let at = self.index.get(key).copied()?;
                self.last = Some((*key, at));
                Some(at)
            }
        }
    }

    #[inline]
    pub fn get(&mut self, at: u32) -> Option<&mut Live> {
        self.places.get_mut(at as usize)?.as_mut()
    }

    /// Makes room first, for which `ended` may be handed connections.
    pub fn insert(&mut self, live: Live, mut ended: impl FnMut(Live)) -> u32 {
        if self.index.len() >= self.max_connections {
            self.evict(&mut ended);
        }
        let key = live.key;
        let at = match self.free.pop() {
            Some(at) => {
                self.places[at as usize] = Some(live);
                at
            }
            None => {
                self.places.push(Some(live));
                (self.places.len() - 1) as u32
            }
        };
        self.index.insert(key, at);
        self.last = Some((key, at));
        at
    }

    pub fn remove(&mut self, at: u32) -> Option<Live> {
        let live = self.places.get_mut(at as usize)?.take()?;
        self.free.push(at);
        self.index.remove(&live.key);
        self.last = None;
        Some(live)
    }

    /// Takes out what has ended by `now`, in the order of its end. Only memory depends on when this is done.
    #[inline]
    pub fn sweep(&mut self, now: i64, ended: impl FnMut(Live)) {
        self.packets_since_sweep += 1;
        // Not for so few packets that looking would cost more than they do.
        if now.saturating_sub(self.swept_ns) >= SWEEP_NS && self.packets_since_sweep > self.index.len() / 4 {
            self.sweep_now(now, ended);
        }
    }

    #[cold]
    fn sweep_now(&mut self, now: i64, ended: impl FnMut(Live)) {
        self.swept_ns = now;
        self.packets_since_sweep = 0;
        let over = self.chosen(|live| (live.end_ns() <= now).then(|| live.end_ns()));
        self.take(over, ended);
    }

    #[cold]
    fn evict(&mut self, ended: &mut impl FnMut(Live)) {
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
    fn chosen(&self, order: impl Fn(&Live) -> Option<i64>) -> Vec<(i64, u64, u32)> {
        let one = |(at, place): (usize, &Option<Live>)| {
            let live = place.as_ref()?;
            Some((order(live)?, live.number, at as u32))
        };
        self.places.iter().enumerate().filter_map(one).collect()
    }

    fn take(&mut self, mut chosen: Vec<(i64, u64, u32)>, mut ended: impl FnMut(Live)) {
        chosen.sort_unstable();
        for (_, _, at) in chosen {
            if let Some(live) = self.remove(at) {
                ended(live);
            }
        }
    }

    /// The rest, in the order of their first packets.
    pub fn drain(&mut self, ended: impl FnMut(Live)) {
        let all = self.chosen(|_| Some(0));
        self.take(all, ended);
    }
}
