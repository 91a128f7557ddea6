//! What is read from the frames of a capture: one folder a question, each after the program or protocol that it answers as.
//!
//! | module | gives |
//! |---|---|
//! | [`tcptrace`] | tcptrace's statistics of each TCP connection |
//! | [`zeek`] | one row per connection as Zeek's log has it, and checksums' verdicts |
//! | [`packetisation`] | sizes, wire packets, bursts, bytes in flight and disorder, per connection and direction |
//! | [`http`] | one row per HTTP/1.x exchange |
//! | [`udp`] | one row per direction of a UDP flow, with what iperf3 writes into it |
//! | [`observer`] | what SYNs tell of the systems that sent them, and blocks of packets as numbers |
//! | [`matching`] | what was lost, delayed, split and merged between two captures of the same traffic |
//!
//! All but the last are [`Reader`]s of one capture. Those that are wanted of the same capture share one pass over it.

pub mod http;
pub mod matching;
pub mod observer;
pub mod packetisation;
pub mod tcptrace;
pub mod udp;
pub mod zeek;

use std::io::Read;

use crate::capture::{self, Ended, Frame};
use crate::error::{ReadError, Result};

/// Takes the frames of a capture one by one, and says at its end what they come to.
///
/// A pair of readers is one too, and so is a reader that may be absent: a capture is read once for all that are wanted.
pub trait Reader {
    type Tables;

    fn frame(&mut self, frame: &Frame);

    /// `ended` is what is known of the capture besides its frames.
    fn finish(self, ended: Ended) -> Self::Tables;
}

impl<A: Reader, B: Reader> Reader for (A, B) {
    type Tables = (A::Tables, B::Tables);

    #[inline]
    fn frame(&mut self, frame: &Frame) {
        self.0.frame(frame);
        self.1.frame(frame);
    }

    fn finish(self, ended: Ended) -> Self::Tables {
        (self.0.finish(ended.clone()), self.1.finish(ended))
    }
}

impl<R: Reader> Reader for Option<R> {
    type Tables = Option<R::Tables>;

    #[inline]
    fn frame(&mut self, frame: &Frame) {
        if let Some(reader) = self {
            reader.frame(frame);
        }
    }

    fn finish(self, ended: Ended) -> Self::Tables {
        self.map(|reader| reader.finish(ended))
    }
}

/// What a reader makes of a whole capture; one that is damaged is an error.
pub fn read_slice<R: Reader>(mut reader: R, bytes: &[u8]) -> Result<R::Tables> {
    let origin = capture::read_slice(bytes, |frame| reader.frame(frame))?;
    Ok(reader.finish(Ended { origin, stop: None }))
}

/// As [`read_slice`], from a stream.
pub fn read_stream<R: Reader>(mut reader: R, stream: impl Read) -> std::result::Result<R::Tables, ReadError> {
    let origin = capture::read_stream(stream, |frame| reader.frame(frame))?;
    Ok(reader.finish(Ended { origin, stop: None }))
}

/// As [`read_stream`]; a capture that breaks off gives what its frames come to up to there.
pub fn read_until_stop<R: Reader>(mut reader: R, stream: impl Read) -> std::result::Result<R::Tables, ReadError> {
    let ended = capture::read_until_stop(stream, |frame| reader.frame(frame))?;
    Ok(reader.finish(ended))
}
