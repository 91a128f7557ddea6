//! One connection while packets come, and the row it becomes.

use std::net::IpAddr;

use super::history::History;
use super::outcome::ConnectionState;
use super::side::{Counted, Counts, Once, Side};
use super::state::State;
use super::timers::{
    dns_end_ns, ICMP_INACTIVITY_TIMEOUT, TCP_ATTEMPT_DELAY, TCP_CLOSE_DELAY, TCP_INACTIVITY_TIMEOUT, TCP_RESET_DELAY,
    UDP_INACTIVITY_TIMEOUT,
};
use super::transition::{advance, flag_letter};
use crate::flow::table::Connection;
use crate::flow::{Key, Protocol};
use crate::wire::tcp::{Segment, ACK, FIN, RST, SYN};

/// A finished connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Connections by first packet, from 0.
    pub number: u64,
    pub originator_address: IpAddr,
    /// For ICMP the message's type.
    pub originator_port: u16,
    pub responder_address: IpAddr,
    /// For ICMP the type of the answer, or the code where there is none.
    pub responder_port: u16,
    pub protocol: Protocol,
    /// IP's number of it.
    pub ip_protocol: u8,
    /// Of the first packet; `None` where the capture holds no times.
    pub start_ns: Option<i64>,
    /// To the last packet before which not both sides had closed; `None` if that is the first.
    pub duration_ns: Option<i64>,
    pub state: ConnectionState,
    pub history: History,
    /// Payload by sequence numbers (TCP) or lengths; `None` without a duration.
    pub originator_bytes: Option<u64>,
    pub responder_bytes: Option<u64>,
    /// Both sides' bytes that were acknowledged and are not in the capture file.
    pub missed_bytes: u64,
    /// Those of them that no packet in the file carried, cut by a snap length or not.
    pub unseen_bytes: u64,
    pub originator: Counts,
    pub responder: Counts,
    /// Inside another IP packet.
    pub is_tunnelled: bool,
    /// Which of the connections with the same endpoints and start time.
    pub(super) ordinal: u32,
}

const NO_TIME: i64 = i64::MIN;
const NEVER: i64 = i64::MAX;

#[derive(Debug)]
pub(super) struct Live {
    pub key: Key,
    pub number: u64,
    pub protocol: Protocol,
    pub is_tunnelled: bool,
    /// Over UDP, by the responder's port.
    pub is_dns: bool,
    pub ordinal: u32,
    originator_is_low: bool,
    start_ns: i64,
    last_ns: i64,
    /// When it ends for another reason than silence.
    timer_ns: i64,
    /// The timer was set by a close or RST, and stays.
    is_ending: bool,
    history: History,
    originator: Side,
    responder: Side,
}

impl Connection for Live {
    #[inline]
    fn key(&self) -> &Key {
        &self.key
    }

    fn number(&self) -> u64 {
        self.number
    }
}

impl Live {
    pub fn new(key: Key, protocol: Protocol, number: u64, originator_is_low: bool, time_ns: Option<i64>) -> Self {
        let start_ns = time_ns.unwrap_or(NO_TIME);
        Live {
            key,
            number,
            protocol,
            is_tunnelled: false,
            is_dns: false,
            ordinal: 0,
            originator_is_low,
            start_ns,
            last_ns: start_ns,
            timer_ns: NEVER,
            is_ending: false,
            history: History::default(),
            originator: Side::default(),
            responder: Side::default(),
        }
    }

    /// The direction was turned round by a port's number.
    pub fn was_flipped(&mut self) {
        self.history.push(b'^');
    }

    pub fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// The first moment at which a packet belongs to another connection.
    #[inline]
    pub fn end_ns(&self) -> i64 {
        if self.last_ns == NO_TIME {
            return NEVER;
        }
        let silence = match self.protocol {
            Protocol::Tcp => TCP_INACTIVITY_TIMEOUT,
            Protocol::Udp => UDP_INACTIVITY_TIMEOUT,
            Protocol::Icmp => ICMP_INACTIVITY_TIMEOUT,
        };
        let end_ns = self.timer_ns.min(self.last_ns.saturating_add(silence));
        if self.is_dns {
            end_ns.min(dns_end_ns(self.start_ns, self.last_ns))
        } else {
            end_ns
        }
    }

    #[inline]
    pub fn is_from_originator(&self, sender_is_low: bool) -> bool {
        sender_is_low == self.originator_is_low
    }

