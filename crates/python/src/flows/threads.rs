//! One capture counted on several threads. Each has some of the shards, and counts their frames batch by batch. Whichever
//! is ahead also reads the next batch and says which shard each frame belongs to, and hands on the parts of the rows
//! that were full within the batches that all have counted.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use twinbed_core::capture::{Batch, Batches, Place};
use twinbed_core::error::ReadError;
use twinbed_core::readers::tcptrace::{shard_of, Options, Router, SHARDS};

use super::lane::{Frames, Lane, Part};

/// Batches that are read and not yet counted by all threads, at most.
const WAITING: usize = 16;
/// Whoever has fewer batches than these before it reads on before it counts.
const AHEAD: usize = 4;

/// Some frames of the capture, by shard.
#[derive(Default)]
struct Routed {
    batch: Batch,
    /// The frames before these.
    before: u64,
    /// Number of each frame among these, from 1, and its bin.
    of_shard: [Vec<(u32, u8, Place)>; SHARDS],
}

/// The capture, with whoever reads.
struct Reading<R> {
    batches: Batches<R>,
    router: Router,
    number: u64,
    last_ns: Option<i64>,
}

impl<R: Read> Reading<R> {
    /// Fills `routed` with the next frames; false at the end.
    fn next(&mut self, options: &Options, routed: &mut Routed) -> Result<bool, ReadError> {
        let Routed { batch, before, of_shard } = routed;
        of_shard.iter_mut().for_each(Vec::clear);
        *before = self.number;
        let Reading { batches, router, last_ns, .. } = self;
        let mut count = 0;
        let is_there = batches.next(batch, |frame, place| {
            count += 1;
            *last_ns = frame.time_ns.or(*last_ns);
            let bin = router.bin_of(frame, options);
            of_shard[shard_of(bin)].push((count, bin, place));
        });
        self.number += u64::from(count);
        is_there
    }
}

/// A full part of the rows, with the number of the frame at which it was full.
type Full<P> = (u64, P);

/// A batch that not all threads have counted yet.
struct Waiting<P> {
    routed: Arc<Routed>,
    full: Vec<Full<P>>,
}

struct State<'a, R, P, O> {
    /// `None` while somebody reads.
    reading: Option<Reading<R>>,
    waiting: VecDeque<Waiting<P>>,
    /// Batches counted by all threads: the number of the first one that waits.
    done: usize,
    /// Batches that each thread has counted.
    counted: Vec<usize>,
    /// Full parts of the batches that are done, in order.
    ready: Vec<P>,
    /// `None` while somebody hands them on.
    out: Option<&'a mut O>,
    has_ended: bool,
    has_panicked: bool,
    failed: Option<ReadError>,
    spare: Vec<Routed>,
    /// Parts whose memory is used again.
    emptied: Vec<P>,
}

impl<R, P, O> State<'_, R, P, O> {
    /// A thread has counted its next batch.
    fn counted(&mut self, thread: usize, full: &mut Vec<Full<P>>) {
        let at = self.counted[thread] - self.done;
        self.counted[thread] += 1;
        self.waiting[at].full.append(full);
        let by_all = self.counted.iter().min().copied().unwrap_or(0);
        while self.done < by_all {
            self.done += 1;
            if let Some(Waiting { routed, mut full }) = self.waiting.pop_front() {
                self.spare.extend(Arc::into_inner(routed));
                // A frame is of one shard, and so of one thread, whose parts are in order.
                full.sort_by_key(|(number, _)| *number);
                self.ready.extend(full.into_iter().map(|(_, part)| part));
            }
        }
    }
}

struct Shared<'a, R, P, O> {
    state: Mutex<State<'a, R, P, O>>,
    changed: Condvar,
}

impl<'a, R, P, O> Shared<'a, R, P, O> {
    fn lock(&self) -> MutexGuard<'_, State<'a, R, P, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets nobody wait for a thread that panics; the scope hands the panic on.
struct Leaving<'s, 'a, R, P, O>(&'s Shared<'a, R, P, O>);

impl<R, P, O> Drop for Leaving<'_, '_, R, P, O> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().has_panicked = true;
            self.0.changed.notify_all();
        }
    }
}

