//! Frames on the control stream: u32 payload length, u32 channel, u8 kind, payload; little endian.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

pub const HEADER_BYTES: usize = 9;
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Hello = 0x01,
    Exec = 0x10,
    Stdin = 0x11,
    Signal = 0x12,
    Read = 0x13,
    Write = 0x14,
    List = 0x15,
    Listening = 0x16,
    Ping = 0x17,
    PowerOff = 0x18,
    Usage = 0x19,
    Release = 0x1a,
    Resumed = 0x1b,
    Nic = 0x1c,
    Reach = 0x1d,
    Started = 0x20,
    Stdout = 0x21,
    Stderr = 0x22,
    Exit = 0x23,
    Data = 0x24,
    End = 0x25,
    Error = 0x2f,
}

impl Kind {
    /// The kinds that a controller may send.
    fn from_controller(byte: u8) -> Option<Kind> {
        use Kind::*;
        [
            Exec, Stdin, Signal, Read, Write, List, Listening, Ping, PowerOff, Usage, Release, Resumed, Nic, Reach,
            Data, End,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

#[derive(Debug)]
pub struct Frame {
    pub channel: u32,
    pub kind: Kind,
    pub payload: Vec<u8>,
}

/// Why no frame could be read.
#[derive(Debug)]
pub enum Broken {
    /// The other side has gone, or the stream failed.
    Stream,
    /// What came is not this protocol.
    Protocol(String),
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Broken::Stream
    }
}

pub fn read_frame(stream: &mut impl Read) -> Result<Frame, Broken> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let [l0, l1, l2, l3, c0, c1, c2, c3, kind] = header;
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let channel = u32::from_le_bytes([c0, c1, c2, c3]);
    if length > MAX_PAYLOAD_BYTES {
        return Err(Broken::Protocol(format!(
            "frame of {length} bytes on channel {channel}; the most is {MAX_PAYLOAD_BYTES}"
        )));
    }
    let Some(kind) = Kind::from_controller(kind) else {
        return Err(Broken::Protocol(format!("frame of unknown kind {kind:#04x} on channel {channel}")));
    };
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload)?;
    Ok(Frame { channel, kind, payload })
}

/// Room for a header and a payload that is read in place, so that a frame leaves in one write.
/// (A virtio port takes each part of a writev as a request of its own, which is slow.)
pub struct Buffer(Vec<u8>);

impl Buffer {
    pub fn new(payload_bytes: usize) -> Self {
        Buffer(vec![0; HEADER_BYTES + payload_bytes])
    }

    pub fn payload(&mut self) -> &mut [u8] {
        &mut self.0[HEADER_BYTES..]
    }
}

fn header(channel: u32, kind: Kind, length: usize) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&(length as u32).to_le_bytes());
    header[4..8].copy_from_slice(&channel.to_le_bytes());
    header[8] = kind as u8;
    header
}

/// The sending side, shared by all channels. Writers take turns in the order in which they came: with a plain mutex one big
/// READ would retake it again and again and starve the others.
pub struct Output {
    stream: File,
    turns: Mutex<Turns>,
    passed: Condvar,
}

#[derive(Default)]
struct Turns {
    next: u64,
    serving: u64,
}

impl Output {
    pub fn new(stream: File) -> Self {
        Output { stream, turns: Mutex::default(), passed: Condvar::new() }
    }

    /// Sends the first `length` payload bytes of `buffer`.
    pub fn send_buffer(&self, channel: u32, kind: Kind, buffer: &mut Buffer, length: usize) -> io::Result<()> {
        let bytes = &mut buffer.0[..HEADER_BYTES + length];
        bytes[..HEADER_BYTES].copy_from_slice(&header(channel, kind, length));
        self.write(bytes)
    }

    pub fn send_json(&self, channel: u32, kind: Kind, body: &impl Serialize) -> io::Result<()> {
        let mut bytes = vec![0; HEADER_BYTES];
        serde_json::to_writer(&mut bytes, body)?;
        let length = bytes.len() - HEADER_BYTES;
        if length > MAX_PAYLOAD_BYTES {
            return Err(io::Error::other("answer too long for a frame"));
        }
        bytes[..HEADER_BYTES].copy_from_slice(&header(channel, kind, length));
        self.write(&bytes)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut turns = self.turns();
        let mine = turns.next;
        turns.next += 1;
        while turns.serving != mine {
            turns = self.passed.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
        drop(turns);
        let written = (&self.stream).write_all(bytes);
        self.turns().serving += 1;
        self.passed.notify_all();
        written
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_frame() {
        let mut bytes = &b"\x02\0\0\0\x07\0\0\0\x11hi"[..];
        let frame = read_frame(&mut bytes).unwrap();
        assert_eq!((frame.channel, frame.kind), (7, Kind::Stdin));
        assert_eq!(frame.payload, b"hi");
        assert!(matches!(read_frame(&mut bytes), Err(Broken::Stream)));
    }

    #[test]
    fn refuses_what_is_too_long_before_reading_it() {
        let header = header(3, Kind::Stdin, MAX_PAYLOAD_BYTES + 1);
        let Err(Broken::Protocol(why)) = read_frame(&mut &header[..]) else {
            panic!("accepted");
        };
        assert!(why.contains("1048577 bytes on channel 3"), "{why}");
    }

    #[test]
    fn refuses_kinds_that_only_the_agent_sends() {
        for kind in [0, Kind::Hello as u8, Kind::Stdout as u8, 0xff] {
            let mut header = header(1, Kind::End, 0);
            header[8] = kind;
            assert!(matches!(read_frame(&mut &header[..]), Err(Broken::Protocol(_))));
        }
    }

    #[test]
    fn a_cut_frame_is_the_end_of_the_stream() {
        let bytes = b"\x05\0\0\0\x01\0\0\0\x11hi";
        for length in 0..bytes.len() {
            assert!(matches!(read_frame(&mut &bytes[..length]), Err(Broken::Stream)));
        }
    }
}
