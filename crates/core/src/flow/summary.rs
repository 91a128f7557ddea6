//! A capture as a whole.

use std::collections::BTreeMap;

use crate::capture::Counts;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub packets: u64,
    /// Frames' original lengths, and what of them the file holds.
    pub bytes: u64,
    pub captured_bytes: u64,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// IP packets by protocol number.
    pub protocols: BTreeMap<u8, u64>,
    /// Packets that are not IP, or in an encapsulation that is not read, by kind.
    pub not_ip: Counts,
    pub interfaces: u64,
    /// As the capture file says; `None` where it does not.
    pub dropped_packets: Option<u64>,
    /// Packets and records that are in no row, by reason.
    pub skipped: Counts,
    /// Packets that are in a row, but odd.
    pub notes: Counts,
}
