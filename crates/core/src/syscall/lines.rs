//! A text trace line by line, in bounded memory.

use std::io::Read;

use crate::capture::Window;

/// A longer line is no line of a trace.
pub const LONGEST_BYTES: usize = 1 << 20;

/// The lines of a stream, without their ends.
pub struct Lines<R> {
    window: Window<R>,
    /// Of the last line, with its end.
    taken: usize,
    number: u64,
    terminated: bool,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Self {
        Lines { window: Window::new(reader), taken: 0, number: 0, terminated: true }
    }

    /// The next line; `None` at the end. Of a line that is too long only the start is given, and false.
    #[inline]
    pub fn next(&mut self) -> std::io::Result<Option<(&[u8], bool)>> {
        self.window.consume(self.taken);
        self.taken = 0;
        let mut searched = 0;
        loop {
            let bytes = self.window.bytes();
            if let Some(at) = memchr::memchr(b'\n', &bytes[searched..]) {
                let end = searched + at;
                self.taken = end + 1;
                self.number += 1;
                let line = &self.window.bytes()[..end];
                return Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), true)));
            }
            searched = bytes.len();
            if searched >= LONGEST_BYTES {
                return self.overlong();
            }
            if !self.window.fill(searched + 1)? {
                self.taken = searched;
                self.number += u64::from(searched > 0);
                self.terminated = searched == 0;
                return Ok((searched > 0).then(|| (self.window.bytes(), true)));
            }
        }
    }

    #[cold]
    fn overlong(&mut self) -> std::io::Result<Option<(&[u8], bool)>> {
        const KEPT: usize = 64;
        self.number += 1;
        loop {
            let bytes = self.window.bytes();
            let end = memchr::memchr(b'\n', bytes);
            // The last bytes stay, as what is shown of the line.
            let drop = end.unwrap_or(bytes.len()).saturating_sub(KEPT);
            self.window.consume(drop);
            if let Some(at) = end {
                self.taken = at - drop + 1;
                return Ok(Some((&self.window.bytes()[..at - drop], false)));
            }
            let held = self.window.bytes().len();
            if !self.window.fill(held + 1)? {
                self.taken = held;
                self.terminated = false;
                return Ok(Some((self.window.bytes(), false)));
            }
        }
    }

    /// Of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the last line had an end: one without is the last, and may be cut off.
    pub fn terminated(&self) -> bool {
        self.terminated
    }
}
