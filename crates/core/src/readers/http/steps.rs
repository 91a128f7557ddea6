//! The steps of an exchange: when each was seen at the point of capture, and which packets it took.
//!
//! Times are those of packets, so that a step is the time from one packet to another. What acknowledges a byte is the first
//! packet of the other side whose acknowledgment number lies behind it; a request is often acknowledged by its response.
//!
//! A pattern has a letter for each packet, the client's as capitals, runs of the same marked by `+`: `S s A P a p+ A F f A`.
//! Acknowledgments between pieces of payload are part of the run. Letters: S SYN, P payload, E payload with FIN,
//! A acknowledgment alone, F FIN, R RST; Y, X, Z are S, P (or E) and F sent again.

use std::net::IpAddr;

use super::mark::Mark;
use super::waits::Wait;

/// The most packets kept of one exchange.
pub const MAX_PACKETS: usize = 1 << 11;
const MAX_TOKENS: usize = 16;

/// Which packets come after which, without their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pattern {
    tokens: [(u8, bool); MAX_TOKENS],
    count: u8,
    goes_on: bool,
}

impl Pattern {
    fn push(&mut self, letter: char) {
        let letter = letter as u8;
        let known = &self.tokens[..usize::from(self.count)];
        let is_payload = letter.eq_ignore_ascii_case(&b'p');
        // Acknowledgments between two pieces of payload are part of the run.
        let before = match is_payload {
            true => known.iter().rposition(|(token, _)| !token.eq_ignore_ascii_case(&b'a')),
            false => known.len().checked_sub(1),
        };
        if let Some(last) = before.filter(|&last| !self.goes_on && known[last].0 == letter) {
            self.tokens[last].1 = true;
            self.count = last as u8 + 1;
            return;
        }
        match self.tokens.get_mut(usize::from(self.count)) {
            Some(token) if !self.goes_on => {
                *token = (letter, false);
                self.count += 1;
            }
            _ => self.goes_on = true,
        }
    }

    pub fn text(&self) -> String {
        let tokens = self.tokens.iter().take(usize::from(self.count));
        let mut words: Vec<String> = tokens
            .map(|&(letter, is_run)| format!("{}{}", char::from(letter), if is_run { "+" } else { "" }))
            .collect();
        if self.goes_on {
            words.push("...".to_owned());
        }
        words.join(" ")
    }
}

/// The times of an exchange's steps, on the capture's clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Steps {
    /// The same at both ends of the path: a hash of the connection's ends and `request_sequence`.
    pub sampled_by: u64,
    /// TCP's number of the request's first byte.
    pub request_sequence: u32,
    /// The handshake, of a connection's first exchange.
    pub syn_ns: Option<i64>,
    pub syn_ack_ns: Option<i64>,
    /// The client's first acknowledgment alone.
    pub established_ns: Option<i64>,
    /// The request's last byte.
    pub request_end_ns: Option<i64>,
    /// The first packet that acknowledges that byte.
    pub request_acked_ns: Option<i64>,
    /// TCP's number of the byte after the request's last.
    pub request_end_sequence: Option<u32>,
    /// TCP's number of the final response's first byte.
    pub response_sequence: Option<u32>,
    /// TCP's number of the byte after the response's last.
    pub response_end_sequence: Option<u32>,
    /// The first packet that acknowledges the response's last byte.
    pub response_acked_ns: Option<i64>,
    pub client_fin_ns: Option<i64>,
    pub server_fin_ns: Option<i64>,
    pub reset_ns: Option<i64>,
    /// The first byte of the connection's next request.
    pub next_ns: Option<i64>,
    pub client_repeats: u32,
    pub server_repeats: u32,
    /// The longest time without a packet between two of the exchange.
    pub silence_ns: i64,
    /// When that began.
    pub silence_start_ns: Option<i64>,
    /// The packet that ended it.
    pub silence_ended_by: Option<char>,
    pub pattern: Pattern,
    /// What ended in it, in the order of their ends.
    pub waits: Vec<Wait>,
    /// Of sampled exchanges, the first [`MAX_PACKETS`].
    pub packets: Option<Vec<Mark>>,
    last_ns: Option<i64>,
    /// Payload was seen.
    has_begun: bool,
    request_end: i64,
    response_end: i64,
}

