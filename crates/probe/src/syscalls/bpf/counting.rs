//! Counts that the kernel makes, taken over slice by slice.
//!
//! The kernel's sums only grow, and a slice is what they have grown by. Streams that ended are removed from the kernel, so
//! that there is room for others.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::attached::Attached;
use super::cells::Cells;
use super::layout::{self, about, cell, cell_from_bytes, stream, thread, transition, Identity, Transition};
use super::plan::Purpose;
use crate::bpf::kernel::{Map, MapKind};
use crate::failure::{Failure, Outcome, Tried};
use crate::syscalls::call::{Cell, History, Part, Stream, StreamNumber};
use crate::syscalls::count_file::{CountFile, Counted};
use crate::syscalls::header::Header;
use crate::syscalls::options::{Command, Options};
use crate::syscalls::recorder::{say_ready, Recorder, TICK_NS};
use crate::waiting::{now_ns, StopDescriptor};

const STREAMS: u32 = 16_384;
/// As many ended streams as are worth a look at all transitions.
const ENDED_AT_ONCE: usize = 64;

pub struct Counting {
    attached: Attached,
    numbers_of_cells: Map,
    cells: Map,
    free_blocks: Map,
    streams: Map,
    out: String,
    slice_ns: u64,
    skip: u64,
    /// The sums that were taken over, by transition that the kernel still has.
    taken: HashMap<Transition, Cell>,
    numbers: HashMap<Identity, StreamNumber>,
    next_number: StreamNumber,
}

impl Counting {
    pub fn attach(options: &Options) -> Outcome<Counting> {
        let Command::Count { slice_ns, skip, states, times } = options.command else {
            return Err(Failure::new("a trace is no count"));
        };
        let blocks = states.div_ceil(cell::BLOCK);
        let numbers_of_cells = Map::new(MapKind::Hash, transition::BYTES, 4, blocks.saturating_mul(cell::BLOCK))?;
        let cells = Map::new(MapKind::Array, 4, cell::BYTES, blocks.saturating_add(1).saturating_mul(cell::BLOCK))?;
        cells.update(&[0; 4], &[u8::MAX; cell::BYTES]).tried(|| "fill a BPF map")?;
        let free_blocks = Map::new(MapKind::Stack, 0, 4, blocks)?;
        for block in (1..=blocks).rev() {
            free_blocks.update(&[], &(block * cell::BLOCK).to_ne_bytes()).tried(|| "fill a BPF map")?;
        }
        let streams = Map::new(MapKind::Hash, stream::BYTES, about::BYTES, STREAMS)?;
        let places = Cells { numbers: &numbers_of_cells, cells: &cells, free: &free_blocks };
        let purpose = Purpose::Count { cells: places, streams: &streams, skip, times };
        let attached = Attached::attach(options, purpose)?;
        Ok(Counting {
            attached,
            numbers_of_cells,
            cells,
            free_blocks,
            streams,
            out: options.out.clone(),
            slice_ns,
            skip,
            taken: HashMap::new(),
            numbers: HashMap::new(),
            next_number: 1,
        })
    }

    /// Writes the streams that are new, and returns those that have ended.
    fn look_at_streams(&mut self, file: &mut CountFile) -> Outcome<HashSet<Identity>> {
        let mut ended = HashSet::new();
        let mut fresh = Vec::new();
        self.streams.each(|key, value| {
            let identity = Identity::from_bytes(key);
            if layout::word(value, about::ENDED) != 0 {
                ended.insert(identity);
            }
            if !self.numbers.contains_key(&identity) {
                fresh.push((identity, stream_about(identity, value)));
            }
        })?;
        fresh.sort_unstable_by_key(|(identity, _)| *identity);
        for (identity, about) in fresh {
            self.introduce(file, identity, &about)?;
        }
        Ok(ended)
    }

    fn introduce(&mut self, file: &mut CountFile, identity: Identity, about: &Stream) -> Outcome<StreamNumber> {
        let number = self.next_number;
        self.next_number += 1;
        self.numbers.insert(identity, number);
        file.stream(number, about)?;
        Ok(number)
    }

