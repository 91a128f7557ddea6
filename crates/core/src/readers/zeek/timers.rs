//! When a connection's state is given up, by the packets' own times. Names and values are those that Zeek documents
//! (`scripts/base/init-bare.zeek`); all in nanoseconds.

const SECOND: i64 = 1_000_000_000;

/// After a SYN without an answer.
pub const TCP_ATTEMPT_DELAY: i64 = 5 * SECOND;
/// After both sides have closed.
pub const TCP_CLOSE_DELAY: i64 = 5 * SECOND;
/// After a RST.
pub const TCP_RESET_DELAY: i64 = 5 * SECOND;
/// Without a packet.
pub const TCP_INACTIVITY_TIMEOUT: i64 = 300 * SECOND;
pub const UDP_INACTIVITY_TIMEOUT: i64 = 60 * SECOND;
pub const ICMP_INACTIVITY_TIMEOUT: i64 = 60 * SECOND;
