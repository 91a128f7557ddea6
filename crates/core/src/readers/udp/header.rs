//! iperf3's header at the start of each UDP payload, as observed from iperf3 3.12: seconds and microseconds of the
//! sender's clock (its uptime, not the time of day), then a number from 1, all big endian; 32 bits each, the number
//! 64 bits with `--udp-counters-64bit`. Before the data each end sends four bytes of text.

/// How wide the number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Bits32,
    Bits64,
}

impl Width {
    pub fn bits(self) -> u8 {
        match self {
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }

    /// From a first header: numbers begin at 1, so four bytes of 0 are the upper half of a wide one.
    pub(super) fn of(payload: &[u8]) -> Option<Width> {
        match (word(payload, 8)?, word(payload, 12)) {
            (0, Some(low)) if low != 0 => Some(Width::Bits64),
            (0, _) => None,
            _ => Some(Width::Bits32),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// On the sender's clock.
    pub sent_ns: i64,
    pub sequence: i64,
}

const MICROSECONDS_PER_SECOND: u32 = 1_000_000;
/// How far the sender's clock and the capture's may disagree about the time between two datagrams: what queues hold.
const MAX_DISAGREEMENT_NS: i64 = 10_000_000_000;
/// How far apart the numbers of two datagrams that follow each other may be.
const MAX_STEP: i64 = 1 << 24;

impl Header {
    /// `None` where the payload is too short for one or holds what cannot be one.
    pub fn read(payload: &[u8], width: Width) -> Option<Header> {
        let (seconds, microseconds) = (word(payload, 0)?, word(payload, 4)?);
        if microseconds >= MICROSECONDS_PER_SECOND {
            return None;
        }
        let high = word(payload, 8)?;
        let sequence = match width {
            Width::Bits32 => i64::from(high),
            Width::Bits64 => i64::try_from(u64::from(high) << 32 | u64::from(word(payload, 12)?)).ok()?,
        };
        let sent_ns = i64::from(seconds) * 1_000_000_000 + i64::from(microseconds) * 1000;
        Some(Header { sent_ns, sequence })
    }

    /// Whether this may be the next header to arrive after `last`: both clocks went on alike, the numbers are near.
    pub fn may_follow(&self, last: &Header, width: Width, arrival_ns: Option<i64>, last_ns: Option<i64>) -> bool {
        let step = match width {
            Width::Bits32 => i64::from((self.sequence as u32).wrapping_sub(last.sequence as u32) as i32),
            Width::Bits64 => self.sequence.saturating_sub(last.sequence),
        };
        let sent = self.sent_ns.saturating_sub(last.sent_ns);
        let arrived = match (arrival_ns, last_ns) {
            (Some(now), Some(before)) => now.saturating_sub(before),
            _ => 0,
        };
        step.saturating_abs() <= MAX_STEP && sent.saturating_sub(arrived).saturating_abs() <= MAX_DISAGREEMENT_NS
    }
}

/// The four bytes with which iperf3's ends greet each other: "6789" and "9876" from 3.12; older versions are known to
/// send the numbers 123456789 and 987654321 in their own byte order, which was not observed here.
pub(super) fn is_greeting(payload: &[u8], payload_bytes: u32) -> bool {
    const GREETINGS: [u32; 2] = [0x3637_3839, 0x3938_3736];
    const OLD_GREETINGS: [u32; 2] = [123_456_789, 987_654_321];
    payload_bytes == 4
        && word(payload, 0).is_some_and(|word| {
            GREETINGS.contains(&word) || OLD_GREETINGS.contains(&word) || OLD_GREETINGS.contains(&word.swap_bytes())
        })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// Which payloads are read as iperf3's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// Those that are recognised.
    Recognised,
    /// All that are long enough.
    Forced(Width),
    Ignore,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of two datagrams that iperf3 3.12 sent, without and with `--udp-counters-64bit`.
    const NARROW: [u8; 16] = [0, 0, 0x2e, 0x36, 0, 5, 0xcf, 0xea, 0, 0, 0, 2, 0xc8, 0xf7, 0x1d, 0x7e];
    const WIDE: [u8; 16] = [0, 0, 0x2e, 0x37, 0, 6, 0xe9, 3, 0, 0, 0, 0, 0, 0, 0, 1];

    #[test]
    fn reads_both_widths() {
        assert_eq!(Width::of(&NARROW), Some(Width::Bits32));
        assert_eq!(Width::of(&WIDE), Some(Width::Bits64));
        let narrow = Header::read(&NARROW, Width::Bits32);
        assert_eq!(narrow, Some(Header { sent_ns: 11_830_380_906_000, sequence: 2 }));
        let wide = Header::read(&WIDE, Width::Bits64);
        assert_eq!(wide, Some(Header { sent_ns: 11_831_452_867_000, sequence: 1 }));
        assert_eq!(Header::read(&NARROW[..11], Width::Bits32), None);
        assert_eq!(Header::read(&WIDE[..15], Width::Bits64), None);
    }

    #[test]
    fn greetings_are_four_bytes() {
        assert!(is_greeting(b"6789", 4) && is_greeting(b"9876", 4) && is_greeting(&123_456_789u32.to_le_bytes(), 4));
        assert!(!is_greeting(b"6789", 5) && !is_greeting(b"678", 4) && !is_greeting(b"abcd", 4));
    }
}
