//! Several captures read as one, by time. A capture that breaks off gives its packets up to there, and says where.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};
use std::ops::Range;

use super::{Decoder, Frame, LinkType, Origin, Step, Window};
use crate::error::{Error, ReadError};

/// Where and why a capture could not be read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// In the capture as it was before it was compressed.
    pub byte: u64,
    pub reason: String,
}

/// A capture that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub origin: Origin,
    pub stop: Option<Stop>,
}

/// A capture that is none, or that cannot be read: which of those given, and why.
#[derive(Debug)]
pub struct Unreadable {
    pub which: usize,
    pub error: ReadError,
}

/// What is known of the frame that comes next, beside its bytes.
struct Head {
    time_ns: Option<i64>,
    original_bytes: u32,
    link: LinkType,
    /// Within the window.
    data: Range<usize>,
    consumed: usize,
}

impl Head {
    #[inline]
    fn frame<'a>(&self, bytes: &'a [u8]) -> Frame<'a> {
        let Head { time_ns, original_bytes, link, .. } = *self;
        Frame { time_ns, original_bytes, link, data: &bytes[self.data.clone()] }
    }

    /// As seen from `start` bytes before.
    #[inline]
    fn moved(&self, start: usize) -> Head {
        Head { data: self.data.start + start..self.data.end + start, ..*self }
    }
}

struct Source<R> {
    window: Window<R>,
    decoder: Decoder,
    head: Option<Head>,
    /// The latest time that a frame said, for those that say none.
    time_ns: i64,
    stop: Option<Stop>,
}

enum Decoded {
    Frame,
    Needs(usize),
    End,
}

impl<R: Read> Source<R> {
    fn new(reader: R) -> Self {
        Source { window: Window::new(reader), decoder: Decoder::new(), head: None, time_ns: i64::MIN, stop: None }
    }

    /// Goes on to the next frame; false at the end.
    #[inline]
    fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            match self.decode()? {
                Decoded::Frame => return Ok(true),
                Decoded::End => return Ok(false),
                Decoded::Needs(needed) => {
                    if !self.fill(needed)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Goes on to the next frame that the window holds.
    #[inline]
    fn decode(&mut self) -> Result<Decoded, ReadError> {
        if let Some(head) = self.head.take() {
            self.window.consume(head.consumed);
        }
        loop {
            let input = self.window.bytes();
            match self.decoder.step(input) {
                Ok(Step::Frame { consumed, frame }) => {
                    let start = frame.data.as_ptr() as usize - input.as_ptr() as usize;
                    self.time_ns = frame.time_ns.unwrap_or(self.time_ns);
                    self.head = Some(Head {
                        time_ns: frame.time_ns,
                        original_bytes: frame.original_bytes,
                        link: frame.link,
                        data: start..start + frame.data.len(),
                        consumed,
                    });
                    return Ok(Decoded::Frame);
                }
                Ok(Step::Other { consumed }) => self.window.consume(consumed),
                Ok(Step::More { needed, .. }) => return Ok(Decoded::Needs(needed)),
                Err(error) => return self.damaged(error).map(|()| Decoded::End),
            }
        }
    }

    /// Reads on; false at the end.
    fn fill(&mut self, needed: usize) -> Result<bool, ReadError> {
        match self.window.fill(needed) {
            Ok(true) => return Ok(true),
            Ok(false) => match self.decoder.cut_off(self.window.bytes()) {
                Ok(Some(error)) | Err(error) => self.damaged(error)?,
                Ok(None) => {}
            },
            Err(error) => self.broken(error)?,
        }
        Ok(false)
    }

    #[inline]
    fn frame(&self) -> Option<Frame<'_>> {
        self.head.as_ref().map(|head| head.frame(self.window.bytes()))
    }

    fn into_ended(self) -> Ended {
        Ended { origin: self.decoder.into_origin(), stop: self.stop }
    }

    #[cold]
    fn damaged(&mut self, error: Error) -> Result<(), ReadError> {
        if self.decoder.is_headless() {
            return Err(error.into());
        }
        let byte = match &error {
            Error::Length { offset, .. } | Error::Value { offset, .. } => *offset,
            Error::Line { .. } | Error::Missing { .. } => self.decoder.offset(),
        };
        self.stop = Some(Stop { byte, reason: error.to_string() });
        Ok(())
    }

    /// Compressed data that end early or are damaged end the capture; a device that fails does not.
    #[cold]
    fn broken(&mut self, error: io::Error) -> Result<(), ReadError> {
        let is_data = matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof);
        if !is_data || self.decoder.is_headless() {
            return Err(error.into());
        }
        let byte = self.decoder.offset() + self.window.bytes().len() as u64;
        self.stop = Some(Stop { byte, reason: format!("compressed data after byte {byte}: {error}") });
        Ok(())
    }
}