/// Reads a capture on `threads` threads, at most one a shard, this one included. `out` takes full parts, and
/// leaves empty ones.
pub fn read_on_threads<R: Read + Send, P: Part, O: FnMut(&mut P) + Send>(
    reader: R,
    options: &Options,
    threads: usize,
    lanes: &mut [Lane<P>; SHARDS],
    empty: &(impl Fn() -> P + Sync),
    out: &mut O,
) -> Result<Frames, ReadError> {
    let threads = threads.min(SHARDS);
    let reading = Reading { batches: Batches::new(reader), router: Router::default(), number: 0, last_ns: None };
    let shared = Shared {
        state: Mutex::new(State {
            reading: Some(reading),
            waiting: VecDeque::new(),
            done: 0,
            counted: vec![0; threads],
            ready: Vec::new(),
            out: Some(out),
            has_ended: false,
            has_panicked: false,
            failed: None,
            spare: Vec::new(),
            emptied: Vec::new(),
        }),
        changed: Condvar::new(),
    };
    let mut of_thread: Vec<Vec<(usize, &mut Lane<P>)>> = (0..threads).map(|_| Vec::new()).collect();
    for (shard, lane) in lanes.iter_mut().enumerate() {
        of_thread[shard % threads].push((shard, lane));
    }
    std::thread::scope(|scope| {
        let mut own = of_thread.into_iter().enumerate();
        let here = own.next();
        for (thread, lanes) in own {
            let shared = &shared;
            scope.spawn(move || work(shared, thread, options, lanes, empty));
        }
        if let Some((thread, lanes)) = here {
            work(&shared, thread, options, lanes, empty);
        }
    });
    let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (state.failed, state.reading) {
        (None, Some(reading)) => Ok(Frames { ended: vec![reading.batches.into_ended()], last_ns: reading.last_ns }),
        (Some(error), _) => Err(error),
        (None, None) => Err(std::io::Error::other("a thread that read the capture has ended").into()),
    }
}

/// Reads, counts and hands on until nothing is left.
fn work<R: Read, P: Part, O: FnMut(&mut P)>(
    shared: &Shared<R, P, O>,
    thread: usize,
    options: &Options,
    mut lanes: Vec<(usize, &mut Lane<P>)>,
    empty: &impl Fn() -> P,
) {
    let _leaving = Leaving(shared);
    let mut full = Vec::new();
    let mut state = shared.lock();
    while !state.has_panicked {
        let before_it = state.done + state.waiting.len() - state.counted[thread];
        let is_ahead = state.counted.iter().all(|counted| *counted <= state.counted[thread]);
        let may_read = !state.has_ended && state.waiting.len() < WAITING;
        let may_hand_on = !state.ready.is_empty() && (is_ahead || before_it == 0);
        if let Some(out) = state.out.take_if(|_| may_hand_on) {
            let mut ready = std::mem::take(&mut state.ready);
            drop(state);
            ready.iter_mut().for_each(&mut *out);
            state = shared.lock();
            state.out = Some(out);
            state.emptied.append(&mut ready);
            shared.changed.notify_all();
        } else if let Some(mut reading) = state.reading.take_if(|_| may_read && before_it < AHEAD) {
            let mut routed = state.spare.pop().unwrap_or_default();
            drop(state);
            let read = reading.next(options, &mut routed);
            state = shared.lock();
            state.reading = Some(reading);
            match read {
                Ok(true) => state.waiting.push_back(Waiting { routed: Arc::new(routed), full: Vec::new() }),
                Ok(false) => state.has_ended = true,
                Err(error) => (state.has_ended, state.failed) = (true, Some(error)),
            }
            shared.changed.notify_all();
        } else if before_it > 0 {
            let routed = state.waiting[state.counted[thread] - state.done].routed.clone();
            let mut emptied = std::mem::take(&mut state.emptied);
            drop(state);
            for (shard, lane) in &mut lanes {
                for (number, bin, place) in &routed.of_shard[*shard] {
                    let (number, frame) = (routed.before + u64::from(*number), routed.batch.frame(place));
                    lane.count(number, &frame, options.usual(&frame).as_ref(), *bin, |part| {
                        let next = emptied.pop().unwrap_or_else(empty);
                        full.push((number, std::mem::replace(part, next)));
                    });
                }
            }
            drop(routed);
            state = shared.lock();
            state.emptied.append(&mut emptied);
            state.counted(thread, &mut full);
            shared.changed.notify_all();
        } else if state.has_ended && state.ready.is_empty() {
            return;
        } else {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
