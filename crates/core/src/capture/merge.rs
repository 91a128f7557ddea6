//! Several captures read as one, by time; and one in batches, for another thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;

use super::source::{read_until_stop, Decoded, Ended, Source};
use super::{Frame, LinkType};
use crate::error::ReadError;

/// Which of the files given is no capture or cannot be read, and why.
#[derive(Debug)]
pub struct Unreadable {
    pub which: usize,
    pub error: ReadError,
}

/// Hands the frames of all captures to `sink` in the order of their times.
///
/// Frames of one capture keep their order. Where times are equal, the capture that begins first comes first. Where
/// captures begin together, the one given first does.
pub fn read_merged<R: Read>(
    readers: impl IntoIterator<Item = R>,
    mut sink: impl FnMut(&Frame),
) -> Result<Vec<Ended>, Unreadable> {
    let mut readers: Vec<R> = readers.into_iter().collect();
    match readers.pop() {
        Some(only) if readers.is_empty() => {
            let ended = read_until_stop(only, sink).map_err(|error| Unreadable { which: 0, error })?;
            return Ok(vec![ended]);
        }
        last => readers.extend(last),
    }
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
        // This capture goes on for as long as it is the earliest.
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

/// The bytes of some frames of one capture, to be handed to other threads.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
}

/// One frame of a batch.
#[derive(Clone, Copy)]
pub struct Place {
    time_ns: Option<i64>,
    original_bytes: u32,
    start: u32,
    captured: u32,
    link: LinkType,
}

impl Batch {
    #[inline]
    pub fn frame(&self, place: &Place) -> Frame<'_> {
        let Place { time_ns, original_bytes, start, captured, link } = *place;
        Frame { time_ns, original_bytes, link, data: &self.bytes[start as usize..][..captured as usize] }
    }
}

/// The frames of one capture in batches, in the buffers that they were read into.
pub struct Batches<R> {
    source: Source<R>,
    /// What the source has asked for and not got yet; `None` once it has ended.
    needed: Option<usize>,
}

impl<R: Read> Batches<R> {
    pub fn new(reader: R) -> Self {
        Batches { source: Source::new(reader), needed: Some(1) }
    }

    /// Fills `batch`, whose memory is used again, with the next frames, which `sink` gets; false where there are none any
    /// more.
    pub fn next(&mut self, batch: &mut Batch, mut sink: impl FnMut(&Frame, Place)) -> Result<bool, ReadError> {
        let mut has_frames = false;
        while let Some(needed) = self.needed.filter(|_| !has_frames) {
            self.needed = None;
            if !self.source.fill(needed)? {
                break;
            }
            let mut placed = |frame: &Frame, start: usize| {
                let Frame { time_ns, original_bytes, link, data } = *frame;
                sink(frame, Place { time_ns, original_bytes, start: start as u32, captured: data.len() as u32, link });
            };
            loop {
                while self.source.record(&mut placed) {
                    has_frames = true;
                }
                match self.source.decode()? {
                    Decoded::Frame => {
                        if let (Some(frame), Some(start)) = (self.source.frame(), self.source.starts()) {
                            has_frames = true;
                            placed(&frame, start);
                        }
                    }
                    Decoded::Needs(needed) => {
                        self.needed = Some(needed);
                        break;
                    }
                    Decoded::End => break,
                }
            }
        }
        if has_frames {
            batch.bytes = self.source.window.exchange(std::mem::take(&mut batch.bytes));
        }
        Ok(has_frames)
    }

    pub fn into_ended(self) -> Ended {
        self.source.into_ended()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

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
            let (mut frames, mut batch) = (Vec::new(), Batch::default());
            let mut batches = Batches::new(Dribble(&file, piece));
            let mut places = Vec::new();
            while batches.next(&mut batch, |_, place| places.push(place)).unwrap() {
                let of_batch = places.drain(..).map(|place| batch.frame(&place));
                frames.extend(of_batch.map(|frame| (frame.time_ns.unwrap_or(-1) / 1000, frame.data[0])));
            }
            assert!(frames == expected, "{piece}");
            assert_eq!(Some(&batches.into_ended()), ended.as_ref().ok().map(|ended| &ended[0]));
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
