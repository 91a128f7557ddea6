//! One connection: its endpoints, its times, whether a packet still belongs to it, and its row.

use std::net::IpAddr;

use super::direction::{self, Arrival, Direction};
use super::nothing::NOTHING;
use super::row::{Completeness, Rare, Row, Side};
use crate::flow::table::Connection;
use crate::flow::Key;
use crate::wire::tcp::SYN;

/// After a longer silence, packets between the same endpoints are another connection.
const MAX_IDLE_NS: i64 = 240_000_000_000;

/// tcptrace divides the sum of segment sizes by the number of segments and this (docs/flows.md).
const SIZE_BIAS: f64 = 0.001;

/// A connection while packets come.
#[derive(Debug, Default)]
pub(super) struct Live {
    key: Key,
    /// Who sent the first packet.
    a_is_low: bool,
    has_times: bool,
    /// Among the closed ones.
    pub is_in_line: bool,
    /// Of the first and the last packet in the capture, from 1.
    pub first_number: u64,
    pub last_number: u64,
    first_ns: i64,
    last_ns: i64,
    a: Direction,
    /// As long as this side has sent nothing, it holds the state of another connection that was here before.
    b: Direction,
    has_b: bool,
}

impl Connection for Live {
    #[inline]
    fn key(&self) -> &Key {
        &self.key
    }

    fn number(&self) -> u64 {
        self.first_number
    }
}

impl Live {
    /// Begins a connection, where another one may have been.
    pub fn begin(&mut self, key: Key, a_is_low: bool, number: u64, time_ns: Option<i64>) {
        self.key = key;
        self.a_is_low = a_is_low;
        self.has_times = true;
        self.is_in_line = false;
        (self.first_number, self.last_number) = (number, number);
        self.first_ns = time_ns.unwrap_or(0);
        self.last_ns = self.first_ns;
        self.a = Direction::NONE;
        self.has_b = false;
    }

    /// The side that answers, if it has sent anything.
    #[inline]
    fn b(&self) -> Option<&Direction> {
        self.has_b.then_some(&self.b)
    }

    /// Whether a packet of its endpoints begins another connection.
    #[inline]
    pub fn is_over_for(&self, arrival: &Arrival, sender_is_low: bool) -> bool {
        if arrival.time_ns.saturating_sub(self.last_ns) > MAX_IDLE_NS {
            return true;
        }
        arrival.segment.has(SYN) && self.is_news(arrival.segment.sequence, sender_is_low)
    }

    /// A FIN or a RST has been seen.
    pub fn is_closed(&self) -> bool {
        let closes = |side: &Direction| side.fins > 0 || side.rare.as_ref().is_some_and(|rare| rare.resets > 0);
        closes(&self.a) || self.b().is_some_and(closes)
    }

    /// Whether a SYN's number is outside what its sender could still send. This counts after a FIN, a RST or the sender's
    /// second SYN. As in tcptrace, numbers are compared without regard to wrapping, and from 0 where no SYN was seen.
    #[cold]
    fn is_news(&self, number: u32, sender_is_low: bool) -> bool {
        let b = self.b().unwrap_or(&NOTHING);
        let (own, peer) = if sender_is_low == self.a_is_low { (&self.a, b) } else { (b, &self.a) };
        if !self.is_closed() && (own.syns < 2 || number == own.syn_number) {
            return false;
        }
        number < own.syn_number || number > peer.last_acknowledgment.wrapping_add(peer.last_window)
    }

