//! What captures are made of, whatever their format.

use std::collections::BTreeMap;

/// A captured length above this is a damaged file, not a packet (BIG TCP stops at 512 KiB).
pub const MAX_CAPTURED_BYTES: u32 = 1 << 24;

/// Counts by reason of what was read but not used as it stands.
pub type Counts = BTreeMap<&'static str, u64>;

/// Adds counts to those of the same reasons.
pub fn add(counts: &mut Counts, more: Counts) {
    for (reason, count) in more {
        *counts.entry(reason).or_default() += count;
    }
}

/// The number of a link-layer header type (LINKTYPE_...).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    pub const NULL: LinkType = LinkType(0);
    pub const ETHERNET: LinkType = LinkType(1);
    pub const TOKEN_RING: LinkType = LinkType(6);
    pub const PPP: LinkType = LinkType(9);
    pub const FDDI: LinkType = LinkType(10);
    pub const RAW_BSD: LinkType = LinkType(12);
    pub const RAW_OPENBSD: LinkType = LinkType(14);
    pub const PPP_HDLC: LinkType = LinkType(50);
    pub const PPP_ETHERNET: LinkType = LinkType(51);
    pub const ATM_RFC1483: LinkType = LinkType(100);
    pub const RAW: LinkType = LinkType(101);
    pub const CISCO_HDLC: LinkType = LinkType(104);
    /// 802.11, and with radiotap before it.
    pub const WLAN: LinkType = LinkType(105);
    pub const WLAN_RADIOTAP: LinkType = LinkType(127);
    pub const LOOP: LinkType = LinkType(108);
    pub const LINUX_SLL: LinkType = LinkType(113);
    pub const PPP_DIRECTED: LinkType = LinkType(204);
    pub const IPV4: LinkType = LinkType(228);
    pub const IPV6: LinkType = LinkType(229);
    pub const LINUX_SLL2: LinkType = LinkType(276);
}

/// One captured packet. `data` may be shorter than `original_bytes` (the snap length).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Nanoseconds since the epoch; `None` where the file holds no time (pcapng's simple packets).
    pub time_ns: Option<i64>,
    pub original_bytes: u32,
    pub link: LinkType,
    pub data: &'a [u8],
}

/// What one call of [`Decoder::step`] found at the start of its input.
#[derive(Debug)]
pub enum Step<'a> {
    Frame {
        consumed: usize,
        frame: Frame<'a>,
    },
    /// A header or block that holds no packet.
    Other {
        consumed: usize,
    },
    /// The next step needs `needed` bytes, counted from the start of the input.
    More {
        needed: usize,
        layer: &'static str,
        claimed_by: &'static str,
    },
}

/// Facts about a capture that are not packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Interfaces declared (1 in a pcap file).
    pub interfaces: u64,
    /// Packets that the capturing system says it dropped; `None` where the file does not say.
    pub dropped_packets: Option<u64>,
    /// Records that hold no usable packet, with the reason.
    pub skipped: Counts,
}
