//! One direction of a flow: what it carried, and the statistics of iperf3's headers where its datagrams have them.

use super::header::{is_greeting, Header, Headers, Width};
use super::jitter::{Jitter, JitterEstimate};
use super::sequence::{Sequence, SequenceCounts};
use crate::delays::{Delays, Spread};
use crate::flow::widen;

/// Up to this many datagrams without a header are accepted until the rest is known.
const BORNE: u64 = 1000;
/// At most one of a hundred datagrams may be something else.
const MAX_OTHER_PER_HUNDRED: u64 = 1;

/// Why a direction has no sequence numbers and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The content is not iperf3's.
    NotIperf3,
    /// The capture holds too little of the payloads.
    PayloadCutOff,
    /// Only iperf3's greetings went this way.
    GreetingOnly,
    /// Headers were not to be read.
    NotAsked,
    /// As many streams were being followed as there is room for.
    TooManyStreams,
}

impl Unread {
    pub fn name(self) -> &'static str {
        match self {
            Unread::NotIperf3 => "not_iperf3",
            Unread::PayloadCutOff => "payload_cut_off",
            Unread::GreetingOnly => "greeting_only",
            Unread::NotAsked => "not_asked",
            Unread::TooManyStreams => "too_many_streams",
        }
    }
}

/// Statistics of a direction's headers.
#[derive(Debug, Clone, PartialEq)]
pub struct HeaderStatistics {
    pub width: Width,
    pub sequence: SequenceCounts,
    /// `None` where the capture holds no times, or one datagram.
    pub jitter: Option<JitterEstimate>,
    /// Arrival less sending time, of two clocks: only differences mean anything.
    pub delay: Option<Spread>,
}

/// Counts of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// IP packets, fragments too.
    pub packets: u64,
    /// UDP headers seen.
    pub datagrams: u64,
    /// After the UDP header; of fragments that could be joined too.
    pub payload_bytes: u64,
    /// IP header and all that follows.
    pub bytes: u64,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    pub greetings: u64,
    /// Datagrams too short in the capture for the header that may have been there.
    pub cut_off: u64,
    /// Datagrams that held something else.
    pub other_datagrams: u64,
}

#[derive(Debug, Clone)]
struct Candidate {
    width: Width,
    last: Header,
    last_ns: Option<i64>,
    headers: u64,
    sequence: Sequence,
    jitter: Jitter,
    delays: Delays,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    pub carried: Carried,
    candidate: Option<Box<Candidate>>,
    given_up: bool,
    refused: bool,
}

impl Stream {
    /// Whether headers are being followed.
    pub fn is_followed(&self) -> bool {
        self.candidate.is_some()
    }

    pub fn packet(&mut self, time_ns: Option<i64>, ip_bytes: u32, payload_bytes: u32) {
        let carried = &mut self.carried;
        carried.packets += 1;
        carried.bytes += u64::from(ip_bytes);
        carried.payload_bytes += u64::from(payload_bytes);
        widen(&mut carried.first_ns, &mut carried.last_ns, time_ns);
    }

    /// Whether anything but greetings went this way.
    pub fn has_data(&self) -> bool {
        self.carried.datagrams > self.carried.greetings
    }

    /// Reads a datagram's payload; `from` is the number that the flow is known to begin with, `has_room` whether one more
    /// stream may be followed.
    pub fn datagram(
        &mut self,
        captured: &[u8],
        payload_bytes: u32,
        time_ns: Option<i64>,
        headers: Headers,
        from: Option<i64>,
        has_room: bool,
    ) {
        self.carried.datagrams += 1;
        if is_greeting(captured, payload_bytes) {
            self.carried.greetings += 1;
            return;
        }
        if headers == Headers::Ignore || self.given_up {
            self.carried.other_datagrams += 1;
            return;
        }
        let width = match (&self.candidate, headers) {
            (_, Headers::Forced(width)) => Some(width),
            (Some(candidate), _) => Some(candidate.width),
            (None, _) => Width::of(captured),
        };
        match width.and_then(|width| Some((width, Header::read(captured, width)?))) {
            Some(_) if !has_room && self.candidate.is_none() => {
                self.refused = true;
                self.carried.other_datagrams += 1;
            }
            Some((width, header)) => self.header(header, width, time_ns, headers, from),
            None if cut_off(captured, payload_bytes, width) => self.carried.cut_off += 1,
            None => self.other(),
        }
    }

