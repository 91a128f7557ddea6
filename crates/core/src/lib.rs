//! Reads the raw artifacts of a testbed's runs into rows: bytes in, rows out, no input or output of its own.
//!
//! | module | reads | gives |
//! |---|---|---|
//! | [`capture`] | pcap and pcapng bytes | frames with time, link type and original length |
//! | [`wire`] | one frame | its IP packet, TCP segment or UDP datagram |
//! | [`flow`] | packets | whose they are, and a summary of the capture: what the readers of connections share |
//! | [`readers`] | frames | connections, exchanges, streams, pairs of captures |
//! | [`reports`] | what `ab` and `wrk` print | reports in base units |
//! | [`stations`] | when packets passed a kernel's stations, by `twinbed-probe stations` | a row a packet and station |
//! | [`table`] | rows of any type | columns, and Parquet files of them |
//! | [`syscall`] | traces of system calls by strace, perf, trace-cmd, sysdig, `twinbed-probe` | one event a call |
//! | [`timelines`] | requests, packet by packet | how unlike each is to each |
//! | [`chain`] | calls | Markov chains: counts, comparison, walks |
//! | [`loess`] | points with one predictor | a smooth curve with its standard errors |
//! | [`proc`] | counter snapshots of `twinbed-probe counters` | long rows, differences, the kernel's log |
//!
//! Nothing here panics on input. What could not become a row is counted with its reason.

pub mod capture;
pub mod chain;
pub mod delays;
pub mod error;
mod escapes;
pub mod flow;
pub mod loess;
pub mod proc;
pub mod readers;
pub mod reports;
pub mod stations;
pub mod syscall;
pub mod table;
pub mod timelines;
pub mod wire;

pub use error::Error;
