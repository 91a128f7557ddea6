//! Traces of system calls, whoever made them: one event a call, in the order in which each thread made its calls.
//!
//! | kind | made by | thread, program | time, duration, value |
//! |---|---|---|---|
//! | [`strace`] | `strace -f [-t\|-tt\|-ttt] [-T] [-Y]` | yes, by execve or `-Y` | as asked for |
//! | [`ftrace`] | `perf script` of raw_syscalls, `trace-cmd report`, a trace file of tracefs | yes, yes | yes |
//! | [`perf_data`] | `perf record -e raw_syscalls:*` | yes, yes | yes |
//! | [`sysdig`] | `sysdig -r` | yes, yes | yes |
//! | [`plain`] | anything: numbers or names | no | no |
//! | [`plain`] | anything: "PID CALL" in each line, as the sequences of the University of New Mexico are | yes, no | no |
//! | [`probe_trace`] | `twinbed-probe syscalls trace` | yes, yes | yes |
//! | [`crate::chain`] | `twinbed-probe syscalls count` | counts, no events | |
//!
//! The kind is recognised by what is in the file. Everything is read as a stream; what is held is what each living
//! thread is in, never the trace. A call that has not returned (`exit_group`, or the trace ends) has no duration.

pub mod architecture;
mod byte_calls;
mod event;
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
pub(crate) mod probe_files;
pub mod probe_trace;
mod recognise;
pub(crate) mod state;
pub mod strace;
mod strace_line;
pub mod sysdig;
mod threads;
mod trace;

use std::io::Read;

pub use architecture::Architecture;
pub use byte_calls::moves_bytes;
pub use event::{Event, Sink, Slot};
pub use kind::Kind;
pub use names::{Call, CallNames, Program, Programs};
pub use recognise::{recognised, RECOGNISED_BYTES};
pub use trace::{Summary, Trace};

use crate::capture::Window;
use crate::error::{Error, ReadError};
use lines::read_lines;
use recognise::kind_of;
use state::State;

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
        Kind::Strace => read_lines(reader, &mut strace::Reader::new(&mut state.calls), &mut state, sink)?,
        Kind::PerfScript | Kind::TraceCmd => {
            read_lines(reader, &mut ftrace::Reader::new(&state.calls), &mut state, sink)?
        }
        Kind::Sysdig => read_lines(reader, &mut sysdig::Reader::default(), &mut state, sink)?,
        Kind::Plain => read_lines(reader, &mut plain::Reader::default(), &mut state, sink)?,
        Kind::PlainByProcess => read_lines(reader, &mut plain::ByProcess::default(), &mut state, sink)?,
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
    let kind = kind_of(bytes.get(..RECOGNISED_BYTES).unwrap_or(bytes))?;
    if kind != Kind::PerfData {
        return read_kind(bytes, kind, architecture, sink);
    }
    let mut state = State::new(kind, architecture);
    perf_data::read_slice(bytes, &mut state, sink)?;
    Ok(state.finish(sink))
}
