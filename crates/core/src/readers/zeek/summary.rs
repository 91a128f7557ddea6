//! A capture as a whole, as the connection log sees it.

use crate::capture::Counts;
use crate::wire::checksum::Verdict;

/// Packets by what their checksum says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdicts {
    pub good: u64,
    pub bad: u64,
    pub partial: u64,
    pub not_checked: u64,
}

impl Verdicts {
    #[inline]
    pub(super) fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Good => self.good += 1,
            Verdict::Bad => self.bad += 1,
            Verdict::Partial => self.partial += 1,
            Verdict::NotChecked => self.not_checked += 1,
        }
    }
}

/// Of each kind of checksum. A fragment's is not checked, and counts where its protocol number says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checksums {
    pub ipv4: Verdicts,
    pub tcp: Verdicts,
    pub udp: Verdicts,
    pub icmp: Verdicts,
    pub icmpv6: Verdicts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub packets: u64,
    /// Frames' original lengths, and what of them the file holds.
    pub bytes: u64,
    pub captured_bytes: u64,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// Packets that are not IP, or in an encapsulation that is not read, by kind.
    pub not_ip: Counts,
    pub connections: u64,
    /// Connections that were logged before their end, because there were too many at once.
    pub evicted_connections: u64,
    pub checksums: Checksums,
    /// Packets that are in no row's counts because of a bad checksum.
    pub ignored_packets: u64,
    pub interfaces: u64,
    /// As the capture file says; `None` where it does not.
    pub dropped_packets: Option<u64>,
    /// Other packets and records that are in no row, by reason.
    pub skipped: Counts,
    /// Packets that are in a row, but odd.
    pub notes: Counts,
}
