//! Writes the file of STATIONS.md.

use std::collections::HashMap;
use std::fs;
use std::io::{BufWriter, Write};

use super::probe_files::{
    block, BLOCK_HEADER_BYTES, CLOCKS_BYTES, CONNECTION_BYTES, END_BYTES, MAGIC, NO_CONNECTION, RECORD_BYTES,
};
use super::record::{Connection, Offsets, Record};
use crate::failure::{Outcome, Tried};
use crate::sockets::scope::Scope;
use crate::sys;

const BUFFER_BYTES: usize = 256 * 1024;
/// Of a block of records.
const BLOCK_BYTES: usize = 1024 * RECORD_BYTES;
/// The clocks are read so often, and the reading that took least is kept.
const READINGS: usize = 8;

pub struct File {
    out: BufWriter<fs::File>,
    path: String,
    scope: Scope,
    offsets: Offsets,
    limit_bytes: u64,
    written: u64,
    connections: HashMap<Connection, u32>,
    records: Vec<u8>,
    beyond: u64,
}

impl File {
    pub fn create(path: String, scope: Scope, offsets: Offsets, limit_bytes: u64, header: &str) -> Outcome<File> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, fs::File::create(&path).tried(|| format!("create {path}"))?);
        let (connections, records) = (HashMap::new(), Vec::with_capacity(BLOCK_BYTES));
        let mut file = File { out, path, scope, offsets, limit_bytes, written: 0, connections, records, beyond: 0 };
        file.write(&MAGIC)?;
        file.block(block::HEADER, header.as_bytes())?;
        file.clocks()?;
        Ok(file)
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes).tried(|| format!("write {}", self.path))
    }

    fn block(&mut self, kind: u8, body: &[u8]) -> Outcome<()> {
        let mut head = [kind; BLOCK_HEADER_BYTES];
        head[1..].copy_from_slice(&(body.len() as u32).to_le_bytes());
        self.write(&head)?;
        self.write(body)
    }

    /// Which real time the monotonic time is.
    pub fn clocks(&mut self) -> Outcome<()> {
        let read = || {
            let before = sys::monotonic_ns();
            let real = sys::clock_ns(libc::CLOCK_REALTIME);
            let after = sys::monotonic_ns();
            (after - before, i64::midpoint(before, after), real)
        };
        let (within, monotonic, real) = (0..READINGS).map(|_| read()).min().unwrap_or_else(read);
        let mut body = [0; CLOCKS_BYTES];
        for (at, value) in [monotonic, real, within].into_iter().enumerate() {
            body[8 * at..8 * at + 8].copy_from_slice(&value.to_le_bytes());
        }
        self.flush_records()?;
        self.block(block::CLOCKS, &body)
    }

    /// A record of the ring. Those of other connections are nobody's.
    pub fn take(&mut self, bytes: &[u8]) -> Outcome<()> {
        let Some(record) = Record::parse(bytes, &self.offsets) else { return Ok(()) };
        if record.connection.is_some_and(|it| !self.scope.covers(it.other.0, [it.own.1, it.other.1])) {
            return Ok(());
        }
        if self.written + (self.records.len() + CONNECTION_BYTES + RECORD_BYTES) as u64 > self.limit_bytes {
            self.beyond += 1;
            return Ok(());
        }
        let number = match record.connection {
            None => NO_CONNECTION,
            Some(connection) => match self.connections.get(&connection) {
                Some(number) => *number,
                None => {
                    let number = self.connections.len() as u32;
                    self.connections.insert(connection, number);
                    self.block(block::CONNECTION, &connection.to_bytes())?;
                    number
                }
            },
        };
        for word in [record.time_ns, record.end_ns] {
            self.records.extend(word.to_le_bytes());
        }
        for word in [record.sequence, record.bytes as u32, number, record.thread, record.process] {
            self.records.extend(word.to_le_bytes());
        }
        self.records.extend([record.station, record.flags, 0, 0]);
        if self.records.len() >= BLOCK_BYTES {
            self.flush_records()?;
        }
        Ok(())
    }

    fn flush_records(&mut self) -> Outcome<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let records = std::mem::take(&mut self.records);
        self.block(block::RECORDS, &records)?;
        self.records = records;
        self.records.clear();
        Ok(())
    }

    pub fn end(mut self, lost: u64, missed: u64) -> Outcome<()> {
        self.clocks()?;
        let mut body = [0; END_BYTES];
        for (at, value) in [lost, missed, self.beyond].into_iter().enumerate() {
            body[8 * at..8 * at + 8].copy_from_slice(&value.to_le_bytes());
        }
        self.block(block::END, &body)?;
        self.out.flush().tried(|| format!("write {}", self.path))
    }
}
