//! The first message of a TLS handshake in one direction of a connection, put together from its segments and records.
//!
//! Only what follows a captured SYN is read, from its first byte. A message that is not there as a whole, since the snap length
//! cut its packets or some were not captured, is none: there is no hash of a part.

pub mod hello;

use crate::capture::Frame;
use crate::flow::reassembly::{Chunk, Stream};
use crate::wire::tcp::{Segment, SYN};
use crate::wire::Packet;

/// A record's type.
const HANDSHAKE: u8 = 22;
const RECORD_HEADER_BYTES: usize = 5;
/// RFC 8446 section 5.1: of a record in the clear.
const MAX_RECORD_BYTES: usize = 1 << 14;
const MESSAGE_HEADER_BYTES: usize = 4;
/// With its records. Hellos have 100 to 600 bytes, with keys of post-quantum schemes 2 KB.
const MAX_HELLO_BYTES: usize = 1 << 14;
/// As a handshake message's first byte.
pub const CLIENT_HELLO: u8 = 1;
pub const SERVER_HELLO: u8 = 2;

/// What is known of a direction's first message.
#[derive(Debug, Default)]
pub enum First {
    /// Its SYN was not seen.
    #[default]
    Unknown,
    /// With the number of its first byte.
    Opened(u32),
    Awaited(Box<Reading>),
    /// It was handed out, or there is none.
    Over,
}

#[derive(Debug, Default)]
pub struct Reading {
    stream: Stream,
    /// Records as they come, as far as they are read.
    bytes: Vec<u8>,
    is_cut: bool,
}

/// How a direction's first message ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its bytes after the header.
    Whole(Vec<u8>),
    /// A hello began, but is not all there.
    Cut,
}

enum Progress {
    More,
    No,
    Cut,
    Whole(Vec<u8>),
}

impl First {
    /// Takes a segment of the direction. `kind` is of the message that it would be; `spare` see [`Stream::segment`].
    #[inline]
    pub fn segment(
        &mut self,
        kind: u8,
        frame: &Frame,
        packet: &Packet,
        segment: &Segment,
        spare: &mut usize,
    ) -> Option<Ended> {
        if segment.has(SYN) && matches!(self, First::Unknown) {
            *self = First::Opened(segment.sequence.wrapping_add(1));
        }
        if segment.payload_bytes == 0 {
            return None;
        }
        let captured = packet.transport_data(frame.data);
        let captured = captured.get(usize::from(segment.header_bytes)..).unwrap_or_default();
        let captured = &captured[..captured.len().min(segment.payload_bytes as usize)];
        let sequence = segment.sequence.wrapping_add(u32::from(segment.has(SYN)));
        if let First::Opened(first) = *self {
            // Most connections speak something else.
            if sequence == first && captured.first().is_some_and(|byte| *byte != HANDSHAKE) {
                *self = First::Over;
                return None;
            }
            let mut reading = Reading::default();
            reading.stream.begin(first);
            *self = First::Awaited(Box::new(reading));
        }
        let First::Awaited(reading) = self else { return None };
        let progress = reading.take(kind, sequence, segment.payload_bytes, captured, spare);
        let ended = match progress {
            Progress::More => return None,
            Progress::No => None,
            Progress::Cut => Some(Ended::Cut),
            Progress::Whole(message) => Some(Ended::Whole(message)),
        };
        self.give_up(spare);
        ended
    }

    /// Once nothing more comes: whether a hello had begun.
    pub fn end(&mut self, kind: u8, spare: &mut usize) -> Option<Ended> {
        let First::Awaited(reading) = &*self else { return None };
        let begun = reading.has_begun(kind).then_some(Ended::Cut);
        self.give_up(spare);
        begun
    }

    fn give_up(&mut self, spare: &mut usize) {
        if let First::Awaited(mut reading) = std::mem::replace(self, First::Over) {
            reading.stream.give_up(spare, &mut |_| {});
        }
    }
}

impl Reading {
    fn take(&mut self, kind: u8, sequence: u32, payload_bytes: u32, captured: &[u8], spare: &mut usize) -> Progress {
        let Reading { stream, bytes, is_cut } = self;
        stream.segment(sequence, payload_bytes, captured, None, spare, |chunk: Chunk| {
            if !*is_cut && bytes.len() < MAX_HELLO_BYTES {
                bytes.extend_from_slice(chunk.captured);
            }
            *is_cut |= chunk.missing > 0;
        });
        match message(kind, &self.bytes) {
            Progress::More if self.is_cut || self.bytes.len() >= MAX_HELLO_BYTES => match self.has_begun(kind) {
                true => Progress::Cut,
                false => Progress::No,
            },
            progress => progress,
        }
    }

    /// Whether the first record's header and the message's type are those of a hello.
    fn has_begun(&self, kind: u8) -> bool {
        self.bytes.len() > RECORD_HEADER_BYTES && !matches!(message(kind, &self.bytes), Progress::No)
    }
}

/// The handshake message at the start of records, as far as they are there.
fn message(kind: u8, mut records: &[u8]) -> Progress {
    let mut handshake = Vec::new();
    loop {
        match records {
            [HANDSHAKE, 3, _, ..] | [HANDSHAKE, 3] | [HANDSHAKE] | [] => {}
            _ => return Progress::No,
        }
        let Some((header, rest)) = records.split_first_chunk::<RECORD_HEADER_BYTES>() else { return Progress::More };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if length == 0 || length > MAX_RECORD_BYTES {
            return Progress::No;
        }
        let part = &rest[..rest.len().min(length)];
        handshake.extend_from_slice(part);
        if handshake.first().is_some_and(|first| *first != kind) {
            return Progress::No;
        }
        if let Some((header, body)) = handshake.split_first_chunk::<MESSAGE_HEADER_BYTES>() {
            let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
            if length > MAX_HELLO_BYTES {
                return Progress::No;
            }
            if let Some(whole) = body.get(..length) {
                return Progress::Whole(whole.to_vec());
            }
        }
        if part.len() < length {
            return Progress::More;
        }
        records = &rest[length..];
    }
}
