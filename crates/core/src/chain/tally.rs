//! Counts of a trace: one pass, memory by what is distinct in it.

use super::grams::Grams;
use super::totals::CallTotals;
use super::transitions::{Gram, Transitions, START};
use crate::syscall::{Call, CallNames, Event, Program, Sink, Slot, Summary, Trace};

/// The calls of each sequence that count: not the first `skip`, and then at most `limit`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    pub skip: u64,
    pub limit: Option<u64>,
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
    /// All calls in the trace, also those outside of the cut. In a count file, the calls that count.
    pub calls: u64,
    /// Entry of the first and last call, on the trace's clock.
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
}

/// A sink that counts.
pub struct Tally {
    cut: Cut,
    sequences: Vec<Sequence>,
    /// By [`Program::index`] plus one. The first is that of calls without a program's name.
    programs: Vec<Option<Box<OfProgram>>>,
    calls: u64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
}

/// Where a thread is in its sequence of calls.
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

    /// Adds a count made elsewhere, of a call after three others.
    pub fn add(&mut self, program: Program, gram: [Option<Call>; 4], count: u64) {
        let packed = gram.iter().fold(0, |packed, call| packed << 16 | u64::from(call.unwrap_or(START)));
        self.calls = self.calls.saturating_add(count);
        self.program(program).grams.add(packed, count);
    }

    /// Adds totals made elsewhere.
    pub fn add_totals(&mut self, program: Program, call: Call, more: &CallTotals) {
        self.program(program).totals(call).add(more);
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
