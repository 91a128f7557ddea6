//! Which kind of trace a file is, by what is in it.

use std::io::Read;

use super::architecture::Architecture;
use super::kind::Kind;
use super::names::CallNames;
use super::probe_files::COUNT_MAGIC;
use super::{ftrace, perf_data, plain, probe_trace, strace, sysdig};
use crate::capture::likeness::likeness;
use crate::error::{Error, ReadError, Result};

/// The kind is decided by a file's first bytes, as many as these.
pub const RECOGNISED_BYTES: usize = 1 << 16;
/// A trace may begin with this many lines that are not of its kind (headers, messages).
const LINES: usize = 200;

/// The kind of a file by its first bytes.
pub fn kind_of(start: &[u8]) -> Result<Kind> {
    if probe_trace::recognises(start) {
        return Ok(Kind::ProbeTrace);
    }
    if start.strip_prefix(COUNT_MAGIC.as_bytes()).is_some_and(|rest| rest.starts_with(b" ")) {
        return Ok(Kind::ProbeCounts);
    }
    if start.starts_with(perf_data::MAGIC) {
        return Ok(Kind::PerfData);
    }
    kind_of_text(start).ok_or_else(|| Error::Missing {
        layer: "system-call trace",
        expected: "a trace of strace, perf, trace-cmd, sysdig or twinbed-probe, or a sequence of calls".to_owned(),
        found: what(start).to_owned(),
    })
}

fn kind_of_text(start: &[u8]) -> Option<Kind> {
    let calls = CallNames::new(Architecture::default());
    let mut plain_lines = 0;
    for line in start.split(|byte| *byte == b'\n').take(LINES) {
        let line = line.trim_ascii_end();
        if line.contains(&0) {
            return None;
        }
        if ftrace::Reader::recognises(line) {
            return Some(if ftrace::Reader::is_perf(line) { Kind::PerfScript } else { Kind::TraceCmd });
        }
        if sysdig::Reader::recognises(line) {
            return Some(Kind::Sysdig);
        }
        if strace::Reader::recognises(line) {
            return Some(Kind::Strace);
        }
        plain_lines += usize::from(plain::Reader::recognises(line, &calls));
    }
    let by_process = plain_lines > 0 && plain::ByProcess::recognises(whole_lines(start), &calls);
    let plain = (plain_lines > 0).then_some(Kind::Plain);
    if by_process {
        Some(Kind::PlainByProcess)
    } else {
        plain
    }
}

/// The first bytes without a last line that they may have cut.
fn whole_lines(start: &[u8]) -> &[u8] {
    let end = memchr::memrchr(b'\n', start).filter(|_| start.len() >= RECOGNISED_BYTES);
    &start[..end.unwrap_or(start.len())]
}

fn what(start: &[u8]) -> &'static str {
    match start {
        [] => "nothing: the file is empty",
        [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', ..] => "trace-cmd's trace.dat; `trace-cmd report` makes text of it",
        [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => "perf.data of a big-endian machine",
        _ => likeness(start),
    }
}

type Start = std::io::Cursor<Vec<u8>>;

/// Reads a stream's kind, and gives the stream from its first byte.
pub fn recognised<R: Read>(mut reader: R) -> std::result::Result<(Kind, std::io::Chain<Start, R>), ReadError> {
    let mut start = Vec::new();
    reader.by_ref().take(RECOGNISED_BYTES as u64).read_to_end(&mut start)?;
    let kind = kind_of(&start)?;
    Ok((kind, std::io::Cursor::new(start).chain(reader)))
}
