//! A text trace line by line, in bounded memory.

use std::io::Read;

use super::event::Sink;
use super::state::State;
use crate::capture::Window;
use crate::error::{Error, ReadError};

/// A longer line is no line of a trace.
const LONGEST_BYTES: usize = 1 << 20;

/// The lines of a stream, without their ends.
pub struct Lines<R> {
    window: Window<R>,
    /// Of the last line, with its end.
    taken: usize,
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    Whole(&'a [u8]),
    /// The last one, if it has no end.
    Last(&'a [u8]),
    TooLong,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Self {
        Lines { window: Window::new(reader), taken: 0, number: 0 }
    }

    /// The next line; `None` at the end.
    #[inline]
    pub fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        self.window.consume(self.taken);
        self.taken = 0;
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.window.bytes()[searched..]) {
                let end = searched + at;
                self.taken = end + 1;
                self.number += 1;
                let line = &self.window.bytes()[..end];
                return Ok(Some(Line::Whole(line.strip_suffix(b"\r").unwrap_or(line))));
            }
            searched = self.window.bytes().len();
            if searched >= LONGEST_BYTES {
                self.skip_line()?;
                self.number += 1;
                return Ok(Some(Line::TooLong));
            }
            if !self.window.fill(searched + 1)? {
                self.taken = searched;
                self.number += u64::from(searched > 0);
                return Ok((searched > 0).then(|| Line::Last(self.window.bytes())));
            }
        }
    }

    #[cold]
    fn skip_line(&mut self) -> std::io::Result<()> {
        loop {
            let held = self.window.bytes().len();
            if let Some(at) = memchr::memchr(b'\n', self.window.bytes()) {
                self.window.consume(at + 1);
                return Ok(());
            }
            self.window.consume(held);
            if !self.window.fill(1)? {
                return Ok(());
            }
        }
    }

    /// Of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// A reader of one line at a time.
pub trait LineReader {
    const LAYER: &'static str;
    /// A last line without its end is whole; tracers end all lines, so that one of theirs has been cut off.
    const ENDS_WITHOUT_NEWLINE: bool = false;
    /// Takes a line; the error is why it is no call.
    fn line(&mut self, line: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), &'static str>;
}

/// Not a call, as should be: a header, a comment, an exit.
pub const EMPTY_LINE: &str = "empty_line";
const LINE_TOO_LONG: &str = "line_too_long";

/// Hands each line of a trace to its reader, and counts those that are no call by reason.
pub fn read_lines<R: LineReader>(
    reader: impl Read,
    by: &mut R,
    state: &mut State,
    sink: &mut impl Sink,
) -> Result<(), ReadError> {
    let mut lines = Lines::new(reader);
    while let Some(line) = lines.next()? {
        let taken = match line {
            Line::Whole(line) => by.line(line, state, sink),
            Line::Last(line) if R::ENDS_WITHOUT_NEWLINE => by.line(line, state, sink),
            Line::Last(line) => {
                let text = String::from_utf8_lossy(line).into_owned();
                let number = usize::try_from(lines.number()).unwrap_or(usize::MAX);
                state.summary.cut_off = Some(Error::line(R::LAYER, number, &text, "a whole line"));
                break;
            }
            Line::TooLong => Err(LINE_TOO_LONG),
        };
        if let Err(reason) = taken {
            state.skip(reason);
        }
    }
    Ok(())
}