/// Hands the frames of all captures to `sink` in the order of their times.
///
/// Within a capture its own order stands. Of equal times the capture that begins first comes first, and of those that
/// begin together the one given first.
pub fn read_merged<R: Read>(
    readers: impl IntoIterator<Item = R>,
    mut sink: impl FnMut(&Frame),
) -> Result<Vec<Ended>, Unreadable> {
    let mut sources: Vec<Source<R>> = readers.into_iter().map(Source::new).collect();
    let mut order = Vec::new();
    for (which, source) in sources.iter_mut().enumerate() {
        if source.advance().map_err(|error| Unreadable { which, error })? {
            order.push((source.time_ns, which));
        }
    }
    order.sort_unstable();
    let mut next: BinaryHeap<Reverse<(i64, usize)>> =
        order.iter().enumerate().map(|(rank, (time, _))| Reverse((*time, rank))).collect();
    while let Some(Reverse((_, rank))) = next.pop() {
        let which = order[rank].1;
        let source = &mut sources[which];
        // On with this one for as long as it is the earliest.
        let until = next.peek().map(|Reverse(other)| *other);
        loop {
            if let Some(frame) = source.frame() {
                sink(&frame);
            }
            if !source.advance().map_err(|error| Unreadable { which, error })? {
                break;
            }
            let key = (source.time_ns, rank);
            if until.is_some_and(|until| key > until) {
                next.push(Reverse(key));
                break;
            }
        }
    }
    Ok(sources.into_iter().map(Source::into_ended).collect())
}

/// Frames of one capture with the bytes that they lie in, to be handed to another thread.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    frames: Vec<Head>,
}

impl Batch {
    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        self.frames.iter().map(|head| head.frame(&self.bytes))
    }
}