    #[inline]
    fn side(&mut self, is_originator: bool) -> &mut Side {
        if is_originator {
            &mut self.originator
        } else {
            &mut self.responder
        }
    }

    #[inline]
    fn sides(&mut self, is_originator: bool) -> (&mut Side, &mut Side) {
        if is_originator {
            (&mut self.originator, &mut self.responder)
        } else {
            (&mut self.responder, &mut self.originator)
        }
    }

    #[inline]
    fn write(&mut self, letter: u8, is_originator: bool) {
        self.history.push(if is_originator { letter } else { letter.to_ascii_lowercase() });
    }

    #[inline]
    fn at(&mut self, time_ns: Option<i64>) {
        if let Some(time) = time_ns {
            if self.start_ns == NO_TIME {
                self.start_ns = time;
            }
            self.last_ns = self.last_ns.max(time);
        }
    }

    /// A packet whose checksum is wrong: only the history has it.
    pub fn damaged(&mut self, sender_is_low: bool) {
        let is_originator = self.is_from_originator(sender_is_low);
        if self.protocol != Protocol::Icmp && self.side(is_originator).is_shown(Counted::Checksum) {
            self.write(b'C', is_originator);
        }
    }

    /// A datagram or ICMP message.
    #[inline]
    pub fn message(&mut self, time_ns: Option<i64>, sender_is_low: bool, lengths: [u32; 3]) {
        let is_originator = self.is_from_originator(sender_is_low);
        self.at(time_ns);
        let [ip_bytes, frame_bytes, payload_bytes] = lengths;
        let side = self.side(is_originator);
        side.count(ip_bytes, frame_bytes, payload_bytes);
        if side.first(Once::Data) && self.protocol == Protocol::Udp {
            self.write(b'D', is_originator);
        }
    }

    /// A later fragment, which after reassembly is part of the first.
    pub fn fragment(&mut self, time_ns: Option<i64>, sender_is_low: bool, frame_bytes: u32, bytes: u32) {
        let is_originator = self.is_from_originator(sender_is_low);
        self.at(time_ns);
        let counts = &mut self.side(is_originator).counts;
        counts.ip_bytes += u64::from(bytes);
        counts.frame_bytes += u64::from(frame_bytes);
        counts.payload_bytes += u64::from(bytes);
    }

    /// Whether a segment with SYN begins another connection between the same endpoints.
    pub fn is_over_for(&self, segment: &Segment) -> bool {
        let (originator, responder) = (&self.originator, &self.responder);
        let is_answer = segment.has(ACK);
        if is_answer && originator.state() != State::Inactive {
            return false;
        }
        if originator.has_closed() || responder.has_closed() {
            return true;
        }
        let first = if is_answer { responder } else { originator };
        first.base() != segment.sequence && !self.is_reversed_by(segment)
    }

    /// Whether a segment is the SYN that a SYN+ACK before it answers, whose sender was taken for the originator.
    fn is_reversed_by(&self, segment: &Segment) -> bool {
        segment.has(SYN)
            && !segment.has(ACK)
            && self.originator.state() == State::SynAckSent
            && self.responder.state() == State::Inactive
            && self.responder.base() == segment.sequence
    }

    #[inline]
    pub fn segment(
        &mut self,
        time_ns: Option<i64>,
        sender_is_low: bool,
        segment: &Segment,
        lengths: [u32; 2],
        is_whole: bool,
    ) {
        if self.originator.state() == State::SynAckSent && self.responder.state() == State::Inactive {
            self.turn_round_if_answered(segment, sender_is_low);
        }
        let is_originator = self.is_from_originator(sender_is_low);
        if !(self.originator.has_closed() && self.responder.has_closed()) {
            self.at(time_ns);
        }
        let (own, peer) = self.sides(is_originator);
        own.count(lengths[0], lengths[1], segment.payload_bytes);
        let (own_before, peer_before) = (own.state(), peer.state());
        let is_repeated = own.send(segment, is_whole);
        let letter = flag_letter(own, segment);
        let closed_window = segment.window == 0
            && !segment.has(RST)
            && peer_before != State::Closed
            && own_before != State::Reset
            && own.is_shown(Counted::ZeroWindow);
        let again = is_repeated && own.is_shown(Counted::Retransmission);
        advance(own, peer, segment, is_originator);
        let gaps = if segment.has(ACK) && !segment.has(RST) {
            let counts_gaps = own.was_established() && peer.was_established();
            let gaps = peer.acknowledge(segment.acknowledgment, counts_gaps);
            (0..gaps).filter(|_| peer.is_shown(Counted::Gap)).count()
        } else {
            0
        };
        let states = (own.state(), peer.state());
        if let Some(letter) = letter {
            self.write(letter, is_originator);
        }
        if closed_window {
            self.write(b'W', is_originator);
        }
        if again {
            self.write(b'T', is_originator);
        }
        for _ in 0..gaps {
            self.write(b'G', !is_originator);
        }
        if states != (own_before, peer_before) {
            self.set_timer(time_ns);
        }
    }

