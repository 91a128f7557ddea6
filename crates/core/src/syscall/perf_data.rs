//! perf.data of `perf record -e raw_syscalls:*`: the file, and the stream that `perf record -o -` writes.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt. A file says at its end which tracepoints are in it, so it
//! has to be at hand as a whole (mapped); a stream says it first. perf writes what each CPU's buffer holds in rounds:
//! records are put in the order of their times over two rounds, as `perf script` does.

use std::io::Read;

use super::architecture::Architecture;
use super::perf_records::{record_time, sample, u16_at, u32_at, u64_at, Attribute};
use super::perf_tracepoints::{tracepoints, Tracepoints};
use super::threads::State;
use super::{perf_order::Queue, perf_order::What, Sink};
use crate::capture::Window;
use crate::error::{Error, ReadError};

pub const MAGIC: &[u8] = b"PERFILE2";
const LAYER: &str = "perf.data";
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

mod feature {
    pub const TRACING_DATA: u32 = 1;
    pub const ARCHITECTURE: u32 = 6;
    pub const COUNT: u32 = 256;
}

/// What has been read of a perf.data so far.
#[derive(Default)]
struct Session {
    attributes: Vec<Attribute>,
    points: Tracepoints,
    queue: Queue,
    /// Samples of no system call.
    others: u64,
    /// perf tells each loss twice: where it happened, and as what the events' counters lack in the end.
    lost_samples: u64,
}

fn length(offset: u64, needed: u64, available: u64, claimed_by: &'static str) -> Error {
    Error::Length { layer: LAYER, offset, needed, available, claimed_by }
}

fn missing(found: &str) -> Error {
    Error::Missing {
        layer: LAYER,
        expected: "the tracepoints raw_syscalls:sys_enter and sys_exit".to_owned(),
        found: found.to_owned(),
    }
}

/// Reads a whole file.
pub fn read_slice(bytes: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), ReadError> {
    const PIPE_HEADER_BYTES: u64 = 16;
    if u64_at(bytes, 8) == Some(PIPE_HEADER_BYTES) {
        return read_stream(bytes, state, sink);
    }
    let mut session = Session::default();
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
    let mut session = Session::default();
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

/// How many bytes the record at the start has, or how many are needed to go on.
fn whole_record(bytes: &[u8], offset: u64) -> Result<Result<usize, usize>, Error> {
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
    fn records(
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

    fn record(&mut self, bytes: &[u8], offset: u64, state: &mut State, sink: &mut impl Sink) -> Result<(), Error> {
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
            record::COMPRESSED | record::COMPRESSED2 => {
                return Err(Error::Value {
                    layer: LAYER,
                    offset,
                    field: "type of a record",
                    found: "compressed".to_owned(),
                    expected: "perf record without -z, or the text of `perf script`".to_owned(),
                })
            }
            _ => Some(()),
        };
        if taken.is_none() {
            state.skip("record_too_short");
        }
        self.queue.keep_small(state, sink);
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
        let found = sample(body, attribute)?;
        // A tracepoint's data begin with its id.
        let id = u16_at(found.raw, 0)?;
        let thread = found.thread;
        let what = if let Some(point) = self.points.enter.filter(|point| point.id == id) {
            let Some(call) = u64_at(found.raw, point.number).filter(|number| number.cast_signed() >= 0) else {
                state.skip("no_call_number");
                return Some(());
            };
            let Some(call) = state.calls.number(call) else {
                state.skip(super::TOO_MANY_NAMES);
                return Some(());
            };
            What::Enter { thread, call }
        } else if let Some(point) = self.points.exit.filter(|point| point.id == id) {
            What::Exit { thread, value: u64_at(found.raw, point.value)?.cast_signed() }
        } else {
            self.others += 1;
            return Some(());
        };
        let time = found.time_ns;
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

    fn feature(&mut self, number: u32, bytes: &[u8], state: &mut State) {
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

    fn finish(self, state: &mut State, sink: &mut impl Sink) {
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

fn ids(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).filter_map(|id| u64_at(id, 0)).collect()
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
