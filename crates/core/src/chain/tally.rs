//! Counting a trace: one pass, memory by what is distinct in it.

use std::io::Read;

use super::probe_counts;
use super::transitions::{Gram, Transitions, START};
use crate::error::ReadError;
use crate::syscall::{self, Architecture, Call, CallNames, Event, Kind, Program, Sink, Slot, Summary, Trace};

/// Which calls of each sequence count: not the first `skip`, and then at most `limit`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    pub skip: u64,
    pub limit: Option<u64>,
}

/// What a call comes to in one program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTotals {
    pub calls: u64,
    /// Of these, the ones whose duration is known.
    pub timed: u64,
    /// Their durations together.
    pub duration_ns: u64,
    /// The calls that the timed ones stand for: of a random sample all that returned, else themselves.
    pub represented: u64,
    /// Of a sample: the durations' squares together.
    pub squares_ns2: u128,
    /// Of these, the ones that gave back an error.
    pub errors: u64,
    /// The positive values they gave back, together: bytes, where [`moves_bytes`] says so.
    pub positive: u64,
}

impl CallTotals {
    /// What all represented calls took, in seconds: as the timed ones did in the mean. `None` without any.
    pub fn seconds(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.duration_ns as f64 / 1e9 * (self.represented as f64 / self.timed as f64))
    }

    /// The standard error of [`seconds`](Self::seconds): of a mean from a random sample without replacement of a finite
    /// population (Cochran, Sampling Techniques, 3rd ed., 2.5). 0 where all were timed, `None` where fewer than two of
    /// more were.
    pub fn seconds_standard_error(&self) -> Option<f64> {
        if self.timed == 0 || self.timed >= self.represented {
            return (self.timed > 0).then_some(0.0);
        }
        if self.timed == 1 {
            return None;
        }
        let (timed, represented) = (self.timed as f64, self.represented as f64);
        let sum = self.duration_ns as f64;
        let variance = ((self.squares_ns2 as f64 - sum * sum / timed) / (timed - 1.0)).max(0.0);
        Some(represented * (variance / timed * (1.0 - timed / represented)).sqrt() / 1e9)
    }
}

/// Whether a positive value that a call gives back is a number of bytes. As the probe has it (crates/probe, `call.rs`).
pub fn moves_bytes(call: &str) -> bool {
    const THESE: [&str; 20] = [
        "read",
        "write",
        "pread64",
        "pwrite64",
        "readv",
        "writev",
        "preadv",
        "pwritev",
        "preadv2",
        "pwritev2",
        "sendfile",
        "sendto",
        "recvfrom",
        "sendmsg",
        "recvmsg",
        "splice",
        "tee",
        "vmsplice",
        "copy_file_range",
        "process_vm_readv",
    ];
    THESE.contains(&call)
}

/// The counts of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tallied {
    /// `None` where the trace does not say.
    pub program: Option<Box<str>>,
    pub transitions: Transitions,
    /// By name, sorted.
    pub calls: Vec<(Box<str>, CallTotals)>,
}

/// What the counts came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub summary: Summary,
    /// All calls in the trace, those outside of the cut too; of a count file those that count.
    pub calls: u64,
    /// Entry of the first and last call, on the trace's clock.
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
}

/// Counts a trace or reads a count file. Programs are sorted by name.
pub fn tally(reader: impl Read, architecture: Architecture, cut: Cut) -> Result<(Vec<Tallied>, Source), ReadError> {
    let (kind, reader) = syscall::recognised(reader)?;
    let mut tally = Tally::new(cut);
    let trace = match kind {
        Kind::ProbeCounts => probe_counts::read(reader, architecture, cut, &mut tally)?,
        _ => syscall::read_kind(reader, kind, architecture, &mut tally)?,
    };
    Ok(tally.into_parts(trace))
}

/// As [`tally`], for a file whose bytes are all at hand.
pub fn tally_slice(bytes: &[u8], architecture: Architecture, cut: Cut) -> Result<(Vec<Tallied>, Source), ReadError> {
    if !bytes.starts_with(syscall::perf_data::MAGIC) {
        return tally(bytes, architecture, cut);
    }
    let mut tally = Tally::new(cut);
    let trace = syscall::read_slice(bytes, architecture, &mut tally)?;
    Ok(tally.into_parts(trace))
}