    /// Names how far a packet is dated before the one ahead of it: by as little as captures of several queues put packets in
    /// another order, or by as much as a clock that was set back.
    #[inline]
    pub fn goes_back(&self, time_ns: Option<i64>) -> Option<&'static str> {
        let back_ns = self.last_ns.saturating_sub(time_ns.filter(|_| self.has_times)?);
        match back_ns {
            ..=0 => None,
            1..1_000_000 => Some("dated_less_than_1_ms_before_the_packet_ahead_in_its_connection"),
            _ => Some("dated_1_ms_or_more_before_the_packet_ahead_in_its_connection"),
        }
    }

    /// Counts a packet; gives by how many places on the heap the connection has grown.
    #[inline(always)]
    pub fn packet(&mut self, arrival: &Arrival, sender_is_low: bool, number: u64, has_time: bool) -> isize {
        self.last_number = number;
        self.last_ns = arrival.time_ns;
        self.has_times &= has_time;
        let from_a = sender_is_low == self.a_is_low;
        if !from_a {
            self.begin_b();
            self.b.counted(&mut self.a, arrival)
        } else if self.has_b {
            self.a.counted(&mut self.b, arrival)
        } else {
            // What a's packet does to b is nothing, as long as b has sent nothing.
            self.a.counted(&mut Direction::default(), arrival)
        }
    }

    pub fn sides(&self) -> impl Iterator<Item = &Direction> {
        std::iter::once(&self.a).chain(self.b())
    }

    /// Places on the heap for segments and gaps.
    pub fn places(&self) -> usize {
        self.sides().map(Direction::places).sum()
    }

    /// Gives up the segments and gaps that are on the heap.
    pub fn forget(&mut self) {
        for side in [&mut self.a, &mut self.b] {
            side.outstanding.forget();
            side.sent.forget();
        }
    }

    #[inline]
    fn begin_b(&mut self) {
        if !self.has_b {
            self.has_b = true;
            self.b = Direction::NONE;
        }
    }

    /// A later fragment: its bytes are the sender's, its header was in another packet.
    pub fn fragment(&mut self, ip_bytes: u32, frame_bytes: u32, sender_is_low: bool) {
        let from_a = sender_is_low == self.a_is_low;
        if !from_a {
            self.begin_b();
        }
        let side = if from_a { &mut self.a } else { &mut self.b };
        side.ip_bytes += u64::from(ip_bytes);
        side.frame_bytes += u64::from(frame_bytes);
    }

    /// The row; the capture ended at `capture_end_ns`, and an open connection was idle until then. `early` is
    /// [`Row::finished_early_at`].
    pub fn finish(&self, capture_end_ns: i64, early: Option<u64>) -> Row {
        let b = self.b().unwrap_or(&NOTHING);
        let a = &self.a;
        let resets = |side: &Direction| side.rare.as_ref().map_or(0, |rare| rare.resets);
        let sides = |count: fn(&Direction) -> u32| u8::from(count(a) > 0) + u8::from(count(b) > 0);
        let (syns, fins) = (sides(|side| side.syns), sides(|side| side.fins));
        let complete = if resets(a) + resets(b) > 0 {
            Completeness::Reset
        } else if syns == 2 && fins == 2 {
            Completeness::Yes
        } else {
            Completeness::No
        };
        let is_over = fins == 2 || complete == Completeness::Reset;
        let idle_until_ns = if is_over { i64::MIN } else { capture_end_ns };
        // A clock that was set back gives no duration, as in tcptrace.
        let elapsed_ns = self.last_ns.saturating_sub(self.first_ns).max(0);
        let both_scaled = a.advertised.is_scaled && b.advertised.is_scaled;
        let (low, high) = self.key.ends();
        let side = |of, is_low| side(of, if is_low { low } else { high }, elapsed_ns, idle_until_ns, both_scaled);
        let mut row = Row {
            first_packet_number: self.first_number,
            finished_early_at: early,
            first_ns: self.has_times.then_some(self.first_ns),
            last_ns: self.has_times.then_some(self.last_ns),
            elapsed: self.has_times.then_some(elapsed_ns as f64 / 1e9),
            total_packets: u64::from(a.packets) + u64::from(b.packets),
            complete,
            syns,
            fins,
            a: side(a, self.a_is_low),
            b: side(b, !self.a_is_low),
        };
        if !self.has_times {
            row.a.forget_times();
            row.b.forget_times();
        }
        row
    }
}