    fn header(&mut self, header: Header, width: Width, time_ns: Option<i64>, headers: Headers, from: Option<i64>) {
        let Some(candidate) = &mut self.candidate else {
            self.candidate = Some(Box::new(Candidate::new(header, width, time_ns, from)));
            return;
        };
        let is_next = matches!(headers, Headers::Forced(_))
            || header.may_follow(&candidate.last, width, time_ns, candidate.last_ns);
        if is_next {
            candidate.add(header, time_ns);
            return;
        }
        // One header alone may have been chance.
        if candidate.headers == 1 {
            **candidate = Candidate::new(header, width, time_ns, from);
        }
        self.other();
    }

    fn other(&mut self) {
        self.carried.other_datagrams += 1;
        let headers = self.candidate.as_ref().map_or(0, |candidate| candidate.headers);
        if self.carried.other_datagrams > BORNE && self.carried.other_datagrams > headers {
            self.given_up = true;
            self.candidate = None;
        }
    }

    pub fn statistics(&self, headers: Headers) -> Result<HeaderStatistics, Unread> {
        if headers == Headers::Ignore {
            return Err(Unread::NotAsked);
        }
        let forced = matches!(headers, Headers::Forced(_));
        let candidate = self.candidate.as_ref().filter(|candidate| {
            let all = candidate.headers.saturating_add(self.carried.other_datagrams);
            let few_others =
                self.carried.other_datagrams.saturating_mul(100) <= all.saturating_mul(MAX_OTHER_PER_HUNDRED);
            forced || candidate.headers >= 2 && few_others
        });
        match candidate {
            Some(candidate) => Ok(HeaderStatistics {
                width: candidate.width,
                sequence: candidate.sequence.finish(),
                jitter: candidate.jitter.estimate(),
                delay: candidate.delays.spread(),
            }),
            None if self.refused => Err(Unread::TooManyStreams),
            None if !self.has_data() && self.carried.greetings > 0 => Err(Unread::GreetingOnly),
            None if self.carried.cut_off > self.carried.other_datagrams => Err(Unread::PayloadCutOff),
            None => Err(Unread::NotIperf3),
        }
    }
}

/// Whether the payload was long enough for a header, and its captured part was not.
fn cut_off(captured: &[u8], payload_bytes: u32, width: Option<Width>) -> bool {
    let needed = match width {
        Some(Width::Bits32) => 12,
        Some(Width::Bits64) | None => 16,
    };
    captured.len() < needed && payload_bytes as usize >= needed
}

impl Candidate {
    fn new(header: Header, width: Width, time_ns: Option<i64>, from: Option<i64>) -> Self {
        let mut candidate = Candidate {
            width,
            last: header,
            last_ns: time_ns,
            headers: 1,
            sequence: Sequence::new(header.sequence, from),
            jitter: Jitter::default(),
            delays: Delays::default(),
        };
        candidate.time(header, time_ns);
        candidate
    }

    fn add(&mut self, header: Header, time_ns: Option<i64>) {
        let highest = self.sequence.highest();
        let number = match self.width {
            // Wraps after 4,294,967,295.
            Width::Bits32 => {
                let ahead = (header.sequence as u32).wrapping_sub(highest as u32) as i32;
                highest.saturating_add(i64::from(ahead))
            }
            Width::Bits64 => header.sequence,
        };
        self.sequence.add(number);
        self.time(header, time_ns);
        self.last = header;
        self.last_ns = time_ns;
        self.headers += 1;
    }

    fn time(&mut self, header: Header, time_ns: Option<i64>) {
        if let Some(time) = time_ns {
            self.jitter.arrived(time, header.sent_ns);
            self.delays.add(time.saturating_sub(header.sent_ns));
        }
    }
}
