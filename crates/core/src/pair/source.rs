//! One of the two captures, read packet by packet.

use std::collections::VecDeque;
use std::io::Read;

use super::packet::Seen;
use crate::capture::{self, Counts, Decoder, Step, Window};
use crate::error::{Error, ReadError};
use crate::flow::widen;

/// What is known of a capture as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureFacts {
    pub packets: u64,
    /// Earliest and latest packet of any kind, on this capture's clock.
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// Packets that were not matched, by reason.
    pub skipped: Counts,
    /// As the capture file says; `None` where it does not.
    pub dropped_packets: Option<u64>,
    /// Why reading ended before the end of the file.
    pub stopped: Option<Error>,
}

pub(super) struct Source<R> {
    window: Window<R>,
    /// `None` after the end.
    decoder: Option<Decoder>,
    ahead: VecDeque<Seen>,
    mtu: u32,
    tunnels: bool,
    pub facts: CaptureFacts,
}

impl<R: Read> Source<R> {
    pub fn new(reader: R, mtu: u32, tunnels: bool) -> Self {
        let (window, decoder) = (Window::new(reader), Some(Decoder::new()));
        Source { window, decoder, ahead: VecDeque::new(), mtu, tunnels, facts: CaptureFacts::default() }
    }

    /// Reads up to `packets` packets ahead and shows them.
    pub fn look_ahead(&mut self, packets: usize) -> Result<&VecDeque<Seen>, ReadError> {
        while self.ahead.len() < packets {
            match self.read()? {
                Some(seen) => self.ahead.push_back(seen),
                None => break,
            }
        }
        Ok(&self.ahead)
    }

    /// The next packet's time.
    pub fn next_ns(&mut self) -> Result<Option<i64>, ReadError> {
        Ok(self.look_ahead(1)?.front().map(|seen| seen.time_ns))
    }

    pub fn next(&mut self) -> Option<Seen> {
        self.ahead.pop_front()
    }

    fn read(&mut self) -> Result<Option<Seen>, ReadError> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(None) };
            let needed = match decoder.step(self.window.bytes()) {
                Ok(Step::Frame { consumed, frame }) => {
                    self.facts.packets += 1;
                    widen(&mut self.facts.first_ns, &mut self.facts.last_ns, frame.time_ns);
                    let seen = Seen::of(&frame, self.mtu, self.tunnels);
                    self.window.consume(consumed);
                    match seen {
                        Ok(seen) => return Ok(Some(seen)),
                        Err(reason) => *self.facts.skipped.entry(reason).or_default() += 1,
                    }
                    continue;
                }
                Ok(Step::Other { consumed }) => {
                    self.window.consume(consumed);
                    continue;
                }
                Ok(Step::More { needed, .. }) => needed,
                Err(error) if decoder.is_headless() => return Err(error.into()),
                Err(error) => {
                    self.end(Some(error))?;
                    return Ok(None);
                }
            };
            if !self.window.fill(needed)? {
                self.end(None)?;
                return Ok(None);
            }
        }
    }

    fn end(&mut self, wrong: Option<Error>) -> Result<(), ReadError> {
        let Some(decoder) = self.decoder.take() else { return Ok(()) };
        let (origin, stopped) = match wrong {
            Some(error) => (decoder.into_origin(), Some(error)),
            None => decoder.end(self.window.bytes())?,
        };
        self.facts.dropped_packets = origin.dropped_packets;
        capture::add(&mut self.facts.skipped, origin.skipped);
        self.facts.stopped = stopped;
        Ok(())
    }
}
