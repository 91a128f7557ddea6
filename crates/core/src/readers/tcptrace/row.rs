//! One row a TCP connection. Names are tcptrace's in snake case, units are seconds and bytes, missing is `None`.
//!
//! `a` is the side that sent the first packet captured, `b` the other (tcptrace's hosts a and b). A column that is
//! about a direction stands with the side that sent; round trips are those of its data and the other side's ACKs.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// What the capture holds of a connection's beginning and end, as tcptrace's `complete conn` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Completeness {
    /// SYN and FIN from both sides.
    Yes,
    /// A RST from either side.
    Reset,
    /// Something is missing: see [`Row::syns`] and [`Row::fins`].
    No,
}

impl Completeness {
    pub fn name(self) -> &'static str {
        match self {
            Completeness::Yes => "yes",
            Completeness::Reset => "reset",
            Completeness::No => "no",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Number in the capture, from 1, of the connection's first packet.
    pub first_packet_number: u64,
    /// Number of the packet at which it was finished to make room; `None` at the end of the capture.
    pub finished_early_at: Option<u64>,
    /// Nanoseconds since the epoch; `None` where the capture holds no times.
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// Seconds from the first packet to the last.
    pub elapsed: Option<f64>,
    pub total_packets: u64,
    pub complete: Completeness,
    /// Number of sides (0 to 2) whose SYN or FIN has been seen.
    pub syns: u8,
    pub fins: u8,
    pub a: Side,
    pub b: Side,
}

/// One side of a connection: its address, and what it sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    pub host: IpAddr,
    pub port: u16,

    pub total_packets: u64,
    /// IP headers and all that follows. Not tcptrace's.
    pub ip_bytes: u64,
    /// Frames' original lengths. Not tcptrace's.
    pub frame_bytes: u64,
    pub ack_pkts_sent: u64,
    pub pure_acks_sent: u64,
    pub unique_bytes_sent: u64,
    pub actual_data_pkts: u64,
    pub actual_data_bytes: u64,
    pub pushed_data_pkts: u64,
    /// tcptrace: SYN/FIN pkts sent.
    pub syn_pkts_sent: u64,
    pub fin_pkts_sent: u64,
    /// tcptrace: req 1323 ws/ts. Window scale and timestamps options in a SYN.
    pub req_1323_ws: bool,
    pub req_1323_ts: bool,
    pub adv_wind_scale: u8,
    pub req_sack: bool,
    pub mss_requested: Option<u16>,
    pub max_segm_size: Option<u32>,
    pub min_segm_size: Option<u32>,
    pub avg_segm_size: Option<f64>,
    pub max_win_adv: Option<u64>,
    pub min_win_adv: Option<u64>,
    pub zero_win_adv: u64,
    pub avg_win_adv: Option<f64>,
    pub max_owin: Option<u64>,
    pub min_non_zero_owin: Option<u64>,
    pub avg_owin: Option<f64>,
    pub wavg_owin: Option<f64>,
    pub initial_window_bytes: Option<u64>,
    pub initial_window_pkts: Option<u64>,
    /// From SYN to FIN by sequence numbers; `None` where either was not seen.
    pub ttl_stream_length: Option<u64>,
    /// Negative where more was sent than the stream is long (bytes beyond a FIN).
    pub missed_data: Option<i64>,
    pub truncated_data: u64,
    pub truncated_packets: u64,
    pub data_xmit_time: Option<f64>,
    pub idletime_max: Option<f64>,
    /// Bytes a second.
    pub throughput: Option<f64>,

    pub rtt_samples: u64,
    pub rtt_min: Option<f64>,
    pub rtt_max: Option<f64>,
    pub rtt_avg: Option<f64>,
    pub rtt_stdev: Option<f64>,
    pub rtt_from_3whs: Option<f64>,
    pub rtt_full_sz_smpls: u64,
    pub rtt_full_sz_min: Option<f64>,
    pub rtt_full_sz_max: Option<f64>,
    pub rtt_full_sz_avg: Option<f64>,
    pub rtt_full_sz_stdev: Option<f64>,
    pub segs_cum_acked: u64,
    pub duplicate_acks: u64,
    /// `None` where all of it is 0 or missing. See [`Side::rare`].
    pub(super) rare: Option<Box<Rare>>,
}

