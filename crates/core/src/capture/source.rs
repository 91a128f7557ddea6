//! A capture read frame by frame, to its end or to where it breaks off.

use std::io::{self, Read};
use std::ops::Range;

use super::{Decoder, Frame, LinkType, Origin, Step, Window};
use crate::error::{Error, ReadError};

/// Where and why a capture could not be read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// An offset in the decompressed capture.
    pub byte: u64,
    pub reason: String,
}

/// A capture that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub origin: Origin,
    pub stop: Option<Stop>,
}

/// What is known of the frame that comes next, beside its bytes.
pub(super) struct Head {
    time_ns: Option<i64>,
    original_bytes: u32,
    link: LinkType,
    /// Within the window.
    data: Range<usize>,
    consumed: usize,
}

impl Head {
    #[inline]
    pub fn frame<'a>(&self, bytes: &'a [u8]) -> Frame<'a> {
        let Head { time_ns, original_bytes, link, .. } = *self;
        Frame { time_ns, original_bytes, link, data: &bytes[self.data.clone()] }
    }
}

/// One capture, frame by frame. If it breaks off, it gives the frames before that.
pub(crate) struct Source<R> {
    pub(super) window: Window<R>,
    decoder: Decoder,
    pub(super) head: Option<Head>,
    /// The latest time of a frame, for the frames without one.
    pub(super) time_ns: i64,
    stop: Option<Stop>,
}

pub(super) enum Decoded {
    Frame,
    Needs(usize),
    End,
}

impl<R: Read> Source<R> {
    pub fn new(reader: R) -> Self {
        Source { window: Window::new(reader), decoder: Decoder::new(), head: None, time_ns: i64::MIN, stop: None }
    }

    /// Goes on to the next frame; false at the end.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, ReadError> {
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
    pub(super) fn decode(&mut self) -> Result<Decoded, ReadError> {
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

    /// Hand the next frame, and where its bytes begin in the window's whole buffer, to `sink` if it is a usual one; false
    /// where [`Source::decode`] has to look.
    #[inline(always)]
    pub(super) fn record(&mut self, sink: impl FnOnce(&Frame, usize)) -> bool {
        if let Some(head) = self.head.take() {
            self.window.consume(head.consumed);
        }
        let input = self.window.bytes();
        let Some((frame, consumed)) = self.decoder.record(input) else { return false };
        self.time_ns = frame.time_ns.unwrap_or(self.time_ns);
        sink(&frame, self.window.start + frame.data.as_ptr() as usize - input.as_ptr() as usize);
        self.window.consume(consumed);
        true
    }

    /// Reads on; false at the end.
    pub(super) fn fill(&mut self, needed: usize) -> Result<bool, ReadError> {
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

    /// The frame that [`Source::advance`] went on to.
    #[inline]
    pub fn frame(&self) -> Option<Frame<'_>> {
        self.head.as_ref().map(|head| head.frame(self.window.bytes()))
    }

    /// Where that frame begins in the window's whole buffer.
    #[inline]
    pub(super) fn starts(&self) -> Option<usize> {
        self.head.as_ref().map(|head| self.window.start + head.data.start)
    }

    pub fn into_ended(self) -> Ended {
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

/// Hands the frames of a capture to `sink`; one that breaks off gives the frames before that.
pub fn read_until_stop<R: Read>(reader: R, mut sink: impl FnMut(&Frame)) -> Result<Ended, ReadError> {
    let mut source = Source::new(reader);
    loop {
        let input = source.window.bytes();
        let (frame, consumed) = match source.decoder.record(input) {
            Some(format) => format,
            None => match source.decoder.step(input) {
                Ok(Step::Frame { frame, consumed }) => (frame, consumed),
                Ok(Step::Other { consumed }) => {
                    source.window.consume(consumed);
                    continue;
                }
                Ok(Step::More { needed, .. }) => {
                    if source.fill(needed)? {
                        continue;
                    }
                    break;
                }
                Err(error) => {
                    source.damaged(error)?;
                    break;
                }
            },
        };
        sink(&frame);
        source.window.consume(consumed);
    }
    Ok(source.into_ended())
}
