//! The connections that are followed at a time, found by their endpoints, whichever of these has sent a packet.
//!
//! The readers decide when a packet begins another connection between the same endpoints, and when a connection is over.
//! The table holds a connection until it is removed, and finds the latest one between two endpoints.

use std::hash::BuildHasher;
use std::ops::{Index as At, IndexMut as AtMut};

use super::index::Index;
use super::pair::Pair;
use super::Key;
use crate::wire::Packet;

pub(crate) trait Connection {
    fn key(&self) -> &Key;

    /// Ascends in the order of the connections' first packets.
    fn number(&self) -> u64;
}

/// No place.
const NONE: u32 = u32::MAX;

pub(crate) struct Table<C> {
    places: Vec<C>,
    is_taken: Vec<bool>,
    /// Places that hold no connection; the last one is used first.
    vacant: Vec<u32>,
    /// The latest connection between two endpoints.
    index: Index,
    hasher: foldhash::fast::RandomState,
    /// The place of the last packet's connection, with its endpoints if they are IPv4. The next packet often belongs to it.
    last: (Pair, u32),
}

impl<C> Default for Table<C> {
    fn default() -> Self {
        Table {
            places: Vec::new(),
            is_taken: Vec::new(),
            vacant: Vec::new(),
            index: Index::default(),
            hasher: foldhash::fast::RandomState::default(),
            last: (Pair::default(), NONE),
        }
    }
}

impl<C> At<u32> for Table<C> {
    type Output = C;

    #[inline]
    fn index(&self, at: u32) -> &C {
        &self.places[at as usize]
    }
}

impl<C> AtMut<u32> for Table<C> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut C {
        &mut self.places[at as usize]
    }
}

impl<C: Connection> Table<C> {
    /// The place of the latest connection between a packet's endpoints, and whether the key's low end sent the packet.
    #[inline(always)]
    pub fn find(&mut self, packet: &Packet, source_port: u16, destination_port: u16) -> (Option<u32>, bool) {
        match Pair::of(packet, source_port, destination_port) {
            Some((pair, source_is_low)) if pair == self.last.0 => (Some(self.last.1), source_is_low),
            _ => {
                let (key, source_is_low) = Key::of_packet(packet, source_port, destination_port);
                (self.look_up(key), source_is_low)
            }
        }
    }

    #[inline(never)]
    fn look_up(&mut self, key: Key) -> Option<u32> {
        let is_it = |at: u32| *self.places[at as usize].key() == key;
        let at = if self.last.1 != NONE && is_it(self.last.1) {
            Some(self.last.1)
        } else {
            self.index.find(self.hasher.hash_one(key), is_it)
        };
        if let Some(at) = at {
            self.last = (Pair::of_key(&key), at);
        }
        at
    }

    /// Whether a connection is at this place that is not removed yet.
    pub fn is_taken(&self, at: u32) -> bool {
        self.is_taken.get(at as usize).is_some_and(|is_taken| *is_taken)
    }

    /// How many connections are held.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    pub fn has_vacant(&self) -> bool {
        !self.vacant.is_empty()
    }

    /// Puts in a connection, which is the latest between its endpoints from now on; `before` is what [`Table::find`] gave.
    pub fn insert(&mut self, connection: C, before: Option<u32>) -> u32 {
        let key = *connection.key();
        let at = match self.vacant.pop() {
            Some(at) => {
                self.places[at as usize] = connection;
                at
            }
            None => self.grow(connection),
        };
        self.enter(key, before, at)
    }

    /// As [`Table::insert`]: `begin` writes over whatever the place holds, which costs less where a connection is large.
    pub fn insert_with(&mut self, key: Key, before: Option<u32>, begin: impl FnOnce(&mut C)) -> u32
    where
        C: Default,
    {
        let at = self.vacant.pop().unwrap_or_else(|| self.grow(C::default()));
        begin(&mut self.places[at as usize]);
        self.enter(key, before, at)
    }

    fn grow(&mut self, connection: C) -> u32 {
        self.places.push(connection);
        self.is_taken.push(false);
        (self.places.len() - 1) as u32
    }

    fn enter(&mut self, key: Key, before: Option<u32>, at: u32) -> u32 {
        self.is_taken[at as usize] = true;
        self.index.put(self.hasher.hash_one(key), before, at);
        self.last = (Pair::of_key(&key), at);
        at
    }

    /// Removes a connection; it stays where it is until its place is needed.
    pub fn remove(&mut self, at: u32) -> Option<&mut C> {
        let hash = self.hasher.hash_one(self.places.get(at as usize)?.key());
        self.remove_hashed(at, hash)
    }

    fn remove_hashed(&mut self, at: u32, hash: u64) -> Option<&mut C> {
        if !std::mem::take(self.is_taken.get_mut(at as usize)?) {
            return None;
        }
        self.index.remove(hash, at);
        self.vacant.push(at);
        if self.last.1 == at {
            self.last = (Pair::default(), NONE);
        }
        self.places.get_mut(at as usize)
    }

    /// Removes the connections at these places, in the order of their first packets.
    #[cold]
    pub fn remove_all(&mut self, mut places: Vec<u32>, mut removed: impl FnMut(&mut C)) {
        places.sort_unstable_by_key(|&at| self[at].number());
        let hashes: Vec<u64> = places.iter().map(|&at| self.hasher.hash_one(self[at].key())).collect();
        self.index.fetch(&hashes);
        let first = self.vacant.len();
        for (at, hash) in places.into_iter().zip(hashes) {
            if let Some(connection) = self.remove_hashed(at, hash) {
                removed(connection);
            }
        }
        // Used again in order: connections of one time stay neighbours.
        self.vacant[first..].sort_unstable_by(|one, other| other.cmp(one));
    }

    /// The connections and their places.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &C)> {
        let all = (0u32..).zip(&self.places).zip(&self.is_taken);
        all.filter(|(_, is_taken)| **is_taken).map(|(place, _)| place)
    }

    /// The places of the connections for which `is_chosen` holds.
    pub fn chosen(&self, is_chosen: impl Fn(&C) -> bool) -> Vec<u32> {
        self.iter().filter(|(_, connection)| is_chosen(connection)).map(|(at, _)| at).collect()
    }

    /// The places of the `count` connections that have been silent longest, by `last`. `None` leaves a connection out.
    #[cold]
    pub fn silent<T: Ord>(&self, count: usize, last: impl Fn(&C) -> Option<T>) -> Vec<u32> {
        let one = |(at, connection): (u32, &C)| Some((last(connection)?, connection.number(), at));
        let mut order: Vec<_> = self.iter().filter_map(one).collect();
        if count < order.len() {
            order.select_nth_unstable(count);
            order.truncate(count);
        }
        order.into_iter().map(|(_, _, at)| at).collect()
    }

    /// All places, in the order of the connections' first packets.
    pub fn in_order(&self) -> Vec<u32> {
        let mut order: Vec<(u64, u32)> = self.iter().map(|(at, connection)| (connection.number(), at)).collect();
        // Mostly in order already, which this sort makes use of.
        order.sort();
        order.into_iter().map(|(_, at)| at).collect()
    }
}