/// What most sides do not have: resets, SACKs, retransmissions and what follows from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rare {
    pub resets_sent: u64,
    pub sack_pkts_sent: u64,
    pub dsack_pkts_sent: u64,
    /// tcptrace: max sack blks/ack.
    pub max_sack_blks_per_ack: u64,
    pub sacks_sent: u64,
    pub rexmt_data_pkts: u64,
    pub rexmt_data_bytes: u64,
    pub zwnd_probe_pkts: u64,
    pub zwnd_probe_bytes: u64,
    pub outoforder_pkts: u64,
    pub urgent_data_pkts: u64,
    pub urgent_data_bytes: u64,
    pub hardware_dups: u64,
    pub post_loss_acks: u64,
    pub ambiguous_acks: u64,
    /// Round trips by ambiguous ACKs, from the last instance of the segment.
    pub rtt_min_last: Option<f64>,
    pub rtt_max_last: Option<f64>,
    pub rtt_avg_last: Option<f64>,
    pub rtt_sdv_last: Option<f64>,
    pub triple_dupacks: u64,
    /// tcptrace: max # retrans.
    pub max_retrans: u64,
    pub min_retr_time: Option<f64>,
    pub max_retr_time: Option<f64>,
    pub avg_retr_time: Option<f64>,
    pub sdv_retr_time: Option<f64>,
}

/// A side without any of it.
static NO_RARE: Rare = Rare {
    resets_sent: 0,
    sack_pkts_sent: 0,
    dsack_pkts_sent: 0,
    max_sack_blks_per_ack: 0,
    sacks_sent: 0,
    rexmt_data_pkts: 0,
    rexmt_data_bytes: 0,
    zwnd_probe_pkts: 0,
    zwnd_probe_bytes: 0,
    outoforder_pkts: 0,
    urgent_data_pkts: 0,
    urgent_data_bytes: 0,
    hardware_dups: 0,
    post_loss_acks: 0,
    ambiguous_acks: 0,
    rtt_min_last: None,
    rtt_max_last: None,
    rtt_avg_last: None,
    rtt_sdv_last: None,
    triple_dupacks: 0,
    max_retrans: 0,
    min_retr_time: None,
    max_retr_time: None,
    avg_retr_time: None,
    sdv_retr_time: None,
};

impl Side {
    /// Return what most sides do not have.
    #[inline]
    pub fn rare(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&NO_RARE)
    }

    /// Whether the side may have any of what most sides do not have.
    #[inline]
    pub fn has_rare(&self) -> bool {
        self.rare.is_some()
    }

    /// The capture holds no times: what was computed from them is missing.
    pub(super) fn forget_times(&mut self) {
        for time in [
            &mut self.wavg_owin,
            &mut self.data_xmit_time,
            &mut self.idletime_max,
            &mut self.throughput,
            &mut self.rtt_min,
            &mut self.rtt_max,
            &mut self.rtt_avg,
            &mut self.rtt_stdev,
            &mut self.rtt_from_3whs,
            &mut self.rtt_full_sz_min,
            &mut self.rtt_full_sz_max,
            &mut self.rtt_full_sz_avg,
            &mut self.rtt_full_sz_stdev,
        ] {
            *time = None;
        }
        if let Some(rare) = &mut self.rare {
            for time in [
                &mut rare.rtt_min_last,
                &mut rare.rtt_max_last,
                &mut rare.rtt_avg_last,
                &mut rare.rtt_sdv_last,
                &mut rare.min_retr_time,
                &mut rare.max_retr_time,
                &mut rare.avg_retr_time,
                &mut rare.sdv_retr_time,
            ] {
                *time = None;
            }
        }
    }
}
