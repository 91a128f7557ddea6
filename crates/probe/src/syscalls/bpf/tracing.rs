//! A trace from chunks that the kernel puts into a ring, each with calls of one thread.

use std::collections::HashMap;

use super::attached::Attached;
use super::layout::{self, call, thread, Identity};
use super::plan::Purpose;
use crate::bpf::kernel::{Map, MapKind};
use crate::bpf::ring::Ring;
use crate::failure::{Outcome, Tried};
use crate::syscalls::call::{Call, Exit, Stream, StreamNumber};
use crate::syscalls::header::Header;
use crate::syscalls::options::Options;
use crate::syscalls::recorder::{say_ready, Recorder, TICK_NS};
use crate::syscalls::trace_file::TraceFile;
use crate::waiting::{now_ns, StopDescriptor};

/// The reader is woken when so much of the ring is filled.
const WAKE_SHARE: usize = 4;

pub struct Tracing {
    attached: Attached,
    ring_map: Map,
    ring: Ring,
    out: String,
}

impl Tracing {
    pub fn attach(options: &Options) -> Outcome<Tracing> {
        let bytes = options.buffer_bytes;
        let ring_map = Map::new(MapKind::Ring, 0, 0, bytes as u32)?;
        let ring = Ring::of(&ring_map, bytes)?;
        let purpose = Purpose::Trace { ring: &ring_map, wake_bytes: (bytes / WAKE_SHARE) as i32 };
        let attached = Attached::attach(options, purpose)?;
        Ok(Tracing { attached, ring_map, ring, out: options.out.clone() })
    }
}

impl Recorder for Tracing {
    fn record(mut self: Box<Self>, header: &Header, stop: &StopDescriptor) -> Outcome<()> {
        let mut writer = Writer::new(TraceFile::create(&self.out, header)?);
        say_ready()?;
        while !stop.wait(now_ns() + TICK_NS, &[self.ring_map.descriptor()]).tried(|| "wait")? {
            self.ring.drain(|chunk| writer.chunk(chunk))?;
            writer.file.add_lost(self.attached.newly_lost()?);
            writer.file.flush()?;
        }
        self.attached.detach()?;
        let end_ns = now_ns();
        self.ring.drain(|chunk| writer.chunk(chunk))?;
        let mut left = Vec::new();
        self.attached.threads.each(|_, kept| left.push(kept.to_vec()))?;
        left.iter().try_for_each(|kept| writer.unfinished(kept))?;
        writer.file.add_lost(self.attached.newly_lost()?);
        writer.file.end(end_ns)
    }
}

struct Writer {
    file: TraceFile,
    numbers: HashMap<Identity, StreamNumber>,
    next_number: StreamNumber,
    calls: Vec<Call>,
}

impl Writer {
    fn new(file: TraceFile) -> Self {
        Writer { file, numbers: HashMap::new(), next_number: 1, calls: Vec::new() }
    }

    fn chunk(&mut self, chunk: &[u8]) -> Outcome<()> {
        self.decode(chunk);
        self.write(chunk)
    }

    /// Writes what a thread had not handed over at the end, with the call that it was in.
    fn unfinished(&mut self, kept: &[u8]) -> Outcome<()> {
        self.decode(kept);
        if layout::double(kept, thread::IN_CALL) != 0 {
            let number = layout::double(kept, thread::NUMBER) as u16;
            self.calls.push(Call { number, entry_ns: layout::double(kept, thread::ENTRY_NS), exit: None });
        }
        self.write(kept)
    }

    fn decode(&mut self, chunk: &[u8]) {
        self.calls.clear();
        let held = layout::double(chunk, thread::HELD) as usize;
        let calls = chunk.get(thread::CALLS as usize..).unwrap_or_default();
        for one in calls.chunks_exact(thread::CALL_BYTES as usize).take(held) {
            let packed = layout::double(one, call::DURATION_NUMBER);
            let value = layout::double(one, call::VALUE) as i64;
            let duration_ns = packed >> 16;
            let exit = (duration_ns != call::NO_DURATION).then_some(Exit { duration_ns, value });
            self.calls.push(Call { number: packed as u16, entry_ns: layout::double(one, call::ENTRY_NS), exit });
        }
    }

    fn write(&mut self, chunk: &[u8]) -> Outcome<()> {
        let identity =
            Identity { began_ns: layout::double(chunk, thread::STREAM), tid: layout::word(chunk, thread::TID) };
        let stream = match self.numbers.get(&identity) {
            Some(number) => *number,
            None => {
                let number = self.next_number;
                self.next_number += 1;
                self.numbers.insert(identity, number);
                let tgid = Some(layout::word(chunk, thread::TGID));
                let about = Stream { tid: identity.tid, tgid, name: layout::name(chunk, thread::NAME) };
                self.file.stream(number, &about)?;
                number
            }
        };
        self.file.calls(stream, layout::double(chunk, thread::LOST), &self.calls)?;
        if layout::double(chunk, thread::ENDED) != 0 {
            self.numbers.remove(&identity);
            self.file.ended(stream)?;
        }
        Ok(())
    }
}