/// A sink that counts.
pub struct Tally {
    cut: Cut,
    sequences: Vec<Sequence>,
    /// By [`Program::index`] plus one; the first is of no name.
    programs: Vec<Option<Box<OfProgram>>>,
    calls: u64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
}

/// Where a thread is.
#[derive(Clone, Copy)]
struct Sequence {
    /// Three calls of 16 bits, the latest lowest.
    past: u64,
    position: u64,
    program: Program,
}

const PAST: u64 = u64::MAX >> 16;
const NEW: Sequence = Sequence { past: PAST, position: 0, program: Program::UNKNOWN };

#[derive(Default)]
struct OfProgram {
    grams: Grams,
    totals: Vec<CallTotals>,
}

impl Sink for Tally {
    #[inline]
    fn call(&mut self, event: &Event) {
        self.calls += 1;
        if let Some(time) = event.time_ns {
            self.first_ns = Some(self.first_ns.map_or(time, |first| first.min(time)));
            self.last_ns = Some(self.last_ns.map_or(time, |last| last.max(time)));
        }
        let thread = event.thread as usize;
        if thread >= self.sequences.len() {
            self.sequences.resize(thread + 1, NEW);
        }
        let sequence = &mut self.sequences[thread];
        if sequence.program != event.program {
            *sequence = Sequence { program: event.program, ..NEW };
        }
        let position = sequence.position;
        sequence.position += 1;
        if position < self.cut.skip || self.cut.limit.is_some_and(|limit| position - self.cut.skip >= limit) {
            return;
        }
        let gram = sequence.past << 16 | u64::from(event.call);
        sequence.past = gram & PAST;
        let failed = event.value.is_some_and(|value| (-4095..0).contains(&value));
        let program = self.program(event.program);
        program.grams.add(gram, 1);
        let totals = program.totals(event.call);
        totals.calls += 1;
        totals.errors += u64::from(failed);
        let positive = event.value.and_then(|value| u64::try_from(value).ok());
        totals.positive = totals.positive.saturating_add(positive.unwrap_or(0));
        if let Some(duration) = event.duration_ns {
            totals.timed += 1;
            totals.represented += 1;
            totals.duration_ns = totals.duration_ns.saturating_add(duration);
        }
    }

    fn end(&mut self, thread: Slot) {
        if let Some(sequence) = self.sequences.get_mut(thread as usize) {
            *sequence = NEW;
        }
    }

    fn thread_gap(&mut self, thread: Slot) {
        if let Some(sequence) = self.sequences.get_mut(thread as usize) {
            sequence.past = PAST;
        }
    }

    fn gap(&mut self) {
        for sequence in &mut self.sequences {
            sequence.past = PAST;
        }
    }
}

impl OfProgram {
    #[inline]
    fn totals(&mut self, call: Call) -> &mut CallTotals {
        let call = usize::from(call);
        if call >= self.totals.len() {
            self.totals.resize(call + 1, CallTotals::default());
        }
        &mut self.totals[call]
    }
}

impl Tally {
    pub fn new(cut: Cut) -> Self {
        Tally { cut, sequences: Vec::new(), programs: Vec::new(), calls: 0, first_ns: None, last_ns: None }
    }

    #[inline]
    fn program(&mut self, program: Program) -> &mut OfProgram {
        let index = program.index().map_or(0, |index| index + 1);
        if index >= self.programs.len() {
            self.programs.resize_with(index + 1, || None);
        }
        self.programs[index].get_or_insert_default()
    }

    /// Counts that somebody else has made: of a call after three others.
    pub fn add(&mut self, program: Program, gram: [Option<Call>; 4], count: u64) {
        let packed = gram.iter().fold(0, |packed, call| packed << 16 | u64::from(call.unwrap_or(START)));
        self.calls = self.calls.saturating_add(count);
        self.program(program).grams.add(packed, count);
    }

