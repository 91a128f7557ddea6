//! perf.data of `perf record -e raw_syscalls:*`: the file, and the stream that `perf record -o -` writes.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt. A file says at its end which tracepoints are in it, so it
//! has to be at hand as a whole (mapped); a stream says it first. Both may hold compressed records (`-z`). perf writes what
//! each CPU's buffer holds in rounds: records are put in the order of their times over two rounds, as `perf script` does.

use std::io::Read;

use super::event::Sink;
use super::perf_records::{u64_at, Attribute};
use super::perf_session::{feature, ids, length, whole_record, Session, LAYER};
use super::state::State;
use crate::capture::Window;
use crate::error::{Error, ReadError};

pub const MAGIC: &[u8] = b"PERFILE2";

fn missing(content: &str) -> Error {
    Error::Missing {
        layer: LAYER,
        expected: "the tracepoints raw_syscalls:sys_enter and sys_exit".to_owned(),
        found: content.to_owned(),
    }
}

/// Reads a whole file.
pub fn read_slice(bytes: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), ReadError> {
    const PIPE_HEADER_BYTES: u64 = 16;
    if u64_at(bytes, 8) == Some(PIPE_HEADER_BYTES) {
        return read_stream(bytes, state, sink);
    }
    let mut session = Session::new();
    let section = |at: usize| Some((u64_at(bytes, at)?, u64_at(bytes, at + 8)?));
    let header = || Some((u64_at(bytes, 16)?, section(24)?, section(40)?, bytes.get(72..104)?));
    let Some((attribute_bytes, attributes, (data_start, data_bytes), flags)) = header() else {
        return Err(length(0, 104, bytes.len() as u64, "the file header").into());
    };
    for entry in within(bytes, attributes.0, attributes.1).chunks_exact(chunk(attribute_bytes)) {
        let Some(mut attribute) = Attribute::parse(entry) else { continue };
        let place = entry.len().checked_sub(16).and_then(|at| Some((u64_at(entry, at)?, u64_at(entry, at + 8)?)));
        if let Some((start, size)) = place {
            attribute.ids = ids(within(bytes, start, size));
        }
        session.attributes.push(attribute);
    }
    let mut at = data_start.saturating_add(data_bytes);
    for bit in 0..feature::COUNT {
        if flags.get(bit as usize / 8).is_none_or(|byte| byte >> (bit % 8) & 1 == 0) {
            continue;
        }
        let place = usize::try_from(at).ok().and_then(|at| Some((u64_at(bytes, at)?, u64_at(bytes, at + 8)?)));
        at = at.saturating_add(16);
        if let Some((start, size)) = place {
            session.feature(bit, within(bytes, start, size), state);
        }
    }
    if !session.points.are_there() {
        let cut = if at > bytes.len() as u64 { "none; the file ends before it says what is in it" } else { "none" };
        return Err(missing(cut).into());
    }
    let data = within(bytes, data_start, if data_bytes == 0 { u64::MAX } else { data_bytes });
    if let Err(damage) = session.records(data, data_start, state, sink) {
        state.summary.cut_off = Some(damage);
    }
    if (data.len() as u64) < data_bytes && state.summary.cut_off.is_none() {
        state.summary.cut_off = Some(length(data_start, data_bytes, data.len() as u64, "its file header"));
    }
    session.finish(state, sink);
    Ok(())
}

/// Reads what `perf record -o -` writes.
pub fn read_stream(reader: impl Read, state: &mut State, sink: &mut impl Sink) -> Result<(), ReadError> {
    let mut window = Window::new(reader);
    while window.bytes().len() < 16 && window.fill(16)? {}
    if u64_at(window.bytes(), 8) != Some(16) {
        return Err(Error::Missing {
            layer: LAYER,
            expected: "an uncompressed file, or what `perf record -o -` writes".to_owned(),
            found: "a stream of a perf.data file, which says only at its end what is in it".to_owned(),
        }
        .into());
    }
    window.consume(16);
    let mut session = Session::new();
    let mut offset = 16_u64;
    loop {
        let taken = whole_record(window.bytes(), offset).and_then(|whole| {
            if let Ok(bytes) = whole {
                session.record(&window.bytes()[..bytes], offset, state, sink)?;
            }
            Ok(whole)
        });
        let needed = match taken {
            Ok(Ok(bytes)) => {
                window.consume(bytes);
                offset += bytes as u64;
                continue;
            }
            Ok(Err(needed)) => needed,
            Err(damage) => {
                state.summary.cut_off = Some(damage);
                break;
            }
        };
        if !window.fill(needed)? {
            let rest = window.bytes().len();
            if rest > 0 {
                state.summary.cut_off = Some(length(offset, needed as u64, rest as u64, "the record's header"));
            }
            break;
        }
    }
    if !session.points.are_there() {
        return Err(missing("none").into());
    }
    session.finish(state, sink);
    Ok(())
}

fn chunk(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).max(1)
}

/// What of a section is there.
fn within(bytes: &[u8], start: u64, size: u64) -> &[u8] {
    let end = start.saturating_add(size).min(bytes.len() as u64);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default()
}