/// Hands the frames of one capture to `sink`, in the buffers that they were read into. `sink` gives a batch back whose
/// memory is used again.
pub fn read_batches<R: Read>(reader: R, mut sink: impl FnMut(Batch) -> Batch) -> Result<Ended, ReadError> {
    let mut source = Source::new(reader);
    let mut batch = Batch::default();
    loop {
        let needed = match source.decode()? {
            Decoded::Frame => {
                let start = source.window.start;
                batch.frames.extend(source.head.as_ref().map(|head| head.moved(start)));
                continue;
            }
            Decoded::Needs(needed) => Some(needed),
            Decoded::End => None,
        };
        if !batch.frames.is_empty() {
            batch.bytes = source.window.exchange(batch.bytes);
            batch = sink(batch);
            batch.frames.clear();
        }
        match needed {
            Some(needed) if source.fill(needed)? => {}
            _ => return Ok(source.into_ended()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pcap file of frames with these times (µs) and this one byte each.
    fn pcap(times: &[u32], mark: u8) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 65535, 1] {
            file.extend(word.to_le_bytes());
        }
        for time in times {
            for word in [0, *time, 1, 1] {
                file.extend(word.to_le_bytes());
            }
            file.push(mark);
        }
        file
    }

    type Found = (Vec<(i64, u8)>, Result<Vec<Ended>, Unreadable>);

    fn read(files: &[Vec<u8>]) -> Found {
        let mut frames = Vec::new();
        let ended = read_merged(files.iter().map(Vec::as_slice), |frame| {
            frames.push((frame.time_ns.unwrap_or(-1) / 1000, frame.data[0]));
        });
        (frames, ended)
    }

    #[test]
    fn frames_come_by_time_and_ties_by_the_beginning_of_their_files() {
        let (a, b) = (pcap(&[2, 5, 5, 9], b'a'), pcap(&[1, 5, 8], b'b'));
        let expected = vec![(1, b'b'), (2, b'a'), (5, b'b'), (5, b'a'), (5, b'a'), (8, b'b'), (9, b'a')];
        assert_eq!(read(&[a.clone(), b.clone()]).0, expected);
        assert_eq!(read(&[b, a]).0, expected);
    }

    #[test]
    fn a_files_own_order_stands() {
        let (frames, _) = read(&[pcap(&[3, 1, 4], b'a'), pcap(&[2, 3], b'b')]);
        assert_eq!(frames, vec![(2, b'b'), (3, b'b'), (3, b'a'), (1, b'a'), (4, b'a')]);
    }

    #[test]
    fn a_capture_cut_off_gives_what_is_there_and_the_byte_of_the_record() {
        let mut cut = pcap(&[1, 2, 3], b'a');
        cut.truncate(24 + 2 * 17 + 5);
        let (frames, ended) = read(&[cut, pcap(&[4], b'b')]);
        assert_eq!(frames, vec![(1, b'a'), (2, b'a'), (4, b'b')]);
        let ended = ended.unwrap();
        assert_eq!(ended[0].stop.as_ref().map(|stop| stop.byte), Some(24 + 2 * 17));
        assert_eq!(ended[1].stop, None);
    }

    #[test]
    fn an_impossible_length_ends_a_capture_where_it_stands() {
        let mut damaged = pcap(&[1, 2], b'a');
        let at = 24 + 17 + 8;
        damaged[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let (frames, ended) = read(&[damaged]);
        assert_eq!(frames.len(), 1);
        assert_eq!(ended.unwrap()[0].stop.as_ref().map(|stop| stop.byte), Some(at as u64));
    }

    #[test]
    fn a_file_that_is_no_capture_is_named() {
        for bytes in [b"PK\x03\x04 and more".to_vec(), Vec::new()] {
            let (_, ended) = read(&[pcap(&[1], b'a'), bytes]);
            assert!(matches!(ended, Err(Unreadable { which: 1, error: ReadError::Format(_) })));
        }
    }

    #[test]
    fn batches_hold_what_a_reader_gives_in_whatever_pieces() {
        struct Dribble<'a>(&'a [u8], usize);
        impl Read for Dribble<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let count = self.1.min(self.0.len()).min(buffer.len());
                buffer[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut file = pcap(&(0..40_000).collect::<Vec<_>>(), b'a');
        file.truncate(file.len() - 3);
        let (expected, ended) = read(&[file.clone()]);
        for piece in [1000, 4096, 300_000, 1_000_000] {
            let mut frames = Vec::new();
            let found = read_batches(Dribble(&file, piece), |batch| {
                frames.extend(batch.frames().map(|frame| (frame.time_ns.unwrap_or(-1) / 1000, frame.data[0])));
                batch
            });
            assert!(frames == expected, "{piece}");
            assert_eq!(found.ok().as_ref(), ended.as_ref().ok().map(|ended| &ended[0]));
        }
    }

    #[test]
    fn compressed_data_that_end_early_end_the_capture() {
        let whole = zstd::encode_all(pcap(&(0..100_000).collect::<Vec<_>>(), b'a').as_slice(), 1).unwrap();
        let reader = super::super::Decompressed::new(&whole[..whole.len() / 2]).unwrap();
        let mut frames = 0u64;
        let ended = read_merged([reader], |_| frames += 1).unwrap();
        let stop = ended[0].stop.clone().unwrap();
        assert!(frames > 0 && frames < 100_000);
        assert!((24 + frames * 17..24 + (frames + 1) * 17).contains(&stop.byte), "{frames} {stop:?}");
    }
}
