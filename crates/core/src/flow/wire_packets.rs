//! Packets on the wire that a captured packet stands for.
//!
//! With TCP segmentation offload (TSO, GSO) the sender's capture point sees a packet before a device cuts it; with receive
//! offload (GRO, LRO) the receiver's sees several joined to one. Either way the payload was sent in pieces of the
//! effective maximum segment size: the MSS option (RFC 9293, 3.7.1; RFC 6691: it does not count options) less the
//! options that the segment carries, timestamps (RFC 7323) above all.
//!
//! Two things cannot be restored: segments below the maximum that receive offload joined (Linux joins equal ones), and
//! acknowledgments that were never sent because the receiver got its data joined.

/// IPv4's or IPv6's and TCP's header without options.
const TCP_HEADER_BYTES: u32 = 20;

/// How large the pieces are that a TCP sender's payload travels in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentLimits {
    /// IP packets longer than this are not on the wire as they are, unless a larger MSS was agreed on.
    pub mtu: u32,
    /// MSS option of the receiver: what it takes.
    pub receiver: Option<u16>,
    /// The smaller MSS option of both ends: what the sender will make, as its own tells its link.
    pub smaller: Option<u16>,
}

/// What a packet stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WirePackets {
    pub count: u64,
    /// Payload of each packet but the last.
    pub piece_bytes: u32,
    /// Payload of the last packet.
    pub last_bytes: u32,
}

impl WirePackets {
    /// A packet that is on the wire as it was captured.
    #[inline]
    pub fn one(payload_bytes: u32) -> Self {
        WirePackets { count: 1, piece_bytes: payload_bytes, last_bytes: payload_bytes }
    }

    /// `payload_bytes` in pieces of at most `piece_bytes`.
    #[inline]
    fn cut(payload_bytes: u32, piece_bytes: u32) -> Self {
        let piece_bytes = piece_bytes.max(1);
        let count = payload_bytes.div_ceil(piece_bytes);
        if count <= 1 {
            return WirePackets::one(payload_bytes);
        }
        WirePackets { count: u64::from(count), piece_bytes, last_bytes: payload_bytes - (count - 1) * piece_bytes }
    }

    /// What a TCP segment stands for.
    #[inline]
    pub fn of_segment(payload_bytes: u32, tcp_header_bytes: u32, ip_bytes: u32, limits: &SegmentLimits) -> Self {
        let options_bytes = tcp_header_bytes.saturating_sub(TCP_HEADER_BYTES);
        let fits_link = ip_bytes <= limits.mtu;
        let fits_receiver =
            limits.receiver.is_none_or(|most| payload_bytes <= u32::from(most).saturating_sub(options_bytes));
        if payload_bytes == 0 || fits_link && fits_receiver {
            return WirePackets::one(payload_bytes);
        }
        WirePackets::cut(payload_bytes, limits.piece_bytes(options_bytes, ip_bytes, payload_bytes))
    }

    /// What a UDP datagram of this length stands for (UDP segmentation offload; pieces that fill the MTU).
    #[inline]
    pub fn of_datagram(payload_bytes: u32, ip_bytes: u32, mtu: u32) -> Self {
        if ip_bytes <= mtu {
            return WirePackets::one(payload_bytes);
        }
        WirePackets::cut(payload_bytes, mtu.saturating_sub(ip_bytes.saturating_sub(payload_bytes)))
    }
}

impl SegmentLimits {
    /// Whether a TCP segment has as much payload as a packet can have, or more.
    #[inline]
    pub fn is_full(&self, payload_bytes: u32, tcp_header_bytes: u32, ip_bytes: u32) -> bool {
        payload_bytes >= self.piece_bytes(tcp_header_bytes.saturating_sub(TCP_HEADER_BYTES), ip_bytes, payload_bytes)
    }

