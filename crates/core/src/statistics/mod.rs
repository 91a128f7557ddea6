//! Frames in, tcptrace's statistics of each TCP connection out, as a stream in bounded memory.

mod row;

pub use row::{Completeness, Row, Side};

use std::net::IpAddr;

use crate::capture::{Frame, Origin};
use crate::flow::Summary;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Look into IP-in-IP, GRE and VXLAN: the innermost packet counts.
    pub tunnels: bool,
    /// Connections held at a time; at more, those idle longest are finished early, closed ones first.
    pub max_connections: usize,
    /// Only connections with this port, this host on either side.
    pub port: Option<u16>,
    pub host: Option<IpAddr>,
    /// Only packets from `from_ns` and before `until_ns` (nanoseconds since the epoch).
    pub from_ns: Option<i64>,
    pub until_ns: Option<i64>,
}

impl Default for Options {
    fn default() -> Self {
        Options { tunnels: false, max_connections: 1_000_000, port: None, host: None, from_ns: None, until_ns: None }
    }
}

/// Takes frames one by one.
pub struct Engine {
    summary: Summary,
}

impl Engine {
    pub fn new(_options: Options) -> Self {
        Engine { summary: Summary::default() }
    }

    /// Counts a frame; rows that had to be finished early go to `sink`.
    pub fn frame(&mut self, _frame: &Frame, _sink: &mut impl FnMut(Row)) {
        self.summary.packets += 1;
    }

    /// Hands the remaining rows to `sink`, in the order of their first packets, and closes the books.
    pub fn finish(self, _origin: Origin, _sink: &mut impl FnMut(Row)) -> Summary {
        self.summary
    }
}
