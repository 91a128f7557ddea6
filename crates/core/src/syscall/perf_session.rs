//! Reads the records of a perf.data one after the other.

use super::architecture::Architecture;
use super::event::Sink;
use super::perf_compressed::Pieces;
use super::perf_order::{Queue, What};
use super::perf_records::{record_time, sample, u16_at, u32_at, u64_at, Attribute};
use super::perf_tracepoints::{tracepoints, Tracepoints};
use super::state::State;
use crate::error::Error;

pub const LAYER: &str = "perf.data";
const RECORD_HEADER_BYTES: usize = 8;

mod record {
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const LOST_SAMPLES: u32 = 13;
    pub const ATTRIBUTE: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const FINISHED_ROUND: u32 = 68;
    pub const AUXTRACE: u32 = 71;
    pub const FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

pub mod feature {
    pub const TRACING_DATA: u32 = 1;
    pub const ARCHITECTURE: u32 = 6;
    pub const COUNT: u32 = 256;
}

/// What has been read of a perf.data so far.
pub struct Session {
    pub attributes: Vec<Attribute>,
    pub points: Tracepoints,
    queue: Queue,
    /// Samples of no system call.
    others: u64,
    /// perf reports each loss twice: where it happened, and at the end as what the events' counters lack.
    lost_samples: u64,
    /// `None` while they are being read.
    pieces: Option<Pieces>,
}

pub fn length(offset: u64, needed: u64, available: u64, claimed_by: &'static str) -> Error {
    Error::Length { layer: LAYER, offset, needed, available, claimed_by }
}

/// The number of bytes of the record at the start, or the number that is needed to go on.
pub fn whole_record(bytes: &[u8], offset: u64) -> Result<Result<usize, usize>, Error> {
    let (Some(kind), Some(size)) = (u32_at(bytes, 0), u16_at(bytes, 6)) else { return Ok(Err(RECORD_HEADER_BYTES)) };
    let mut size = usize::from(size);
    if size < RECORD_HEADER_BYTES {
        return Err(Error::Value {
            layer: LAYER,
            offset,
            field: "size of a record",
            found: size.to_string(),
            expected: "at least 8".to_owned(),
        });
    }
    // Two kinds are followed by bytes that are not in their size.
    let extra = match kind {
        record::TRACING_DATA => u32_at(bytes, 8).map(u64::from),
        record::AUXTRACE => u64_at(bytes, 8),
        _ => Some(0),
    };
    let Some(extra) = extra else { return Ok(Err(size.max(16))) };
    size = usize::try_from(extra).ok().and_then(|extra| size.checked_add(extra)).unwrap_or(usize::MAX);
    if size > MOST_BYTES {
        return Err(length(offset, size as u64, bytes.len() as u64, "the record's header"));
    }
    Ok(if bytes.len() < size { Err(size) } else { Ok(size) })
}

/// Above this a record is damaged: tracing data are a few MB.
const MOST_BYTES: usize = 1 << 28;

impl Session {
    pub fn new() -> Self {
        Session {
            attributes: Vec::new(),
            points: Tracepoints::default(),
            queue: Queue::default(),
            others: 0,
            lost_samples: 0,
            pieces: Some(Pieces::default()),
        }
    }

    pub fn records(
        &mut self,
        mut data: &[u8],
        mut offset: u64,
        state: &mut State,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        while !data.is_empty() {
            match whole_record(data, offset)? {
                Ok(bytes) => {
                    self.record(&data[..bytes], offset, state, sink)?;
                    data = &data[bytes..];
                    offset += bytes as u64;
                }
                Err(needed) => {
                    state.summary.cut_off =
                        Some(length(offset, needed as u64, data.len() as u64, "the record's header"));
                    break;
                }
            }
        }
        Ok(())
    }

    pub fn record(&mut self, bytes: &[u8], offset: u64, state: &mut State, sink: &mut impl Sink) -> Result<(), Error> {
        let body = bytes.get(RECORD_HEADER_BYTES..).unwrap_or_default();
        let taken = match u32_at(bytes, 0).unwrap_or_default() {
            record::SAMPLE => self.sample(body, state),
            record::COMM => self.program(body, state),
            record::FORK => {
                self.add(body, u32_at(body, 8).zip(u32_at(body, 12)), |(thread, parent)| What::Fork { thread, parent })
            }
            record::EXIT => self.add(body, u32_at(body, 8), |thread| What::End { thread }),
            record::LOST => self.add(body, u64_at(body, 8), What::Lost),
            record::LOST_SAMPLES => u64_at(body, 0).map(|lost| {
                self.lost_samples = self.lost_samples.saturating_add(lost);
            }),
            record::FINISHED_ROUND => {
                self.queue.round(state, sink);
                Some(())
            }
            record::ATTRIBUTE => Attribute::parse(body).map(|mut attribute| {
                let size = u32_at(body, 4).unwrap_or_default() as usize;
                attribute.ids = ids(body.get(size..).unwrap_or_default());
                self.attributes.push(attribute);
            }),
            record::TRACING_DATA => {
                let size = u16_at(bytes, 6).unwrap_or_default().into();
                self.feature(feature::TRACING_DATA, bytes.get(size..).unwrap_or_default(), state);
                Some(())
            }
            record::FEATURE => u64_at(body, 0).map(|number| {
                let number = u32::try_from(number).unwrap_or(feature::COUNT);
                self.feature(number, body.get(8..).unwrap_or_default(), state);
            }),
            record::COMPRESSED => return self.compressed(body, offset, state, sink),
            // Its size comes first, since it is padded.
            record::COMPRESSED2 => {
                let size = u64_at(body, 0).and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
                let piece = size.checked_add(8).and_then(|end| body.get(8..end)).unwrap_or_default();
                return self.compressed(piece, offset, state, sink);
            }
            _ => Some(()),
        };
        if taken.is_none() {
            state.skip("record_too_short");
        }
        self.queue.keep_small(state, sink);
        Ok(())
    }

