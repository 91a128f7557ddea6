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

struct Source<R> {
    window: Window<R>,
    decoder: Decoder,
    head: Option<Head>,
    /// The latest time that a frame said, for those that say none.
    time_ns: i64,
    stop: Option<Stop>,
}

impl<R: Read> Source<R> {
    fn new(reader: R) -> Self {
        Source { window: Window::new(reader), decoder: Decoder::new(), head: None, time_ns: i64::MIN, stop: None }
    }

    /// Goes on to the next frame; false at the end.
    fn advance(&mut self) -> Result<bool, ReadError> {
        if let Some(head) = self.head.take() {
            self.window.consume(head.consumed);
        }
        loop {
            let input = self.window.bytes();
            let needed = match self.decoder.step(input) {
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
                    return Ok(true);
                }
                Ok(Step::Other { consumed }) => {
                    self.window.consume(consumed);
                    continue;
                }
                Ok(Step::More { needed, .. }) => needed,
                Err(error) => return self.damaged(error),
            };
            match self.window.fill(needed) {
                Ok(true) => {}
                Ok(false) => return self.ended(),
                Err(error) => return self.broken(error),
            }
        }
    }

    fn frame(&self) -> Option<Frame<'_>> {
        let head = self.head.as_ref()?;
        let data = &self.window.bytes()[head.data.clone()];
        Some(Frame { time_ns: head.time_ns, original_bytes: head.original_bytes, link: head.link, data })
    }

    #[cold]
    fn ended(&mut self) -> Result<bool, ReadError> {
        match self.decoder.cut_off(self.window.bytes()) {
            Ok(Some(error)) | Err(error) => self.damaged(error),
            Ok(None) => Ok(false),
        }
    }

    #[cold]
    fn damaged(&mut self, error: Error) -> Result<bool, ReadError> {
        if self.decoder.is_headless() {
            return Err(error.into());
        }
        let byte = match &error {
            Error::Length { offset, .. } | Error::Value { offset, .. } => *offset,
            Error::Line { .. } | Error::Missing { .. } => self.decoder.offset(),
        };
        self.stop = Some(Stop { byte, reason: error.to_string() });
        Ok(false)
    }

    /// Compressed data that end early or are damaged end the capture; a device that fails does not.
    #[cold]
    fn broken(&mut self, error: io::Error) -> Result<bool, ReadError> {
        let is_data = matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof);
        if !is_data || self.decoder.is_headless() {
            return Err(error.into());
        }
        let byte = self.decoder.offset() + self.window.bytes().len() as u64;
        self.stop = Some(Stop { byte, reason: format!("compressed data after byte {byte}: {error}") });
        Ok(false)
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
    Ok(sources.into_iter().map(|source| Ended { origin: source.decoder.into_origin(), stop: source.stop }).collect())
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

    fn read(files: &[Vec<u8>]) -> (Vec<(i64, u8)>, Result<Vec<Ended>, Unreadable>) {
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