    /// Payload of a full packet: from the SYNs where they were captured, from the MTU otherwise.
    fn piece_bytes(&self, options_bytes: u32, ip_bytes: u32, payload_bytes: u32) -> u32 {
        match self.smaller {
            Some(most) => u32::from(most).saturating_sub(options_bytes),
            None => self.mtu.saturating_sub(ip_bytes.saturating_sub(payload_bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETHERNET: SegmentLimits = SegmentLimits { mtu: 1500, receiver: Some(1460), smaller: Some(1460) };

    fn count(payload_bytes: u32, options_bytes: u32, limits: SegmentLimits) -> u64 {
        WirePackets::of_segment(payload_bytes, 20 + options_bytes, 40 + options_bytes + payload_bytes, &limits).count
    }

    #[test]
    fn timestamps_are_taken_off_the_agreed_maximum() {
        // 1500 - 20 - 32 = 1448 a packet.
        assert_eq!(count(1448, 12, ETHERNET), 1);
        assert_eq!(count(1449, 12, ETHERNET), 2);
        assert_eq!(count(44 * 1448, 12, ETHERNET), 44);
        assert_eq!(count(44 * 1460, 0, ETHERNET), 44);
        assert_eq!(count(44 * 1460, 12, ETHERNET), 45);
        let wire = WirePackets::of_segment(3000, 32, 3052, &ETHERNET);
        assert_eq!(wire, WirePackets { count: 3, piece_bytes: 1448, last_bytes: 104 });
    }

    #[test]
    fn the_smaller_end_decides_and_the_receiver_says_what_fits() {
        let tunnel = SegmentLimits { receiver: Some(1460), smaller: Some(1360), ..ETHERNET };
        assert_eq!(count(4 * 1348, 12, tunnel), 4);
        let towards_it = SegmentLimits { receiver: Some(1360), smaller: Some(1360), ..ETHERNET };
        assert_eq!(count(1348 + 90, 12, towards_it), 2);
    }

    #[test]
    fn without_syns_the_mtu_decides() {
        let unknown = SegmentLimits { mtu: 1500, receiver: None, smaller: None };
        assert_eq!(count(2896, 12, unknown), 2);
        assert_eq!(count(2896, 0, unknown), 2);
        assert_eq!(count(2921, 0, unknown), 3);
        assert_eq!(WirePackets::of_datagram(2944, 2972, 1500).count, 2);
    }

    #[test]
    fn full_is_as_much_as_a_packet_can_have() {
        let full = |payload_bytes, limits: SegmentLimits| limits.is_full(payload_bytes, 32, 52 + payload_bytes);
        assert_eq!([1447, 1448, 2896].map(|size| full(size, ETHERNET)), [false, true, true]);
        let unknown = SegmentLimits { mtu: 1500, receiver: None, smaller: None };
        assert_eq!([1447, 1448].map(|size| full(size, unknown)), [false, true]);
    }

    #[test]
    fn jumbo_frames_that_were_agreed_on_are_no_super_packets() {
        let jumbo = SegmentLimits { mtu: 1500, receiver: Some(8960), smaller: Some(8960) };
        assert_eq!(count(8948, 12, jumbo), 1);
        assert_eq!(count(17896, 12, jumbo), 2);
    }

    proptest::proptest! {
        #[test]
        fn merging_full_segments_keeps_wire_packets(
            most in 1u16..9000, full in 0u32..40, tail in 0u32..9000, options in 0u32..11, split in 0u32..40,
        ) {
            let options_bytes = options * 4;
            let piece = u32::from(most).saturating_sub(options_bytes).max(1);
            let limits = SegmentLimits { mtu: u32::from(most) + 40, receiver: Some(most), smaller: Some(most) };
            let payload = full * piece + tail % piece;
            let at = split.min(full) * piece;
            let of = |bytes: u32| if bytes == 0 { 0 } else { count(bytes, options_bytes, limits) };
            proptest::prop_assert_eq!(of(payload), of(at) + of(payload - at));
            let wire = WirePackets::of_segment(
                payload, 20 + options_bytes, payload.saturating_add(40 + options_bytes), &limits,
            );
            let total = (wire.count - 1) * u64::from(wire.piece_bytes) + u64::from(wire.last_bytes);
            proptest::prop_assert_eq!(total, u64::from(payload));
        }

        #[test]
        fn never_panics(
            payload: u32, header: u32, ip: u32, mtu: u32, receiver: Option<u16>, smaller: Option<u16>,
        ) {
            let limits = SegmentLimits { mtu, receiver, smaller };
            WirePackets::of_segment(payload, header, ip, &limits);
            WirePackets::of_datagram(payload, ip, mtu);
        }
    }
}
