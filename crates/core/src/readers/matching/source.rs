//! One of the two captures, read packet by packet.

use std::collections::VecDeque;
use std::io::Read;

use super::packet::Seen;
use crate::capture::{self, Counts, Stop};
use crate::error::ReadError;
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
    pub stopped: Option<Stop>,
}

pub(super) struct Source<R> {
    /// `None` after the end.
    capture: Option<capture::Source<R>>,
    ahead: VecDeque<Seen>,
    mtu: u32,
    tunnels: bool,
    pub facts: CaptureFacts,
}

impl<R: Read> Source<R> {
    pub fn new(reader: R, mtu: u32, tunnels: bool) -> Self {
        let capture = Some(capture::Source::new(reader));
        Source { capture, ahead: VecDeque::new(), mtu, tunnels, facts: CaptureFacts::default() }
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
        while let Some(capture) = &mut self.capture {
            if !capture.advance()? {
                self.end();
                break;
            }
            let Some(frame) = capture.frame() else { continue };
            self.facts.packets += 1;
            widen(&mut self.facts.first_ns, &mut self.facts.last_ns, frame.time_ns);
            match Seen::of(&frame, self.mtu, self.tunnels) {
                Ok(seen) => return Ok(Some(seen)),
                Err(reason) => *self.facts.skipped.entry(reason).or_default() += 1,
            }
        }
        Ok(None)
    }

    fn end(&mut self) {
        let Some(ended) = self.capture.take().map(capture::Source::into_ended) else { return };
        self.facts.dropped_packets = ended.origin.dropped_packets;
        capture::add(&mut self.facts.skipped, ended.origin.skipped);
        self.facts.stopped = ended.stop;
    }
}
