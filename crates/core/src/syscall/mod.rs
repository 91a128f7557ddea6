//! Traces of system calls, whoever made them: one event a call, in the order in which each thread made its calls.
//!
//! | kind | made by | thread, program | time, duration, value |
//! |---|---|---|---|
//! | [`strace`] | `strace -f [-t\|-tt\|-ttt] [-T] [-Y]` | yes, by execve or `-Y` | as asked for |
//! | [`ftrace`] | `perf script` of raw_syscalls, `trace-cmd report`, a trace file of tracefs | yes, yes | yes |
//! | [`perf_data`] | `perf record -e raw_syscalls:*` | yes, yes | yes |
//! | [`sysdig`] | `sysdig -r` | yes, yes | yes |
//! | [`plain`] | anything: numbers or names | no | no |
//! | [`probe_trace`] | `twinbed-probe syscalls trace` | yes, yes | yes |
//! | [`crate::chain`] | `twinbed-probe syscalls count` | counts, no events | |
//!
//! The kind is recognised by what is in the file. Everything is read as a stream; what is held is what each living
//! thread is in, never the trace. A call that has not returned (`exit_group`, or the trace ends) has no duration.

pub mod architecture;
pub mod ftrace;
mod kind;
pub(crate) mod lines;
pub mod names;
pub(crate) mod numbers;
mod perf_compressed;
pub mod perf_data;
mod perf_order;
mod perf_records;
mod perf_session;
mod perf_tracepoints;
pub mod plain;
pub mod probe_trace;
pub mod strace;
pub mod sysdig;
pub(crate) mod threads;

use std::io::Read;

pub use architecture::Architecture;
pub use kind::{recognised, Kind, RECOGNISED_BYTES};
pub use names::{Call, CallNames, Program, Programs};
pub use threads::Slot;

use crate::capture::{Counts, Window};
use crate::error::{Error, ReadError};
use lines::{Line, Lines};
use threads::{State, Threads};

/// One call of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// A thread while it lives; a later one may have the same.
    pub thread: Slot,
    pub program: Program,
    /// Of the entry, on the trace's own clock.
    pub time_ns: Option<i64>,
    pub call: Call,
    pub duration_ns: Option<u64>,
    /// What the call gave back; -4095 to -1 are errors (of which strace's text gives only -1).
    pub value: Option<i64>,
}

/// What takes a trace's calls.
pub trait Sink {
    fn call(&mut self, event: &Event);
    /// The thread has ended; its number may be used again.
    fn end(&mut self, thread: Slot);
    /// Calls of this thread are missing here.
    fn thread_gap(&mut self, thread: Slot);
    /// Calls of any thread may be missing here.
    fn gap(&mut self);
}

/// Facts about a trace that are not calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub kind: Kind,
    pub architecture: Architecture,
    /// Lines, records or entries that are no call, by reason.
    pub skipped: Counts,
    /// Calls that are there, but odd.
    pub notes: Counts,
    /// Events that the tracer says it lost; `None` where it says nothing.
    pub lost_events: Option<u64>,
    /// Why the trace ends before its end, and where.
    pub cut_off: Option<Error>,
    /// What the tracer says about the trace, in its order.
    pub facts: Vec<(String, String)>,
}

impl Summary {
    fn new(kind: Kind, architecture: Architecture) -> Self {
        Summary {
            kind,
            architecture,
            skipped: Counts::new(),
            notes: Counts::new(),
            lost_events: None,
            cut_off: None,
            facts: Vec::new(),
        }
    }
}

/// A trace that has been read.
pub struct Trace {
    pub summary: Summary,
    pub calls: CallNames,
    pub programs: Programs,
}

impl State {
    pub(crate) fn new(kind: Kind, architecture: Architecture) -> Self {
        State {
            calls: CallNames::new(architecture),
            programs: Programs::default(),
            threads: Threads::new(),
            summary: Summary::new(kind, architecture),
        }
    }

