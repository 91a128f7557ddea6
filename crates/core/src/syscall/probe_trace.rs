//! The trace file of `twinbed-probe syscalls trace`: docs/probe/SYSCALLS.md, section Trace.

use std::io::Read;

use super::architecture::Architecture;
use super::event::{Event, Sink};
use super::probe_files::{block, BLOCK_HEADER_BYTES, TRACE_MAGIC};
use super::state::State;
use super::state::TOO_MANY_NAMES;
use crate::capture::Window;
use crate::error::{Error, ReadError, Result};

const MAGIC_BYTES: usize = TRACE_MAGIC.len();
const VERSION_AT: usize = MAGIC_BYTES - 2;
const VERSION: u8 = TRACE_MAGIC[VERSION_AT];
/// The probe's blocks are some hundred KB at most; more is damage.
const MOST_BYTES: usize = 1 << 26;
const LAYER: &str = "probe trace";

/// Whether a file begins as a trace of any version does.
pub fn recognises(start: &[u8]) -> bool {
    start.starts_with(&TRACE_MAGIC[..VERSION_AT])
}

pub fn read(
    mut window: Window<impl Read>,
    state: &mut State,
    sink: &mut impl Sink,
) -> std::result::Result<(), ReadError> {
    while window.bytes().len() < MAGIC_BYTES && window.fill(MAGIC_BYTES)? {}
    match window.bytes().get(VERSION_AT) {
        Some(&VERSION) if window.bytes().len() >= MAGIC_BYTES => window.consume(MAGIC_BYTES),
        Some(version) if *version != VERSION => {
            return Err(Error::Value {
                layer: LAYER,
                offset: VERSION_AT as u64,
                field: "version",
                found: version.to_string(),
                expected: VERSION.to_string(),
            }
            .into())
        }
        _ => {
            let there = window.bytes().len() as u64;
            let needed = MAGIC_BYTES as u64;
            let error = Error::Length { layer: LAYER, offset: 0, needed, available: there, claimed_by: "the format" };
            return Err(error.into());
        }
    }
    state.summary.lost_events = Some(0);
    let mut offset = MAGIC_BYTES as u64;
    let mut calls = 0;
    loop {
        let bytes = window.bytes();
        let size = match bytes.get(1..BLOCK_HEADER_BYTES).and_then(<[u8]>::first_chunk) {
            Some(size) => BLOCK_HEADER_BYTES.saturating_add(u32::from_le_bytes(*size) as usize),
            None => BLOCK_HEADER_BYTES,
        };
        let there = bytes.len();
        if size > MOST_BYTES || there < size {
            if size <= MOST_BYTES && window.fill(size)? {
                continue;
            }
            let cut = Error::Length {
                layer: LAYER,
                offset,
                needed: size as u64,
                available: there as u64,
                claimed_by: if there == 0 { "the missing end block" } else { "the block's header" },
            };
            state.summary.cut_off = Some(cut);
            return Ok(());
        }
        let (kind, content) = (bytes[0], &bytes[BLOCK_HEADER_BYTES..size]);
        let mut body = Block { rest: content, offset: offset + BLOCK_HEADER_BYTES as u64, whole: content.len() };
        match body.read(kind, &mut calls, state, sink) {
            Ok(()) if kind == block::END => return Ok(()),
            Ok(()) => {}
            Err(error) => {
                state.summary.cut_off = Some(error);
                return Ok(());
            }
        }
        window.consume(size);
        offset += size as u64;
    }
}

/// The body of a block, and where in the file it is.
struct Block<'a> {
    rest: &'a [u8],
    offset: u64,
    whole: usize,
}

impl Block<'_> {
    fn read(&mut self, kind: u8, calls: &mut u64, state: &mut State, sink: &mut impl Sink) -> Result<()> {
        match kind {
            block::HEADER => header(self.rest, state),
            block::STREAM => stream(self, state)?,
            block::CALLS => block_of_calls(self, calls, state, sink)?,
            block::LOST => {
                self.varint("time")?;
                state.lost(self.varint("events lost")?, sink);
            }
            block::STREAM_END => state.threads.end(self.varint("stream")?, sink),
            block::END => {
                self.varint("end")?;
                if self.varint("calls written")? != *calls {
                    state.note("calls_differ_from_end_block");
                }
            }
            _ => state.skip("unknown_block"),
        }
        Ok(())
    }

    #[inline]
    fn varint(&mut self, field: &'static str) -> Result<u64> {
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(field),
        }
    }

    #[inline]
    fn long_varint(&mut self, field: &'static str) -> Result<u64> {
        let mut value = 0_u64;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f).wrapping_shl(7 * index as u32);
            if *byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(self.wrong(field))
    }

    #[cold]
    fn wrong(&self, field: &'static str) -> Error {
        Error::Value {
            layer: LAYER,
            offset: self.offset + (self.whole - self.rest.len()) as u64,
            field,
            found: "no number".to_owned(),
            expected: "a number of at most 10 bytes inside its block".to_owned(),
        }
    }
}

fn header(body: &[u8], state: &mut State) {
    for line in String::from_utf8_lossy(body).lines() {
        header_line(line, state);
    }
}

/// A line `name value` of either file's header.
pub(crate) fn header_line(line: &str, state: &mut State) {
    let (name, value) = line.split_once(' ').unwrap_or((line, ""));
    if name == "architecture" {
        match Architecture::of(value) {
            Some(architecture) => state.calls.set_architecture(architecture),
            None => state.note("unknown_architecture"),
        }
    }
    state.summary.facts.push((name.to_owned(), value.to_owned()));
}

fn stream(block: &mut Block, state: &mut State) -> Result<()> {
    let stream = block.varint("stream")?;
    block.varint("thread id")?;
    block.varint("thread group id")?;
    let program = state.programs.of(block.rest);
    let slot = state.threads.slot(stream);
    state.threads.set_program(slot, program);
    Ok(())
}

/// `calls` is how many calls there have been so far.
fn block_of_calls(block: &mut Block, calls: &mut u64, state: &mut State, sink: &mut impl Sink) -> Result<()> {
    let stream = block.varint("stream")?;
    let lost = block.varint("lost")?;
    if !state.threads.is_known(stream) {
        state.note("stream_not_announced");
    }
    let slot = state.threads.slot(stream);
    let program = state.threads.program(slot);
    if lost > 0 {
        state.summary.lost_events = state.summary.lost_events.map(|before| before.saturating_add(lost));
        sink.thread_gap(slot);
    }
    let mut clock = block.varint("base")?;
    let count = block.varint("number of calls")?;
    for _ in 0..count {
        let number = block.varint("call")?;
        clock = clock.wrapping_add(block.varint("gap")?);
        let time_ns = i64::try_from(clock).ok();
        let (mut duration_ns, mut value) = (None, None);
        if number & 1 == 1 {
            let duration = block.varint("duration")?;
            let zigzag = block.varint("value")?;
            clock = clock.wrapping_add(duration);
            duration_ns = Some(duration);
            value = Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed());
        }
        match state.calls.number(number >> 1) {
            Some(call) => sink.call(&Event { thread: slot, program, call, time_ns, duration_ns, value }),
            None => state.skip(TOO_MANY_NAMES),
        }
        *calls += 1;
    }
    Ok(())
}