impl Steps {
    /// None where the exchange is not in the sample: bounds only fall.
    pub(super) fn begin(sequence: u32, sampling: &Sampling) -> Option<Box<Self>> {
        let sampled_by = mix(sampling.connection ^ u64::from(sequence));
        let packets = (sampled_by <= sampling.below.lists).then(Vec::new);
        let begun = || Box::new(Steps { sampled_by, request_sequence: sequence, packets, ..Steps::default() });
        (sampled_by <= sampling.below.rows).then(begun)
    }

    /// New bytes of the request, up to `end`, which is TCP's `sequence`.
    pub(super) fn request(&mut self, end: i64, sequence: u32, time_ns: Option<i64>) {
        self.request_end = end;
        self.request_end_sequence = Some(sequence);
        self.request_end_ns = time_ns.max(self.request_end_ns);
        self.request_acked_ns = None;
    }

    /// The answer has bytes from `position` on, or behind it.
    pub(super) fn has_answer_behind(&self, position: i64) -> bool {
        self.response_end > position
    }

    pub(super) fn response(&mut self, end: i64, sequence: u32) {
        self.response_end = end;
        self.response_end_sequence = Some(sequence);
        self.response_acked_ns = None;
    }

    /// A packet that acknowledges all of the other side's payload before `position`.
    pub(super) fn acknowledged(&mut self, from_client: bool, position: i64, time_ns: Option<i64>) {
        if from_client && self.response_end > 0 && position >= self.response_end {
            self.response_acked_ns = self.response_acked_ns.or(time_ns);
        } else if !from_client && position >= self.request_end {
            self.request_acked_ns = self.request_acked_ns.or(time_ns);
        }
    }

    pub(super) fn packet(&mut self, mark: &Mark) {
        let letter = mark.letter();
        self.pattern.push(letter);
        let time = match letter {
            'S' => Some(&mut self.syn_ns),
            's' => Some(&mut self.syn_ack_ns),
            'A' if !self.has_begun => Some(&mut self.established_ns),
            'F' | 'E' => Some(&mut self.client_fin_ns),
            'f' | 'e' => Some(&mut self.server_fin_ns),
            'R' | 'r' => Some(&mut self.reset_ns),
            _ => None,
        };
        if let Some(time) = time {
            *time = time.or(mark.time_ns);
        }
        match mark.from_client {
            true => self.client_repeats += u32::from(mark.is_repeat),
            false => self.server_repeats += u32::from(mark.is_repeat),
        }
        if let (Some(last), Some(now)) = (self.last_ns, mark.time_ns) {
            let gap = now.saturating_sub(last);
            if gap > self.silence_ns {
                self.silence_ns = gap;
                self.silence_start_ns = Some(last);
                self.silence_ended_by = Some(letter);
            }
        }
        self.last_ns = mark.time_ns.or(self.last_ns);
        self.has_begun |= mark.payload_bytes > 0;
        if let Some(packets) = &mut self.packets {
            if packets.len() < MAX_PACKETS {
                packets.push(*mark);
            }
        }
    }
}

/// What an exchange that begins must know of the sample.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sampling {
    /// A hash of the connection's ends.
    pub connection: u64,
    pub below: Below,
}

/// Exchanges whose hash is no greater keep their steps, or their packets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Below {
    pub rows: u64,
    pub lists: u64,
}

/// A hash of a connection's ends, the same in both captures of a path.
pub(super) fn hash_of(client: (IpAddr, u16), server: (IpAddr, u16)) -> u64 {
    let word = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    [client, server].into_iter().fold(0, |hash, (address, port)| {
        let word = word(address);
        mix(mix(mix(hash ^ word as u64) ^ (word >> 64) as u64) ^ u64::from(port))
    })
}

/// SplitMix64's finalizer (Steele, Lea and Flood 2014).
pub(super) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(letters: &str) -> String {
        let mut pattern = Pattern::default();
        letters.chars().for_each(|letter| pattern.push(letter));
        pattern.text()
    }

    #[test]
    fn a_run_of_payload_holds_its_acknowledgments() {
        assert_eq!(pattern("SsAPapApApAFfA"), "S s A P a p+ A F f A");
        assert_eq!(pattern("SsAPpAFfA"), "S s A P p A F f A");
        assert_eq!(pattern("PPPapp"), "P+ a p+");
        assert_eq!(pattern("pAAaAp"), "p+", "several acknowledgments between payload, window updates too");
        assert_eq!(pattern("pAxAp"), "p A x A p", "what is sent again ends a run");
        assert_eq!(pattern(&"pX".repeat(20)), format!("{} ...", ["p X"; 8].join(" ")));
    }
}