    /// Totals that somebody else has made.
    pub fn add_totals(&mut self, program: Program, call: Call, more: &CallTotals) {
        let totals = self.program(program).totals(call);
        totals.calls = totals.calls.saturating_add(more.calls);
        totals.timed = totals.timed.saturating_add(more.timed);
        totals.duration_ns = totals.duration_ns.saturating_add(more.duration_ns);
        totals.represented = totals.represented.saturating_add(more.represented);
        totals.squares_ns2 = totals.squares_ns2.saturating_add(more.squares_ns2);
        totals.errors = totals.errors.saturating_add(more.errors);
        totals.positive = totals.positive.saturating_add(more.positive);
    }

    /// Programs with their counts, and what all came from.
    pub fn into_parts(self, trace: Trace) -> (Vec<Tallied>, Source) {
        let names = std::iter::once(None).chain(trace.programs.names().iter().map(Some));
        let mut programs: Vec<Tallied> = names
            .zip(self.programs)
            .filter_map(|(name, program)| Some(tallied(name.cloned(), program?.as_ref(), &trace.calls)))
            .collect();
        programs.sort_by(|one, two| one.program.cmp(&two.program));
        let source =
            Source { summary: trace.summary, calls: self.calls, first_ns: self.first_ns, last_ns: self.last_ns };
        (programs, source)
    }
}

fn tallied(program: Option<Box<str>>, counted: &OfProgram, calls: &CallNames) -> Tallied {
    let totals = (0_u16..).zip(&counted.totals).filter(|(_, totals)| totals.calls > 0);
    let mut totals: Vec<(Box<str>, CallTotals)> =
        totals.map(|(call, totals)| (calls.of(call).into(), *totals)).collect();
    totals.sort_by(|one, two| one.0.cmp(&two.0));
    let grams = counted.grams.entries().map(|(packed, count)| {
        let gram: Gram = std::array::from_fn(|place| (packed >> (48 - 16 * place) & 0xffff) as u16);
        (gram, count)
    });
    // Only the calls that occur need names.
    let grams: Vec<(Gram, u64)> = grams.collect();
    let mut used: Vec<Call> = grams.iter().flat_map(|(gram, _)| *gram).filter(|call| *call != START).collect();
    used.sort_unstable();
    used.dedup();
    let names: Vec<String> = used.iter().map(|call| calls.of(*call)).collect();
    let place = |call: u16| used.binary_search(&call).ok().and_then(|at| u16::try_from(at).ok()).unwrap_or(START);
    let grams = grams.into_iter().map(|(gram, count)| (gram.map(place), count));
    Tallied { program, transitions: Transitions::new(&names, grams), calls: totals }
}

/// Counts by packed gram: open addressing, since this is looked into for every call.
struct Grams {
    keys: Vec<u64>,
    counts: Vec<u64>,
    used: usize,
    shift: u32,
}

/// No gram: its call would be a start.
const FREE: u64 = u64::MAX;

impl Default for Grams {
    fn default() -> Self {
        Grams::with_bits(6)
    }
}

impl Grams {
    fn with_bits(bits: u32) -> Self {
        Grams { keys: vec![FREE; 1 << bits], counts: vec![0; 1 << bits], used: 0, shift: 64 - bits }
    }

    #[inline]
    fn add(&mut self, key: u64, count: u64) {
        // Knuth's multiplicative hashing by the golden ratio.
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            if self.keys[at] == key {
                self.counts[at] = self.counts[at].saturating_add(count);
                return;
            }
            if self.keys[at] == FREE {
                break;
            }
            at = (at + 1) & (self.keys.len() - 1);
        }
        self.insert(at, key, count);
    }

    #[cold]
    fn insert(&mut self, at: usize, key: u64, count: u64) {
        if key == FREE {
            return;
        }
        self.keys[at] = key;
        self.counts[at] = count;
        self.used += 1;
        if self.used * 2 > self.keys.len() {
            let mut wider = Grams::with_bits(64 - self.shift + 1);
            for (key, count) in self.entries() {
                wider.add(key, count);
            }
            *self = wider;
        }
    }

    fn entries(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.keys.iter().copied().zip(self.counts.iter().copied()).filter(|(key, _)| *key != FREE)
    }
}
