//! What a SYN, or the SYN and ACK that answers it, tells of the system that sent it, in the notation of p0f 3 (its README,
//! section 5): `version:ttl+hops:ip options:mss:window,scale:options:quirks:payload`.
//!
//! p0f itself is the oracle in tests: it prints the same text of the same capture.

use std::fmt::Write as _;

use crate::wire::tcp::{Segment, ACK, PSH, RST, SYN, URG};
use crate::wire::Packet;

const MAX_OPTION_BYTES: usize = 40;
/// A sender's first TTL is one of these: the next above what arrived.
const FIRST_TTLS: [u8; 4] = [32, 64, 128, 255];
/// p0f takes more hops for a guess that failed.
const MAX_HOPS: u8 = 35;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// Names of quirks, in the order in which p0f prints them.
const QUIRKS: [&str; 17] = [
    "df", "id+", "id-", "ecn", "0+", "flow", "seq-", "ack+", "ack-", "uptr+", "urgf+", "pushf+", "ts1-", "ts2+",
    "opt+", "exws", "bad",
];

/// All of it that is the same in every connection of a system: no ports, numbers or times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    pub is_answer: bool,
    pub ip_version: u8,
    pub ttl: u8,
    pub ip_option_bytes: u8,
    /// `None` for IPv6, which has no such bit.
    pub dont_fragment: Option<bool>,
    /// The two bits of the IP header, and TCP's flags (RFC 3168).
    pub ip_ecn: u8,
    pub ece: bool,
    pub cwr: bool,
    pub max_segment_bytes: Option<u16>,
    pub window: u16,
    pub window_scale: Option<u8>,
    has_timestamp: bool,
    /// IP's and TCP's headers, of which p0f makes the MTU.
    header_bytes: u16,
    has_payload: bool,
    /// Bits by the place in `QUIRKS`.
    quirks: u32,
    kinds: [u8; MAX_OPTION_BYTES],
    kind_count: u8,
    /// Bytes after an end of options.
    padding: u8,
}

/// A SYN as it was read: its signature, and its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub signature: Signature,
    pub timestamp: Option<u32>,
}

/// `Err` names what is missing of it in the capture.
pub fn read(data: &[u8], packet: &Packet, segment: &Segment) -> Result<Read, &'static str> {
    let ip = ip_header(data, packet).ok_or("syn_in_unusual_ip")?;
    let tcp = packet.transport_data(data);
    let end = usize::from(segment.header_bytes);
    let options = tcp.get(20..end).ok_or("syn_options_cut_off")?;
    let mut quirks = Quirks(0);
    let mut signature = Signature {
        is_answer: segment.has(ACK),
        ip_version: if packet.addresses.is_v6() { 6 } else { 4 },
        ttl: 0,
        ip_option_bytes: 0,
        dont_fragment: None,
        ip_ecn: 0,
        ece: segment.has(ECE),
        cwr: segment.has(CWR),
        max_segment_bytes: None,
        window: segment.window,
        window_scale: None,
        has_timestamp: false,
        header_bytes: 0,
        has_payload: segment.payload_bytes > 0,
        quirks: 0,
        kinds: [0; MAX_OPTION_BYTES],
        kind_count: 0,
        padding: 0,
    };
    let ip_bytes = packet.ip_bytes.saturating_sub(packet.transport_bytes);
    signature.header_bytes = u16::try_from(ip_bytes).unwrap_or(u16::MAX).saturating_add(end as u16);
    if let (4, &[_, tos, _, _, id_high, id_low, fragment, _, ttl, ..]) = (signature.ip_version, ip) {
        let has_id = (id_high, id_low) != (0, 0);
        let dont_fragment = fragment & 0x40 != 0;
        (signature.ttl, signature.ip_ecn, signature.dont_fragment) = (ttl, tos & 3, Some(dont_fragment));
        signature.ip_option_bytes = u8::try_from(ip_bytes.saturating_sub(20)).unwrap_or(u8::MAX);
        quirks.set("df", dont_fragment);
        quirks.set("id+", dont_fragment && has_id);
        quirks.set("id-", !dont_fragment && !has_id);
        quirks.set("0+", fragment & 0x80 != 0);
    } else if let &[_, second, third, fourth, _, _, _, hops, ..] = ip {
        (signature.ttl, signature.ip_ecn) = (hops, (second >> 4) & 3);
        quirks.set("flow", (second & 0x0f, third, fourth) != (0, 0, 0));
    }
    let urgent = segment.has(URG);
    quirks.set("ecn", signature.ip_ecn != 0 || signature.ece || signature.cwr);
    quirks.set("seq-", segment.sequence == 0);
    quirks.set("ack+", !segment.has(ACK) && segment.acknowledgment != 0 && !segment.has(RST));
    quirks.set("ack-", segment.has(ACK) && segment.acknowledgment == 0);
    quirks.set("uptr+", !urgent && segment.urgent_pointer != 0);
    quirks.set("urgf+", urgent);
    quirks.set("pushf+", segment.has(PSH));
    let timestamp = signature.take_options(options, &mut quirks);
    signature.quirks = quirks.0;
    Ok(Read { signature, timestamp })
}

/// The captured part of the IP header that leads to the transport's.
fn ip_header<'a>(data: &'a [u8], packet: &Packet) -> Option<&'a [u8]> {
    let end = packet.transport_offset as usize;
    let start = end.checked_sub(packet.ip_bytes.checked_sub(packet.transport_bytes)? as usize)?;
    let header = data.get(start..end)?;
    let version = header.first()? >> 4;
    (version == if packet.addresses.is_v6() { 6 } else { 4 }).then_some(header)
}

struct Quirks(u32);

