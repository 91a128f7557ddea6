//! What the file of `twinbed-probe stations` looks like (docs/probe/STATIONS.md), as far as writer and reader must agree.
//!
//! This file stands alone: crates/probe includes it by its path, since the probe needs nothing else of this crate.

/// The first bytes; the last but one is the version.
pub const MAGIC: [u8; 8] = *b"\x89TBSTA\x01\n";

/// A block's kind and the length of its body.
pub const BLOCK_HEADER_BYTES: usize = 5;

/// The kinds of blocks.
pub mod block {
    /// Lines `name value`.
    pub const HEADER: u8 = b'H';
    /// Monotonic and real time at one moment.
    pub const CLOCKS: u8 = b'T';
    /// Ends of a connection; the first has the number 0.
    pub const CONNECTION: u8 = b'C';
    /// Records, one behind the other.
    pub const RECORDS: u8 = b'R';
    /// Records that the ring lost, that programs missed, and that were left out beyond the limit.
    pub const END: u8 = b'Z';
}

/// Monotonic time, real time, and within how many nanoseconds both were read.
pub const CLOCKS_BYTES: usize = 24;
/// Two addresses of 16 bytes (IPv4 as mapped ones), two ports: this host's first.
pub const CONNECTION_BYTES: usize = 36;
/// Monotonic time, end of a call (0: none), sequence number, bytes, connection, thread, process, station, TCP's flags, padding.
pub const RECORD_BYTES: usize = 40;
pub const END_BYTES: usize = 24;
/// As the number of a connection: none.
pub const NO_CONNECTION: u32 = u32::MAX;

/// Where a record was made.
pub mod station {
    /// Handed to the queueing discipline.
    pub const QDISC: u8 = 1;
    /// Handed to the driver.
    pub const DRIVER: u8 = 2;
    /// Received by the network stack.
    pub const SOFTIRQ: u8 = 3;
    /// Taken by the TCP socket.
    pub const SOCKET: u8 = 4;
    /// Calls of programs.
    pub const READ: u8 = 16;
    pub const WRITE: u8 = 17;
    pub const CONNECT: u8 = 18;
    pub const CLOSE: u8 = 19;
    /// A call that waits for anything.
    pub const WAIT: u8 = 20;
}
