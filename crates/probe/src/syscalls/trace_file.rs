//! Writes a trace: the binary file of SYSCALLS.md.

use std::fs::File;
use std::io::{BufWriter, Write};

use super::call::{Call, Stream, StreamNumber};
use super::header::Header;
use super::probe_files::{block, BLOCK_HEADER_BYTES, TRACE_MAGIC};
use crate::failure::{Outcome, Tried};

const BUFFER_BYTES: usize = 256 * 1024;

pub struct TraceFile {
    out: BufWriter<File>,
    path: String,
    calls: u64,
    lost: u64,
    /// The body of the block being made.
    body: Vec<u8>,
}

impl TraceFile {
    pub fn create(path: &str, header: &Header) -> Outcome<TraceFile> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, File::create(path).tried(|| format!("create {path}"))?);
        let mut file = TraceFile { out, path: path.to_owned(), calls: 0, lost: 0, body: Vec::new() };
        file.out.write_all(&TRACE_MAGIC).tried(|| format!("write {path}"))?;
        file.body.extend(header.lines().as_bytes());
        file.block(block::HEADER)?;
        file.flush()?;
        Ok(file)
    }

    fn block(&mut self, kind: u8) -> Outcome<()> {
        let mut head = [kind; BLOCK_HEADER_BYTES];
        head[1..].copy_from_slice(&(self.body.len() as u32).to_le_bytes());
        let written = self.out.write_all(&head).and_then(|()| self.out.write_all(&self.body));
        self.body.clear();
        written.tried(|| format!("write {}", self.path))
    }

    pub fn stream(&mut self, number: StreamNumber, stream: &Stream) -> Outcome<()> {
        varint(&mut self.body, number);
        varint(&mut self.body, stream.tid.into());
        varint(&mut self.body, stream.tgid.unwrap_or(0).into());
        self.body.extend(&stream.name);
        self.block(block::STREAM)
    }

    /// Calls of one stream, in order; `lost` of it were lost before them.
    pub fn calls(&mut self, stream: StreamNumber, lost: u64, calls: &[Call]) -> Outcome<()> {
        if calls.is_empty() && lost == 0 {
            return Ok(());
        }
        let mut end_ns = calls.first().map_or(0, |call| call.entry_ns);
        varint(&mut self.body, stream);
        varint(&mut self.body, lost);
        varint(&mut self.body, end_ns);
        varint(&mut self.body, calls.len() as u64);
        for call in calls {
            let returned = u64::from(call.exit.is_some());
            varint(&mut self.body, u64::from(call.number) << 1 | returned);
            varint(&mut self.body, call.entry_ns.saturating_sub(end_ns));
            end_ns = call.entry_ns;
            if let Some(exit) = call.exit {
                varint(&mut self.body, exit.duration_ns);
                varint(&mut self.body, (exit.value << 1 ^ exit.value >> 63) as u64);
                end_ns = end_ns.saturating_add(exit.duration_ns);
            }
        }
        self.calls += calls.len() as u64;
        self.block(block::CALLS)
    }

    pub fn ended(&mut self, stream: StreamNumber) -> Outcome<()> {
        varint(&mut self.body, stream);
        self.block(block::STREAM_END)
    }

    /// Adds to the total alone; where they were lost is told by `calls` or `lost`.
    pub fn add_lost(&mut self, events: u64) {
        self.lost += events;
    }

    pub fn lost(&mut self, time_ns: u64, events: u64) -> Outcome<()> {
        self.lost += events;
        varint(&mut self.body, time_ns);
        varint(&mut self.body, events);
        self.block(block::LOST)
    }

    pub fn flush(&mut self) -> Outcome<()> {
        self.out.flush().tried(|| format!("write {}", self.path))
    }

    pub fn end(mut self, end_ns: u64) -> Outcome<()> {
        for value in [end_ns, self.calls, self.lost] {
            varint(&mut self.body, value);
        }
        self.block(block::END)?;
        self.flush()
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 624485 is the example of Wikipedia's article on LEB128.
    #[test]
    fn varints_are_leb128() {
        let mut out = Vec::new();
        [0, 127, 128, 624_485, u64::MAX].into_iter().for_each(|value| varint(&mut out, value));
        let mut expected = vec![0, 127, 0x80, 1, 0xe5, 0x8e, 0x26];
        expected.extend([0xff; 9]);
        expected.push(1);
        assert_eq!(out, expected);
    }
}