    /// Reads the records that a piece completes.
    fn compressed(&mut self, piece: &[u8], at: u64, state: &mut State, sink: &mut impl Sink) -> Result<(), Error> {
        let damaged = || Error::Value {
            layer: LAYER,
            offset: at,
            field: "compressed record",
            found: "damaged".to_owned(),
            expected: "the next piece of a Zstandard stream".to_owned(),
        };
        // None inside of another.
        let mut pieces = self.pieces.take().ok_or_else(damaged)?;
        pieces.add(piece).ok_or_else(damaged)?;
        while let Ok(bytes) = whole_record(pieces.rest(), at)? {
            self.record(&pieces.rest()[..bytes], at, state, sink)?;
            pieces.take(bytes);
        }
        self.pieces = Some(pieces);
        Ok(())
    }

    fn add<T>(&mut self, body: &[u8], field: Option<T>, what: impl FnOnce(T) -> What) -> Option<()> {
        let time = self.attributes.first().and_then(|attribute| record_time(body, attribute));
        self.queue.push(time, what(field?));
        Some(())
    }

    fn program(&mut self, body: &[u8], state: &mut State) -> Option<()> {
        let name = body.get(8..)?.split(|byte| *byte == 0).next()?;
        let program = state.programs.of(name);
        self.add(body, u32_at(body, 4), |thread| What::Program { thread, program })
    }

    fn sample(&mut self, body: &[u8], state: &mut State) -> Option<()> {
        let attribute = self.attribute(body)?;
        if !attribute.is_of_tracepoint() {
            self.others += 1;
            return Some(());
        }
        let decoded = sample(body, attribute)?;
        // A tracepoint's data begin with its id.
        let id = u16_at(decoded.raw, 0)?;
        let thread = decoded.thread;
        let what = if let Some(point) = self.points.enter.filter(|point| point.id == id) {
            let Some(call) = u64_at(decoded.raw, point.number).filter(|number| number.cast_signed() >= 0) else {
                state.skip("no_call_number");
                return Some(());
            };
            let Some(call) = state.calls.number(call) else {
                state.skip(super::state::TOO_MANY_NAMES);
                return Some(());
            };
            What::Enter { thread, call }
        } else if let Some(point) = self.points.exit.filter(|point| point.id == id) {
            What::Exit { thread, value: u64_at(decoded.raw, point.value)?.cast_signed() }
        } else {
            self.others += 1;
            return Some(());
        };
        let time = decoded.time_ns;
        self.queue.push(time, what);
        Some(())
    }

    /// The attribute that a sample's layout follows.
    fn attribute(&self, body: &[u8]) -> Option<&Attribute> {
        let first = self.attributes.first()?;
        if self.attributes.iter().all(|other| other.has_same_layout(first)) || !first.begins_with_id() {
            return Some(first);
        }
        let id = u64_at(body, 0)?;
        self.attributes.iter().find(|attribute| attribute.ids.contains(&id))
    }

    pub fn feature(&mut self, number: u32, bytes: &[u8], state: &mut State) {
        match number {
            feature::TRACING_DATA => self.points = tracepoints(bytes),
            feature::ARCHITECTURE => {
                let text = bytes.get(4..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
                let Ok(machine) = std::str::from_utf8(text) else { return };
                state.summary.facts.push(("architecture".to_owned(), machine.to_owned()));
                match Architecture::of(machine) {
                    Some(architecture) => state.calls.set_architecture(architecture),
                    None => state.note("unknown_architecture"),
                }
            }
            _ => {}
        }
    }

    pub fn finish(self, state: &mut State, sink: &mut impl Sink) {
        if self.others > 0 {
            state.summary.skipped.insert("other_event", self.others);
        }
        let lost_samples = self.lost_samples;
        self.queue.finish(state, sink);
        if lost_samples > 0 {
            state.summary.lost_events = Some(state.summary.lost_events.unwrap_or(0).max(lost_samples));
        }
    }
}

pub fn ids(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).filter_map(|id| u64_at(id, 0)).collect()
}
