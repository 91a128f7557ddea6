//! What is read from the frames of a capture: one folder a question, each after the program or protocol that it answers as.
//!
//! | module | gives |
//! |---|---|
//! | [`tcptrace`] | tcptrace's statistics of each TCP connection |
//! | [`zeek`] | one row per connection as Zeek's log has it, and checksums' verdicts |
//! | [`packetisation`] | sizes, wire packets, bursts, bytes in flight and disorder, per connection and direction |
//! | [`http`] | one row per HTTP/1.x exchange |
//! | [`udp`] | one row per direction of a UDP flow, with what iperf3 writes into it |
//! | [`matching`] | what was lost, delayed, split and merged between two captures of the same traffic |

pub mod http;
pub mod matching;
pub mod packetisation;
pub mod tcptrace;
pub mod udp;
pub mod zeek;
