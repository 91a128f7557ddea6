//! What one side of a connection sent. It is counted as tcptrace counts; docs/flows.md has the rules, which experiments
//! showed.

use super::acknowledged::Acknowledged;
use super::outstanding::{Outstanding, OutstandingSegment};
use super::samples::Samples;
use super::sent::{each_quarter, Sent};
use super::window::{Advertised, InFlight};
use crate::wire::tcp::{self, Segment, ACK, FIN, PSH, RST, SYN, URG};

/// Packets of a side that a hardware duplicate is looked for among.
pub(super) const REMEMBERED_PACKETS: usize = 8;

/// A packet as far as its connection needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub segment: Segment,
    pub options: &'a [u8],
    pub time_ns: i64,
    pub captured_payload_bytes: u32,
    pub ip_bytes: u32,
    pub frame_bytes: u32,
    /// 0 where there is none.
    pub ip_id: u16,
}

/// What most connections do not have.
#[derive(Debug, Clone, Default)]
pub(super) struct Rare {
    pub resets: u32,
    pub sack_packets: u32,
    pub dsack_packets: u32,
    pub sacks: u32,
    pub max_sack_blocks: u8,
    pub rexmt_packets: u32,
    pub rexmt_bytes: u64,
    pub out_of_order: u32,
    pub probe_packets: u32,
    pub probe_bytes: u64,
    pub urgent_packets: u32,
    pub urgent_bytes: u64,
    pub hardware_dups: u32,
    pub post_loss_acks: u32,
    pub ambiguous_acks: u32,
    pub triple_dupacks: u32,
    pub max_retransmissions: u32,
    pub retransmission_times: Samples,
    pub last_round_trips: Samples,
}

#[derive(Debug, Clone)]
pub(super) struct Direction {
    pub packets: u32,
    pub acks: u32,
    pub pure_acks: u32,
    pub data_packets: u32,
    pub pushed: u32,
    pub syns: u32,
    pub fins: u32,
    pub truncated_packets: u32,
    pub ip_bytes: u64,
    pub frame_bytes: u64,
    pub data_bytes: u64,
    pub truncated_bytes: u64,
    /// New sequence numbers, SYNs and FINs too.
    pub new_numbers: u64,
    pub min_segment: u32,
    pub max_segment: u32,
    pub last_ns: i64,
    pub idle_max_ns: i64,
    pub first_data_ns: i64,
    pub last_data_ns: i64,
    /// Number and position of the last SYN, position of the last FIN.
    pub syn_number: u32,
    pub syn_position: i64,
    pub fin_position: i64,
    /// A SYN, a FIN is among the numbers sent: not one in another's place, or sent against a closed window.
    pub has_syn_number: bool,
    pub has_fin_number: bool,
    pub max_segment_option: Option<u16>,
    pub window_scale: u8,
    pub offers_scale: bool,
    pub offers_timestamps: bool,
    pub offers_sack: bool,
    /// The last window was not 0. As in tcptrace, no window counts as 0.
    pub window_is_open: bool,
    /// Some sample of what is in flight was not 0.
    pub had_in_flight: bool,
    pub has_acknowledged: bool,
    /// An ACK of this side says that the other's first data arrived.
    pub ends_initial_window: bool,
    pub advertised: Advertised,
    pub in_flight: InFlight,
    pub initial_window_bytes: u32,
    pub initial_window_packets: u32,
    pub sent: Sent,
    pub outstanding: Outstanding,
    /// What the other side made of this side's data.
    pub acknowledged: Acknowledged,
    /// Last acknowledgment number sent, and other than by a RST; the window with the last, scaled.
    pub last_acknowledgment: u32,
    pub acknowledged_number: u32,
    pub last_window: u32,
    /// For duplicate ACKs: as the last packet other than a RST had them.
    pub compared_acknowledgment: u32,
    pub compared_window: u32,
    pub duplicates_in_a_row: u32,
    pub(super) recent: [u32; REMEMBERED_PACKETS],
    pub(super) recent_at: u8,
    pub rare: Option<Box<Rare>>,
}

