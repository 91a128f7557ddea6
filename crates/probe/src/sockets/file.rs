//! The file that `sockets` writes: SOCKETS.md has its records.

use std::fs::File;
use std::io::Write;

use super::diag::{Found, IPV4};
use crate::failure::{Outcome, Tried};

const SOCKET: u32 = 1;
const SAMPLES: u32 = 2;
const INTERVAL: u32 = 3;
const END: u32 = 4;
const RECORD_HEAD: usize = 8;
const SAMPLES_HEAD: usize = 16;
const FLUSHED_AT: usize = 64 * 1024;

pub struct Output {
    file: File,
    path: String,
    buffer: Vec<u8>,
    /// Where the record of samples that is being filled begins in the buffer, and of what it is.
    open: Option<Open>,
    /// With what is in the buffer.
    bytes: u64,
    limit_bytes: u64,
    /// Samples for which there was no room.
    pub dropped: u64,
}

#[derive(Clone, Copy)]
struct Open {
    at: usize,
    asked_ns: i64,
    info_bytes: usize,
}

impl Output {
    /// `head` is JSON.
    pub fn create(path: String, head: &str, limit_bytes: u64) -> Outcome<Self> {
        let mut file = File::create(&path).tried(|| format!("create {path}"))?;
        writeln!(file, "{head}").tried(|| format!("write {path}"))?;
        let bytes = head.len() as u64 + 1;
        Ok(Output {
            file,
            path,
            buffer: Vec::with_capacity(2 * FLUSHED_AT),
            open: None,
            bytes,
            limit_bytes,
            dropped: 0,
        })
    }

    /// How much of the room is taken, from 0 to 1.
    pub fn fill(&self) -> f64 {
        self.bytes as f64 / self.limit_bytes as f64
    }

    /// False where there is no room.
    pub fn socket(&mut self, number: u32, found: &Found, at_start: bool) -> bool {
        let congestion = found.congestion.unwrap_or_default();
        let mut body = Vec::with_capacity(64);
        body.extend(number.to_le_bytes());
        body.extend([if found.family == IPV4 { 4 } else { 6 }, u8::from(at_start)]);
        body.extend(found.id.source_port().to_le_bytes());
        body.extend(found.id.destination_port().to_le_bytes());
        body.extend([0, 0]);
        body.extend(found.id.source());
        body.extend(found.id.destination());
        body.extend(found.id.cookie().to_le_bytes());
        body.extend(congestion);
        if !self.has_room(RECORD_HEAD + body.len()) {
            return false;
        }
        self.record(SOCKET, &body);
        true
    }

    /// False where there is no room.
    pub fn sample(&mut self, asked_ns: i64, number: u32, info: &[u8]) -> bool {
        let continues = self.open.is_some_and(|open| open.asked_ns == asked_ns && open.info_bytes == info.len());
        let head = if continues { 0 } else { RECORD_HEAD + SAMPLES_HEAD };
        let length = head + 4 + info.len();
        if !self.has_room(length) {
            self.dropped += 1;
            return false;
        }
        if !continues {
            self.close();
            self.open = Some(Open { at: self.buffer.len(), asked_ns, info_bytes: info.len() });
            self.buffer.extend([0; RECORD_HEAD + SAMPLES_HEAD]);
        }
        self.buffer.extend(number.to_le_bytes());
        self.buffer.extend(info);
        self.bytes += length as u64;
        true
    }

    pub fn interval(&mut self, from_ns: i64, interval_ns: i64) {
        let body = [from_ns.to_le_bytes(), interval_ns.to_le_bytes()].concat();
        self.record(INTERVAL, &body);
    }

    /// `end` is JSON. There is always room for it.
    pub fn end(&mut self, end: &str) -> Outcome<()> {
        self.record(END, end.as_bytes());
        self.write()
    }

    /// Writes what has gathered, once that is worth it.
    pub fn flush(&mut self) -> Outcome<()> {
        if self.buffer.len() < FLUSHED_AT {
            return Ok(());
        }
        self.close();
        self.write()
    }

    fn has_room(&self, length: usize) -> bool {
        self.bytes + length as u64 <= self.limit_bytes
    }

    fn record(&mut self, kind: u32, body: &[u8]) {
        self.close();
        self.buffer.extend((body.len() as u32).to_le_bytes());
        self.buffer.extend(kind.to_le_bytes());
        self.buffer.extend(body);
        self.bytes += (RECORD_HEAD + body.len()) as u64;
    }

    /// Fills in the head of the record of samples.
    fn close(&mut self) {
        if let Some(Open { at, asked_ns, info_bytes }) = self.open.take() {
            let body = self.buffer.len() - at - RECORD_HEAD;
            let count = (body - SAMPLES_HEAD) / (4 + info_bytes);
            let head = &mut self.buffer[at..at + RECORD_HEAD + SAMPLES_HEAD];
            head[0..4].copy_from_slice(&(body as u32).to_le_bytes());
            head[4..8].copy_from_slice(&SAMPLES.to_le_bytes());
            head[8..16].copy_from_slice(&asked_ns.to_le_bytes());
            head[16..20].copy_from_slice(&(count as u32).to_le_bytes());
            head[20..24].copy_from_slice(&(info_bytes as u32).to_le_bytes());
        }
    }

    fn write(&mut self) -> Outcome<()> {
        self.file.write_all(&self.buffer).tried(|| format!("write {}", self.path))?;
        self.buffer.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(limit_bytes: u64, fill: impl FnOnce(&mut Output)) -> Vec<u8> {
        let name = format!("twinbed-sockets-{}-{limit_bytes}", std::process::id());
        let path = std::env::temp_dir().join(name).to_str().unwrap().to_owned();
        let mut output = Output::create(path.clone(), "{}", limit_bytes).unwrap();
        fill(&mut output);
        output.end("E").unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        bytes
    }

    /// Byte by byte, by SOCKETS.md.
    #[test]
    fn samples_of_one_moment_share_a_record() {
        let bytes = written(1000, |output| {
            assert!(output.sample(1, 5, b"ab") && output.sample(1, 6, b"cd") && output.sample(2, 5, b"ef"));
            output.interval(3, 4);
        });
        let number = |value: u32| value.to_le_bytes().to_vec();
        let long = |value: i64| value.to_le_bytes().to_vec();
        let two = [
            number(28),
            number(2),
            long(1),
            number(2),
            number(2),
            number(5),
            b"ab".to_vec(),
            number(6),
            b"cd".to_vec(),
        ];
        let one = [number(22), number(2), long(2), number(1), number(2), number(5), b"ef".to_vec()];
        let rest = [number(16), number(3), long(3), long(4), number(1), number(4), b"E".to_vec()];
        assert_eq!(bytes, [b"{}\n".to_vec(), two.concat(), one.concat(), rest.concat()].concat());
    }

    #[test]
    fn is_never_longer_than_its_limit_but_for_its_end() {
        let bytes = written(100, |output| {
            assert!(output.sample(1, 5, &[7; 30]));
            assert!((output.fill() - 0.61).abs() < 1e-9, "3 + 8 + 16 + 34 of 100");
            assert!(output.sample(1, 5, &[7; 30]));
            assert!(!output.sample(1, 5, &[7; 30]));
            assert_eq!(output.dropped, 1);
        });
        assert_eq!(bytes.len(), 95 + 9);
    }
}