    pub(crate) fn finish(mut self, sink: &mut impl Sink) -> Trace {
        self.threads.finish(sink);
        self.summary.architecture = self.calls.architecture();
        Trace { summary: self.summary, calls: self.calls, programs: self.programs }
    }
}

/// Hands every call of a trace to `sink`. `architecture` is that of the numbers in traces that do not say.
///
/// A count file has no calls to hand out: [`crate::chain::tally`] reads it.
pub fn read(reader: impl Read, architecture: Architecture, sink: &mut impl Sink) -> Result<Trace, ReadError> {
    let (kind, reader) = recognised(reader)?;
    read_kind(reader, kind, architecture, sink)
}

/// As [`read`], for a trace whose kind is known. The reader is at the trace's first byte.
pub fn read_kind(
    reader: impl Read,
    kind: Kind,
    architecture: Architecture,
    sink: &mut impl Sink,
) -> Result<Trace, ReadError> {
    let mut state = State::new(kind, architecture);
    match kind {
        Kind::Strace => lines(reader, &mut strace::Reader::new(&mut state.calls), &mut state, sink)?,
        Kind::PerfScript | Kind::TraceCmd => lines(reader, &mut ftrace::Reader::new(&state.calls), &mut state, sink)?,
        Kind::Sysdig => lines(reader, &mut sysdig::Reader::default(), &mut state, sink)?,
        Kind::Plain => lines(reader, &mut plain::Reader::default(), &mut state, sink)?,
        Kind::PerfData => perf_data::read_stream(reader, &mut state, sink)?,
        Kind::ProbeTrace => probe_trace::read(Window::new(reader), &mut state, sink)?,
        Kind::ProbeCounts => {
            return Err(ReadError::Format(Error::Missing {
                layer: "system-call trace",
                expected: "single calls".to_owned(),
                found: "counts of calls".to_owned(),
            }))
        }
    }
    Ok(state.finish(sink))
}

/// As [`read`], for a file whose bytes are all at hand: perf.data files say at their end what is in them.
pub fn read_slice(bytes: &[u8], architecture: Architecture, sink: &mut impl Sink) -> Result<Trace, ReadError> {
    let kind = Kind::of(bytes.get(..RECOGNISED_BYTES).unwrap_or(bytes))?;
    if kind != Kind::PerfData {
        return read_kind(bytes, kind, architecture, sink);
    }
    let mut state = State::new(kind, architecture);
    perf_data::read_slice(bytes, &mut state, sink)?;
    Ok(state.finish(sink))
}

/// A reader of one line at a time.
trait LineReader {
    const LAYER: &'static str;
    /// A last line without its end is whole; tracers end all lines, so that one of theirs has been cut off.
    const ENDS_WITHOUT_NEWLINE: bool = false;
    /// Takes a line; the error is why it is no call.
    fn line(&mut self, line: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), &'static str>;
}

/// Not a call, as should be: a header, a comment, an exit.
const EMPTY_LINE: &str = "empty_line";
const LINE_TOO_LONG: &str = "line_too_long";
const TOO_MANY_NAMES: &str = "too_many_names";

fn lines<R: LineReader>(
    reader: impl Read,
    by: &mut R,
    state: &mut State,
    sink: &mut impl Sink,
) -> Result<(), ReadError> {
    let mut lines = Lines::new(reader);
    while let Some(line) = lines.next()? {
        let taken = match line {
            Line::Whole(line) => by.line(line, state, sink),
            Line::Last(line) if R::ENDS_WITHOUT_NEWLINE => by.line(line, state, sink),
            Line::Last(line) => {
                let text = String::from_utf8_lossy(line).into_owned();
                let number = usize::try_from(lines.number()).unwrap_or(usize::MAX);
                state.summary.cut_off = Some(Error::line(R::LAYER, number, &text, "a whole line"));
                break;
            }
            Line::TooLong => Err(LINE_TOO_LONG),
        };
        if let Err(reason) = taken {
            state.skip(reason);
        }
    }
    Ok(())
}