/// Inlined, so that a row is written once, to where it stays.
#[inline(always)]
fn side(of: &Direction, (host, port): (IpAddr, u16), elapsed_ns: i64, idle_until_ns: i64, both_scaled: bool) -> Side {
    let has_data = of.data_packets > 0;
    let unique =
        of.new_numbers.saturating_sub(u64::from(of.has_syn_number)).saturating_sub(u64::from(of.has_fin_number));
    // A FIN below its SYN ends no stream.
    let stream =
        (of.syns > 0 && of.fins > 0).then(|| of.fin_position - of.syn_position - 1).filter(|&length| length >= 0);
    let idle_ns = of.idle_max_ns.max(idle_until_ns.saturating_sub(of.last_ns));
    let acknowledged = &of.acknowledged;
    let (times, full) = (&acknowledged.round_trips, &acknowledged.full_round_trips);
    Side {
        host,
        port,
        total_packets: of.packets.into(),
        ip_bytes: of.ip_bytes,
        frame_bytes: of.frame_bytes,
        ack_pkts_sent: of.acks.into(),
        pure_acks_sent: of.pure_acks.into(),
        unique_bytes_sent: unique,
        actual_data_pkts: of.data_packets.into(),
        actual_data_bytes: of.data_bytes,
        pushed_data_pkts: of.pushed.into(),
        syn_pkts_sent: of.syns.into(),
        fin_pkts_sent: of.fins.into(),
        req_1323_ws: of.offers_scale,
        req_1323_ts: of.offers_timestamps,
        adv_wind_scale: of.window_scale,
        req_sack: of.offers_sack,
        mss_requested: of.max_segment_option,
        max_segm_size: has_data.then_some(of.max_segment),
        min_segm_size: has_data.then_some(of.min_segment),
        avg_segm_size: has_data.then(|| of.data_bytes as f64 / (f64::from(of.data_packets) + SIZE_BIAS)),
        max_win_adv: of.advertised.max(),
        min_win_adv: of.advertised.min(),
        zero_win_adv: of.advertised.zero(),
        avg_win_adv: of.advertised.mean(of.packets, both_scaled),
        max_owin: of.in_flight.max(),
        min_non_zero_owin: of.in_flight.min(),
        avg_owin: of.in_flight.mean(),
        wavg_owin: of.in_flight.weighted_mean(elapsed_ns),
        initial_window_bytes: has_data.then_some(of.initial_window_bytes.into()),
        initial_window_pkts: has_data.then_some(of.initial_window_packets.into()),
        ttl_stream_length: stream.and_then(|length| u64::try_from(length).ok()),
        missed_data: stream.map(|length| length.saturating_sub(i64::try_from(unique).unwrap_or(i64::MAX))),
        truncated_data: of.truncated_bytes,
        truncated_packets: of.truncated_packets.into(),
        data_xmit_time: has_data.then(|| of.last_data_ns.saturating_sub(of.first_data_ns).max(0) as f64 / 1e9),
        idletime_max: (of.packets > 0).then_some(idle_ns.max(0) as f64 / 1e9),
        throughput: (elapsed_ns > 0).then(|| unique as f64 / (elapsed_ns as f64 / 1e9)),
        rtt_samples: times.count(),
        rtt_min: times.min(),
        rtt_max: times.max(),
        rtt_avg: times.mean(),
        rtt_stdev: times.deviation(),
        rtt_from_3whs: (acknowledged.handshake_ns >= 0).then(|| acknowledged.handshake_ns as f64 / 1e9),
        rtt_full_sz_smpls: full.count(),
        rtt_full_sz_min: full.min(),
        rtt_full_sz_max: full.max(),
        rtt_full_sz_avg: full.mean(),
        rtt_full_sz_stdev: full.deviation(),
        segs_cum_acked: acknowledged.cumulative.into(),
        duplicate_acks: acknowledged.duplicates.into(),
        rare: of.rare.as_deref().map(rare),
    }
}

#[cold]
fn rare(rare: &direction::Rare) -> Box<Rare> {
    let (last, resent) = (&rare.last_round_trips, &rare.retransmission_times);
    Box::new(Rare {
        resets_sent: rare.resets.into(),
        sack_pkts_sent: rare.sack_packets.into(),
        dsack_pkts_sent: rare.dsack_packets.into(),
        max_sack_blks_per_ack: rare.max_sack_blocks.into(),
        rexmt_data_pkts: rare.rexmt_packets.into(),
        rexmt_data_bytes: rare.rexmt_bytes,
        zwnd_probe_pkts: rare.probe_packets.into(),
        zwnd_probe_bytes: rare.probe_bytes,
        outoforder_pkts: rare.out_of_order.into(),
        sacks_sent: rare.sacks.into(),
        urgent_data_pkts: rare.urgent_packets.into(),
        urgent_data_bytes: rare.urgent_bytes,
        hardware_dups: rare.hardware_dups.into(),
        post_loss_acks: rare.post_loss_acks.into(),
        ambiguous_acks: rare.ambiguous_acks.into(),
        triple_dupacks: rare.triple_dupacks.into(),
        max_retrans: rare.max_retransmissions.into(),
        rtt_min_last: last.min(),
        rtt_max_last: last.max(),
        rtt_avg_last: last.mean(),
        rtt_sdv_last: last.deviation(),
        min_retr_time: resent.min(),
        max_retr_time: resent.max(),
        avg_retr_time: resent.mean(),
        sdv_retr_time: resent.deviation(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Direction, Live};
    use crate::readers::tcptrace::direction::Rare;

    /// docs/flows.md says what a connection costs.
    #[test]
    fn a_connection_costs_what_the_manual_says() {
        assert_eq!((size_of::<Live>(), size_of::<Direction>(), size_of::<Rare>()), (1120, 520, 160));
    }
}