impl Quirks {
    fn set(&mut self, name: &str, is_set: bool) {
        if let Some(at) = QUIRKS.iter().position(|known| *known == name).filter(|_| is_set) {
            self.0 |= 1 << at;
        }
    }
}

impl Signature {
    /// Reads the options; gives the timestamp.
    fn take_options(&mut self, options: &[u8], quirks: &mut Quirks) -> Option<u32> {
        let mut timestamp = None;
        let mut rest = options;
        while let [kind, after @ ..] = rest {
            if usize::from(self.kind_count) == MAX_OPTION_BYTES {
                break;
            }
            self.kinds[usize::from(self.kind_count)] = *kind;
            self.kind_count += 1;
            match kind {
                0 => {
                    self.padding = after.len() as u8;
                    quirks.set("opt+", after.iter().any(|byte| *byte != 0));
                    break;
                }
                1 => {
                    rest = after;
                    continue;
                }
                _ => {}
            }
            let Some((value, next)) = after
                .split_first()
                .and_then(|(length, _)| rest.split_at_checked(usize::from(*length)))
                .and_then(|(option, next)| Some((option.get(2..)?, next)))
            else {
                quirks.set("bad", true);
                break;
            };
            match (kind, value) {
                (2, &[high, low]) => self.max_segment_bytes = Some(u16::from_be_bytes([high, low])),
                (3, &[scale]) => {
                    self.window_scale = Some(scale);
                    quirks.set("exws", scale > 14);
                }
                (8, &[a, b, c, d, e, f, g, h]) => {
                    let own = u32::from_be_bytes([a, b, c, d]);
                    self.has_timestamp = own != 0;
                    timestamp = Some(own);
                    quirks.set("ts1-", own == 0);
                    quirks.set("ts2+", !self.is_answer && [e, f, g, h] != [0; 4]);
                }
                (2 | 3 | 8, _) => quirks.set("bad", true),
                (4, value) => quirks.set("bad", !value.is_empty()),
                _ => {}
            }
            rest = next;
        }
        timestamp
    }

    /// Kinds of the options in their order: `mss,sok,ts,nop,ws`.
    pub fn options(&self) -> String {
        let mut text = String::new();
        for (at, kind) in self.kinds[..usize::from(self.kind_count)].iter().enumerate() {
            let separator = if at > 0 { "," } else { "" };
            let written = match kind {
                0 => write!(text, "{separator}eol+{}", self.padding),
                1 => write!(text, "{separator}nop"),
                2 => write!(text, "{separator}mss"),
                3 => write!(text, "{separator}ws"),
                4 => write!(text, "{separator}sok"),
                5 => write!(text, "{separator}sack"),
                8 => write!(text, "{separator}ts"),
                other => write!(text, "{separator}?{other}"),
            };
            debug_assert!(written.is_ok(), "a String takes all");
        }
        text
    }

    pub fn quirks(&self) -> String {
        let set: Vec<&str> =
            QUIRKS.iter().enumerate().filter(|(at, _)| self.quirks >> at & 1 == 1).map(|(_, name)| *name).collect();
        set.join(",")
    }

    /// What TCP's flags say of explicit congestion notification: `ece,cwr` in a SYN offers it.
    pub fn ecn(&self) -> &'static str {
        match (self.ece, self.cwr) {
            (true, true) => "ece,cwr",
            (true, false) => "ece",
            (false, true) => "cwr",
            (false, false) => "none",
        }
    }

    /// As p0f prints it; `asked` is the MSS of the SYN that this one answers.
    pub fn text(&self, asked: Option<u16>) -> String {
        let first = FIRST_TTLS.into_iter().find(|first| *first >= self.ttl).unwrap_or(u8::MAX);
        let hops = match first - self.ttl {
            hops if hops > MAX_HOPS => "?".to_owned(),
            hops => hops.to_string(),
        };
        format!(
            "{}:{}+{}:{}:{}:{},{}:{}:{}:{}",
            self.ip_version,
            self.ttl,
            hops,
            self.ip_option_bytes,
            self.max_segment_bytes.unwrap_or(0),
            self.window_text(asked),
            self.window_scale.unwrap_or(0),
            self.options(),
            self.quirks(),
            if self.has_payload { "+" } else { "0" },
        )
    }

    /// The window as a multiple of what is sent at a time, where it is one.
    fn window_text(&self, asked: Option<u16>) -> String {
        let mss = u32::from(self.max_segment_bytes.unwrap_or(0));
        let window = u32::from(self.window);
        let timestamps = if self.has_timestamp { 12 } else { 0 };
        let is_v6 = self.ip_version == 6;
        if window != 0 && mss >= 100 {
            let asked = u32::from(asked.unwrap_or(0));
            // p0f's README names the multiples; which goes first was found by what it prints.
            let segments = [mss, mss - timestamps, 1460, 1460 - timestamps, if is_v6 { 1440 } else { 0 }];
            let packets = [mss + 40, mss + u32::from(self.header_bytes), if is_v6 { mss + 60 } else { 0 }, 1500];
            let answered = [asked, asked.saturating_sub(timestamps)];
            let ways = segments.map(|of| ("mss", of)).into_iter().chain(packets.map(|of| ("mtu", of)));
            let mut ways = ways.chain(answered.map(|of| ("mss", of)));
            if let Some((name, of)) = ways.find(|(_, of)| *of != 0 && window.is_multiple_of(*of)) {
                return format!("{name}*{}", window / of);
            }
        }
        self.window.to_string()
    }
}

/// Whether a segment is a SYN that a system sends to open a connection, or its answer.
pub fn opens(segment: &Segment) -> bool {
    segment.has(SYN) && !segment.has(RST) && segment.flags & 0x01 == 0
}