impl Arrival<'_> {
    /// Nothing but an ACK or data with one, and no options but timestamps: what nearly all packets are.
    #[inline]
    fn is_plain(&self) -> bool {
        self.segment.flags & (SYN | FIN | RST | URG | ACK) == ACK && tcp::are_timestamps_or_none(self.options)
    }
}

impl Direction {
    #[cold]
    pub fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_with(Box::default)
    }

    /// Places on the heap for segments and gaps.
    #[inline]
    pub fn places(&self) -> usize {
        self.outstanding.places() + self.sent.places()
    }

    /// As [`Direction::packet`]; gives by how many places on the heap this side has grown. The other side only shrinks
    /// by whole connections: what it takes out leaves its places.
    #[inline]
    pub fn counted(&mut self, peer: &mut Direction, arrival: &Arrival) -> isize {
        let before = self.places();
        if arrival.is_plain() {
            self.packet::<true>(peer, arrival);
        } else {
            self.packet::<false>(peer, arrival);
        }
        self.places() as isize - before as isize
    }

    /// Counts a packet of this side; `peer` is the other. What holds of a plain packet is known when this is compiled.
    #[inline(always)]
    fn packet<const IS_PLAIN: bool>(&mut self, peer: &mut Direction, arrival: &Arrival) {
        let segment = &arrival.segment;
        let payload_bytes = segment.payload_bytes;
        let has = |flag| !IS_PLAIN && segment.has(flag);
        let (syn, fin, rst, ack) = (has(SYN), has(FIN), has(RST), IS_PLAIN || segment.has(ACK));
        if self.packets > 0 {
            self.idle_max_ns = self.idle_max_ns.max(arrival.time_ns.saturating_sub(self.last_ns));
        }
        self.last_ns = arrival.time_ns;
        self.packets = self.packets.saturating_add(1);
        self.ip_bytes += u64::from(arrival.ip_bytes);
        self.frame_bytes += u64::from(arrival.frame_bytes);
        if syn {
            self.syn(arrival);
            // What was acknowledged before this belongs to another stream.
            peer.has_acknowledged = false;
            peer.compared_acknowledgment = arrival.segment.sequence;
        } else if !(self.offers_scale && peer.offers_scale) {
            // Both must offer it (RFC 7323, 2.2).
            self.window_scale = 0;
            peer.window_scale = 0;
        }
        if !self.offers_timestamps && !syn && !arrival.options.is_empty() {
            self.offers_timestamps = IS_PLAIN || tcp::syn_options(arrival.options).timestamps;
        }
        if rst {
            self.rare().resets += 1;
        }
        if payload_bytes > 0 {
            self.data(arrival, has(URG));
        }
        self.hardware_duplicate(arrival);
        self.numbers(peer, arrival, syn, fin, rst);
        let window = if syn { u32::from(segment.window) } else { self.scaled(segment.window) };
        self.advertise(peer.offers_scale, window, syn, rst, ack);
        if ack {
            self.acks = self.acks.saturating_add(1);
            if payload_bytes == 0 && !syn && !fin && !rst {
                self.pure_acks = self.pure_acks.saturating_add(1);
            }
            if !IS_PLAIN {
                self.selective(arrival, rst);
            }
            self.acknowledge(peer, arrival, window);
            self.last_acknowledgment = segment.acknowledgment;
            self.last_window = window;
        } else {
            self.selective(arrival, true);
        }
        if !rst {
            if ack || !syn {
                self.compared_acknowledgment = if ack { segment.acknowledgment } else { 0 };
            }
            self.compared_window = window;
            if ack {
                // Not the SYN alone is acknowledged.
                self.ends_initial_window |= peer.syns == 0 || segment.acknowledgment != peer.syn_number.wrapping_add(1);
                self.acknowledged_number = segment.acknowledgment;
                self.has_acknowledged = true;
            }
        }
    }

    #[inline]
    fn scaled(&self, window: u16) -> u32 {
        (u64::from(window) << self.window_scale.min(32)).min(u64::from(u32::MAX)) as u32
    }

    #[inline]
    fn syn(&mut self, arrival: &Arrival) {
        let offered = tcp::syn_options(arrival.options);
        self.syns = self.syns.saturating_add(1);
        self.syn_number = arrival.segment.sequence;
        self.max_segment_option = offered.max_segment_bytes.or(self.max_segment_option);
        // Above 127 is none at all; tcptrace reads a signed byte.
        if let Some(scale) = offered.window_scale.filter(|&scale| scale < 128) {
            self.window_scale = scale;
            self.offers_scale = true;
        }
        self.offers_sack |= offered.sack_permitted;
        self.offers_timestamps |= offered.timestamps;
    }

    #[inline]
    fn data(&mut self, arrival: &Arrival, urg: bool) {
        let segment = &arrival.segment;
        let bytes = segment.payload_bytes;
        if self.data_packets == 0 {
            self.first_data_ns = arrival.time_ns;
            self.min_segment = bytes;
        }
        self.last_data_ns = arrival.time_ns;
        self.data_packets = self.data_packets.saturating_add(1);
        self.data_bytes += u64::from(bytes);
        self.min_segment = self.min_segment.min(bytes);
        self.max_segment = self.max_segment.max(bytes);
        self.pushed = self.pushed.saturating_add(u32::from(segment.has(PSH)));
        let truncated = bytes.saturating_sub(arrival.captured_payload_bytes);
        self.truncated_bytes += u64::from(truncated);
        self.truncated_packets = self.truncated_packets.saturating_add(u32::from(truncated > 0));
        if urg {
            let rare = self.rare();
            rare.urgent_packets += 1;
            rare.urgent_bytes += u64::from(segment.urgent_pointer);
        }
    }

    /// The same sequence number and IP identification among the last packets: one packet, captured twice.
    #[inline]
    fn hardware_duplicate(&mut self, arrival: &Arrival) {
        if arrival.ip_id == 0 || arrival.segment.sequence == 0 {
            return;
        }
        // One number for both: neighbours differ by less than this factor, so they do not fall together.
        let mark = arrival.segment.sequence.wrapping_add(u32::from(arrival.ip_id).wrapping_mul(0x9e37_79b1));
        if self.recent.contains(&mark) {
            // As in tcptrace, which remembers originals alone.
            self.rare().hardware_dups += 1;
            return;
        }
        self.recent[usize::from(self.recent_at) % REMEMBERED_PACKETS] = mark;
        self.recent_at = self.recent_at.wrapping_add(1);
    }

    /// Enters what the packet takes of the sequence space, and samples what is in flight.
    #[inline(always)]
    fn numbers(&mut self, peer: &Direction, arrival: &Arrival, syn: bool, fin: bool, rst: bool) {
        let segment = &arrival.segment;
        let payload_bytes = segment.payload_bytes;
        let numbers = payload_bytes + u32::from(syn) + u32::from(fin);
        let start = self.sent.position_of_own(segment.sequence);
        let end = start + i64::from(numbers);
        if syn {
            self.syn_position = start;
        }
        // After a RST every packet moves the end, as in tcptrace.
        if fin || self.rare.as_ref().is_some_and(|rare| rare.resets > 0) {
            self.fins = self.fins.saturating_add(u32::from(fin));
            self.fin_position = start + i64::from(payload_bytes);
        }
        if numbers > 0 {
            if syn || fin {
                self.control(start, end, syn, fin, peer);
            }
            if peer.packets > 0 && !peer.window_is_open && !syn {
                let rare = self.rare();
                rare.probe_packets += 1;
                rare.probe_bytes += u64::from(payload_bytes);
            } else if self.sent.extend(start, end) {
                self.new_numbers += u64::from(numbers);
                let sent_ns = arrival.time_ns;
                let in_first = self.sent.quarters().left(start);
                if i64::from(numbers) <= in_first {
                    self.outstanding.push(OutstandingSegment { start, length: numbers, retransmissions: 0, sent_ns });
                } else {
                    each_quarter(&self.sent.quarters(), start, end, |start, length| {
                        self.outstanding.push(OutstandingSegment { start, length, retransmissions: 0, sent_ns });
                    });
                }
            } else {
                let repeats = self.repeated(start, end, arrival.time_ns);
                if repeats.is_new && repeats.is_out_of_order && payload_bytes > 0 && !rst {
                    self.initial_window(peer, payload_bytes);
                }
                if !repeats.is_new || repeats.is_out_of_order {
                    return;
                }
            }
        }
        if payload_bytes > 0 && !rst {
            self.initial_window(peer, payload_bytes);
        }
        if !syn && !rst {
            self.sample_in_flight(peer, start + i64::from(payload_bytes), payload_bytes, arrival.time_ns);
        }
    }

    /// Notes a SYN and a FIN among the numbers sent: they are no bytes of the stream.
    #[cold]
    fn control(&mut self, start: i64, end: i64, syn: bool, fin: bool, peer: &Direction) {
        let is_probe = peer.packets > 0 && !peer.window_is_open && !syn;
        self.has_syn_number |= syn && !self.sent.contains(start);
        self.has_fin_number |= fin && !is_probe && !self.sent.contains(end - 1);
    }

    /// Counts data sent before any was acknowledged.
    #[inline]
    fn initial_window(&mut self, peer: &Direction, payload_bytes: u32) {
        if !peer.ends_initial_window {
            self.initial_window_bytes = self.initial_window_bytes.saturating_add(payload_bytes);
            self.initial_window_packets += 1;
        }
    }

    #[inline]
    fn sample_in_flight(&mut self, peer: &Direction, end: i64, payload_bytes: u32, time_ns: i64) {
        // An acknowledgment of number 0 tells tcptrace nothing.
        let bytes = if peer.has_acknowledged && peer.acknowledged_number != 0 {
            end - self.sent.position(peer.acknowledged_number) + 1
        } else if self.syns > 0 && !peer.has_acknowledged {
            end - self.syn_position + 1
        } else {
            i64::from(payload_bytes)
        };
        self.had_in_flight |= bytes != 0;
        self.in_flight.sample(bytes, time_ns);
    }

    #[inline]
    fn advertise(&mut self, peer_offers_scale: bool, window: u32, syn: bool, rst: bool, ack: bool) {
        if !self.advertised.is_scaled && self.offers_scale && peer_offers_scale && ack && !syn && !rst && window > 0 {
            self.advertised.scale_agreed();
        }
        self.advertised.packet();
        if (ack || syn) && !rst {
            self.advertised.add(window, ack);
            self.window_is_open = window > 0;
        } else if !rst {
            self.window_is_open = false;
        }
    }

    /// SACK blocks (RFC 2018), and whether the first reports a duplicate (RFC 2883).
    #[inline]
    fn selective(&mut self, arrival: &Arrival, is_no_ack: bool) {
        let Some(sack) = tcp::sack(arrival.options) else { return };
        let acknowledgment = arrival.segment.acknowledgment;
        // Compared without regard to wrapping, as tcptrace does.
        let (start, end) = sack.first;
        let rare = self.rare();
        rare.sacks += 1;
        if is_no_ack {
            return;
        }
        rare.sack_packets += 1;
        rare.max_sack_blocks = rare.max_sack_blocks.max(sack.blocks);
        let overlaps_second = sack.second.is_some_and(|(low, high)| {
            (start..end).contains(&low) || (low..high).contains(&start) || start >= low && end <= high
        });
        rare.dsack_packets += u32::from(end <= acknowledgment || overlaps_second);
    }
}