    /// After a change of state.
    fn set_timer(&mut self, time_ns: Option<i64>) {
        let (Some(now), false) = (time_ns, self.is_ending) else { return };
        let (originator, responder) = (&self.originator, &self.responder);
        let is_closed_by =
            |side: &Side, peer: &Side| side.has_closed() && (peer.has_closed() || peer.state() == State::Inactive);
        let delay = if originator.state() == State::Reset || responder.state() == State::Reset {
            Some(TCP_RESET_DELAY)
        } else if is_closed_by(originator, responder) || is_closed_by(responder, originator) {
            Some(TCP_CLOSE_DELAY)
        } else {
            None
        };
        let is_attempt =
            matches!(originator.state(), State::SynSent | State::SynAckSent) && responder.state() == State::Inactive;
        self.is_ending = delay.is_some();
        self.timer_ns = match delay {
            Some(delay) => now.saturating_add(delay),
            None if is_attempt => now.saturating_add(TCP_ATTEMPT_DELAY),
            None => NEVER,
        };
    }

    /// After a SYN+ACK whose sender was taken for the originator: its SYN, captured in the wrong order, or what no scan
    /// sends, data and acknowledgments.
    #[cold]
    fn turn_round_if_answered(&mut self, segment: &Segment, sender_is_low: bool) {
        let is_plain = segment.flags & (SYN | FIN | RST) == 0;
        let goes_on = is_plain && (segment.has(ACK) || segment.payload_bytes > 0);
        if goes_on {
            self.history.turn_syn_ack();
        } else if self.is_reversed_by(segment) && !self.is_from_originator(sender_is_low) {
            self.history.push(b'^');
        } else {
            return;
        }
        self.originator_is_low = !self.originator_is_low;
        std::mem::swap(&mut self.originator, &mut self.responder);
        self.responder.enter(State::Established);
    }

    /// The row; the connection is of no use after it.
    pub fn finish(&mut self) -> Row {
        let (low, high) = self.key.ends();
        let (originator, responder) = if self.originator_is_low { (low, high) } else { (high, low) };
        let has_times = self.start_ns != NO_TIME;
        let duration_ns = self.last_ns.saturating_sub(self.start_ns);
        let duration_ns = (has_times && duration_ns > 0).then_some(duration_ns);
        let state = match self.protocol {
            Protocol::Tcp => ConnectionState::of_tcp(&self.originator, &self.responder, &self.history),
            Protocol::Udp => ConnectionState::of_udp(&self.originator, &self.responder),
            Protocol::Icmp => ConnectionState::Oth,
        };
        let bytes = |side: &Side| {
            let bytes = if self.protocol == Protocol::Tcp { side.size() } else { side.counts.payload_bytes };
            duration_ns.map(|_| bytes)
        };
        Row {
            number: self.number,
            originator_address: originator.0,
            originator_port: shown_port(originator.1, self.protocol),
            responder_address: responder.0,
            responder_port: shown_port(responder.1, self.protocol),
            protocol: self.protocol,
            ip_protocol: self.key.protocol(),
            start_ns: has_times.then_some(self.start_ns),
            duration_ns,
            state,
            originator_bytes: bytes(&self.originator),
            responder_bytes: bytes(&self.responder),
            missed_bytes: self.originator.missed_bytes + self.responder.missed_bytes,
            unseen_bytes: self.originator.unseen_bytes + self.responder.unseen_bytes,
            originator: self.originator.counts,
            responder: self.responder.counts,
            is_tunnelled: self.is_tunnelled,
            ordinal: self.ordinal,
            history: std::mem::take(&mut self.history),
        }
    }
}

/// Set in the key of an ICMP message that has no answer, so that each direction is a connection of its own.
pub(super) const ONE_WAY: u16 = 0x8000;

fn shown_port(port: u16, protocol: Protocol) -> u16 {
    match protocol {
        Protocol::Icmp => port & !ONE_WAY,
        _ => port,
    }
}