    /// Writes what was counted since the last time, and removes the streams that had ended before.
    fn take_over(&mut self, file: &mut CountFile, ended: &HashSet<Identity>) -> Outcome<()> {
        let mut grown: Vec<(Transition, Cell)> = Vec::new();
        let mut over = Vec::new();
        let mut numbered = Vec::new();
        self.numbers_of_cells
            .each(|key, value| numbered.push((Transition::from_bytes(key), layout::word(value, 0))))?;
        // Cells are read after their numbers, so that each is its transition's.
        let highest = numbered.iter().map(|(_, number)| *number as usize).max();
        let mut cells = Vec::new();
        self.cells.first(highest.map_or(0, |number| number + 1), |_, value| cells.push(cell_from_bytes(value)))?;
        for (transition, number) in numbered {
            let cell = cells[number as usize];
            let before = match ended.contains(&transition.stream) {
                true => {
                    over.push((transition, number));
                    self.taken.remove(&transition).unwrap_or_default()
                }
                false => self.taken.insert(transition, cell).unwrap_or_default(),
            };
            if cell != before {
                grown.push((transition, cell - before));
            }
        }
        self.write(file, grown)?;
        let mut free = BTreeSet::new();
        for (transition, number) in over {
            self.numbers_of_cells.delete(&transition.to_bytes()).tried(|| "empty a BPF map")?;
            free.insert(number - number % cell::BLOCK);
        }
        // A block belongs to one stream, and nothing of this stream is left.
        for block in free {
            self.free_blocks.update(&[], &block.to_ne_bytes()).tried(|| "empty a BPF map")?;
        }
        let mut gone = Vec::new();
        for identity in ended {
            self.streams.delete(&identity.to_bytes()).tried(|| "empty a BPF map")?;
            gone.extend(self.numbers.remove(identity));
        }
        gone.sort_unstable();
        for number in gone {
            file.ended(number)?;
        }
        file.lost(self.attached.newly_lost()?)
    }

    fn write(&mut self, file: &mut CountFile, grown: Vec<(Transition, Cell)>) -> Outcome<()> {
        let mut counted = Vec::with_capacity(grown.len());
        for (Transition { stream: identity, history, part }, cell) in grown {
            let stream = match self.numbers.get(&identity) {
                Some(number) => *number,
                // It began since the streams were looked at.
                None => {
                    let mut value = [0; about::BYTES];
                    let about = match self.streams.get(&identity.to_bytes(), &mut value) {
                        Ok(()) => stream_about(identity, &value),
                        // The kernel had no room to keep its name.
                        Err(_) => Stream { tid: identity.tid, tgid: None, name: Vec::new() },
                    };
                    self.introduce(file, identity, &about)?
                }
            };
            counted.push(Counted { stream, part, history, cell });
        }
        file.counts(counted)
    }

    /// Calls that had not returned when the programs were taken away.
    fn take_unfinished(&mut self, file: &mut CountFile) -> Outcome<()> {
        let mut unfinished = Vec::new();
        self.attached.threads.each(|_, kept| {
            if layout::double(kept, thread::IN_CALL) == 0 {
                return;
            }
            let stream =
                Identity { began_ns: layout::double(kept, thread::STREAM), tid: layout::word(kept, thread::TID) };
            let history = History::from_bits(layout::double(kept, thread::HISTORY));
            let part = Part::of(layout::double(kept, thread::INDEX), self.skip);
            unfinished.push((Transition { stream, history, part }, Cell::of(None)));
        })?;
        self.write(file, unfinished)
    }
}

impl Recorder for Counting {
    fn record(mut self: Box<Self>, header: &Header, stop: &StopDescriptor) -> Outcome<()> {
        let mut file = CountFile::create(&self.out, header)?;
        say_ready()?;
        let mut slice = 0;
        loop {
            let end_ns = slice_end(header.start_ns, self.slice_ns, slice);
            if stop.wait(end_ns.min(now_ns() + TICK_NS), &[]).tried(|| "wait")? {
                break;
            }
            let ended = self.look_at_streams(&mut file)?;
            let at_end = now_ns() >= end_ns;
            if at_end || ended.len() >= ENDED_AT_ONCE {
                self.take_over(&mut file, &ended)?;
            }
            // Slices that went by between two looks have their lines too.
            while now_ns() >= slice_end(header.start_ns, self.slice_ns, slice) && at_end {
                let next_ns = slice_end(header.start_ns, self.slice_ns, slice);
                slice += 1;
                file.slice(slice, next_ns)?;
            }
        }
        self.attached.detach()?;
        let end_ns = now_ns();
        let ended = self.look_at_streams(&mut file)?;
        self.take_unfinished(&mut file)?;
        self.take_over(&mut file, &ended)?;
        file.end(end_ns)
    }
}

/// A stream from its value in the map of streams.
fn stream_about(identity: Identity, value: &[u8]) -> Stream {
    let tgid = Some(layout::word(value, about::TGID));
    Stream { tid: identity.tid, tgid, name: layout::name(value, about::NAME) }
}

/// `slice_ns` 0: one slice without an end.
fn slice_end(start_ns: u64, slice_ns: u64, slice: u64) -> u64 {
    match slice_ns {
        0 => u64::MAX,
        length => start_ns.saturating_add(length.saturating_mul(slice + 1)),
    }
}
