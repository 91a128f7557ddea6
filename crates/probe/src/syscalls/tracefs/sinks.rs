//! The two sinks of finished calls: sums that are written slice by slice, and the trace's file.

use std::collections::HashMap;

use crate::failure::Outcome;
use crate::syscalls::call::{Call, Cell, History, Part, Stream, StreamNumber};
use crate::syscalls::count_file::{CountFile, Counted};
use crate::syscalls::follow::Sink;
use crate::syscalls::trace_file::TraceFile;

/// Transitions held before they are written, within a slice too.
const HELD_TRANSITIONS: usize = 131_072;
/// Calls of a stream held before they are written.
const HELD_CALLS: usize = 32;

pub struct CountSink {
    file: CountFile,
    cells: HashMap<(StreamNumber, Part, History), Cell>,
    ended: Vec<StreamNumber>,
    slice: u64,
    /// When the slice ends.
    until_ns: u64,
    slice_ns: u64,
}

impl CountSink {
    /// `slice_ns` 0: one slice.
    pub fn new(file: CountFile, start_ns: u64, slice_ns: u64) -> Self {
        let until_ns = if slice_ns == 0 { u64::MAX } else { start_ns.saturating_add(slice_ns) };
        CountSink { file, cells: HashMap::new(), ended: Vec::new(), slice: 0, until_ns, slice_ns }
    }

    fn write(&mut self) -> Outcome<()> {
        let counted = self.cells.drain().map(|((stream, part, history), cell)| Counted { stream, part, history, cell });
        self.file.counts(counted.collect())?;
        self.ended.drain(..).try_for_each(|stream| self.file.ended(stream))
    }

    /// Begins the slices up to the time.
    fn go_on_to(&mut self, now_ns: u64) -> Outcome<()> {
        while now_ns >= self.until_ns {
            self.slice += 1;
            self.file.slice(self.slice, self.until_ns)?;
            self.until_ns = self.until_ns.saturating_add(self.slice_ns);
        }
        Ok(())
    }

    pub fn end(mut self, end_ns: u64, untold_lost: u64) -> Outcome<()> {
        self.write()?;
        self.go_on_to(end_ns)?;
        self.file.lost(untold_lost)?;
        self.file.end(end_ns)
    }
}

impl Sink for CountSink {
    fn stream(&mut self, number: StreamNumber, stream: &Stream) -> Outcome<()> {
        self.file.stream(number, stream)
    }

    fn call(&mut self, stream: StreamNumber, part: Part, history: History, call: Call, now_ns: u64) -> Outcome<()> {
        if now_ns >= self.until_ns || self.cells.len() >= HELD_TRANSITIONS {
            self.write()?;
        }
        self.go_on_to(now_ns)?;
        *self.cells.entry((stream, part, history)).or_default() += Cell::of(call.exit);
        Ok(())
    }

    fn ended(&mut self, stream: StreamNumber) -> Outcome<()> {
        self.ended.push(stream);
        Ok(())
    }

    fn lost(&mut self, _time_ns: u64, events: u64) -> Outcome<()> {
        self.file.lost(events)
    }

    fn pass_over(&mut self) -> Outcome<()> {
        Ok(())
    }
}

pub struct TraceSink {
    file: TraceFile,
    held: HashMap<StreamNumber, Vec<Call>>,
}

impl TraceSink {
    pub fn new(file: TraceFile) -> Self {
        TraceSink { file, held: HashMap::new() }
    }

    fn write_all(&mut self) -> Outcome<()> {
        for (stream, calls) in &mut self.held {
            self.file.calls(*stream, 0, calls)?;
            calls.clear();
        }
        Ok(())
    }

    pub fn end(mut self, end_ns: u64, untold_lost: u64) -> Outcome<()> {
        self.write_all()?;
        self.file.add_lost(untold_lost);
        self.file.end(end_ns)
    }
}

impl Sink for TraceSink {
    fn stream(&mut self, number: StreamNumber, stream: &Stream) -> Outcome<()> {
        self.file.stream(number, stream)
    }

    fn call(&mut self, stream: StreamNumber, _: Part, _: History, call: Call, _now_ns: u64) -> Outcome<()> {
        let calls = self.held.entry(stream).or_default();
        calls.push(call);
        if calls.len() >= HELD_CALLS {
            self.file.calls(stream, 0, calls)?;
            calls.clear();
        }
        Ok(())
    }

    fn ended(&mut self, stream: StreamNumber) -> Outcome<()> {
        if let Some(calls) = self.held.remove(&stream) {
            self.file.calls(stream, 0, &calls)?;
        }
        self.file.ended(stream)
    }

    fn lost(&mut self, time_ns: u64, events: u64) -> Outcome<()> {
        self.write_all()?;
        self.file.lost(time_ns, events)
    }

    fn pass_over(&mut self) -> Outcome<()> {
        self.file.flush()
    }
}
