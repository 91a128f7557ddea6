//! Reads the raw artifacts of a testbed's runs into rows: bytes in, rows out, no input or output of its own.
//!
//! | module | reads | gives |
//! |---|---|---|
//! | [`capture`] | pcap and pcapng bytes | frames with time, link type and original length |
//! | [`wire`] | one frame | its IP packet, TCP segment or UDP datagram |
//! | [`flow`] | frames | one row per connection, and a summary of the capture |
//! | [`http`] | what `ab` and `wrk` print | reports in base units |
//! | [`syscall`] | traces of system calls by strace, perf, trace-cmd, sysdig, `twinbed-probe` | one event a call |
//! | [`chain`] | calls | Markov chains: counts, comparison, walks |
//! | [`proc`] | counter snapshots of `twinbed-probe counters` | long rows, differences, the kernel's log |
//!
//! Nothing here panics on input. What could not become a row is counted with its reason.

pub mod capture;
pub mod chain;
pub mod error;
pub mod flow;
pub mod http;
pub mod proc;
pub mod syscall;
pub mod wire;

pub use error::Error;
