//! What blocks of 4, 16, ... 16384 packets in a row show to somebody who sees them go by, without their content.
//!
//! A block is of one direction of the whole link, of TCP alone. The first [`BLOCKS`] of each length are kept, so that memory is
//! bounded: 1.3 MB a direction while packets come.

use std::collections::HashMap;

use super::slope::{Line, Slope};

pub const LENGTHS: [usize; 7] = [4, 16, 64, 256, 1024, 4096, 16384];
/// Of each length and direction.
pub const BLOCKS: u32 = 32;
/// Shorter gaps are a burst's: twice what a full packet takes at 1 Gbit/s.
const BURST_GAP_NS: i64 = 20_000;

/// A packet, as far as blocks are about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub time_ns: i64,
    /// Its connection: the number of its first packet.
    pub connection: u64,
    pub ip_bytes: u32,
    pub is_full: bool,
    pub is_pushed: bool,
    pub is_pure_ack: bool,
    pub is_retransmitted: bool,
    /// Since the last packet of its connection, if the other side sent that one.
    pub turn_ns: Option<i64>,
    /// In bytes; `None` where the scale is not known.
    pub window: Option<u64>,
    /// IPv4's identification.
    pub ip_id: Option<u16>,
    pub timestamp: Option<u32>,
}

/// A block of packets. Times in seconds; `None` where nothing in it tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    pub client_to_server: bool,
    pub packets: usize,
    pub block: u32,
    pub seconds: f64,
    /// Of the natural logarithm of the gaps in seconds; gaps below 1 ns count as 1 ns.
    pub gap_log_mean: f64,
    pub gap_log_sd: f64,
    pub gap_p10_s: f64,
    pub gap_p50_s: f64,
    pub gap_p90_s: f64,
    pub burst_share: f64,
    pub bytes_mean: f64,
    pub bytes_sd: f64,
    pub full_share: f64,
    pub push_share: f64,
    pub ack_share: f64,
    pub retransmitted_share: f64,
    pub turn_p50_s: Option<f64>,
    pub turn_p90_s: Option<f64>,
    pub window_mean: Option<f64>,
    pub ip_id_zero_share: Option<f64>,
    pub timestamp_rate_hz: Option<f64>,
}

/// The blocks of one direction.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    packets: Vec<Seen>,
    begun: u32,
}

impl Blocks {
    /// `made` takes the blocks that this packet completes.
    pub fn add(&mut self, packet: Seen, client_to_server: bool, made: &mut Vec<Window>) {
        let [.., longest] = LENGTHS;
        if self.begun >= BLOCKS {
            return;
        }
        self.packets.push(packet);
        let count = self.packets.len();
        for length in LENGTHS {
            if !count.is_multiple_of(length) {
                break;
            }
            let block = self.begun as usize * (longest / length) + count / length - 1;
            if block < BLOCKS as usize {
                made.push(window(&self.packets[count - length..], client_to_server, block as u32));
            }
        }
        if count == longest {
            self.packets.clear();
            self.begun += 1;
        }
    }
}

/// What a block comes to; `packets` has two or more.
fn window(packets: &[Seen], client_to_server: bool, block: u32) -> Window {
    let count = packets.len() as f64;
    let mut gaps: Vec<i64> =
        packets.windows(2).map(|pair| pair[1].time_ns.saturating_sub(pair[0].time_ns).max(0)).collect();
    gaps.sort_unstable();
    let logarithms: Vec<f64> = gaps.iter().map(|gap| ((*gap).max(1) as f64 / 1e9).ln()).collect();
    let (gap_log_mean, gap_log_sd) = mean_and_deviation(&logarithms);
    let sizes: Vec<f64> = packets.iter().map(|packet| f64::from(packet.ip_bytes)).collect();
    let (bytes_mean, bytes_sd) = mean_and_deviation(&sizes);
    let mut turns: Vec<i64> = packets.iter().filter_map(|packet| packet.turn_ns).collect();
    turns.sort_unstable();
    let share = |is: fn(&Seen) -> bool| packets.iter().filter(|packet| is(packet)).count() as f64 / count;
    let windows: Vec<f64> = packets.iter().filter_map(|packet| packet.window).map(|window| window as f64).collect();
    let ids: Vec<u16> = packets.iter().filter_map(|packet| packet.ip_id).collect();
    let [first, .., last] = packets else { unreachable!("a block has four packets or more") };
    Window {
        client_to_server,
        packets: packets.len(),
        block,
        seconds: last.time_ns.saturating_sub(first.time_ns) as f64 / 1e9,
        gap_log_mean,
        gap_log_sd,
        gap_p10_s: quantile_s(&gaps, 0.1).unwrap_or(f64::NAN),
        gap_p50_s: quantile_s(&gaps, 0.5).unwrap_or(f64::NAN),
        gap_p90_s: quantile_s(&gaps, 0.9).unwrap_or(f64::NAN),
        burst_share: gaps.iter().filter(|gap| **gap < BURST_GAP_NS).count() as f64 / gaps.len() as f64,
        bytes_mean,
        bytes_sd,
        full_share: share(|packet| packet.is_full),
        push_share: share(|packet| packet.is_pushed),
        ack_share: share(|packet| packet.is_pure_ack),
        retransmitted_share: share(|packet| packet.is_retransmitted),
        turn_p50_s: quantile_s(&turns, 0.5),
        turn_p90_s: quantile_s(&turns, 0.9),
        window_mean: (!windows.is_empty()).then(|| mean_and_deviation(&windows).0),
        ip_id_zero_share: (!ids.is_empty())
            .then(|| ids.iter().filter(|id| **id == 0).count() as f64 / ids.len() as f64),
        timestamp_rate_hz: timestamp_rate_hz(packets),
    }
}

fn timestamp_rate_hz(packets: &[Seen]) -> Option<f64> {
    let mut lines: HashMap<u64, Line, foldhash::fast::RandomState> = HashMap::default();
    for packet in packets {
        if let Some(ticks) = packet.timestamp {
            lines.entry(packet.connection).or_default().add(packet.time_ns, ticks);
        }
    }
    // In order: sums of other orders end in other digits.
    let mut lines: Vec<(u64, Line)> = lines.into_iter().collect();
    lines.sort_unstable_by_key(|(connection, _)| *connection);
    let mut slope = Slope::default();
    lines.iter().for_each(|(_, line)| slope.join(line.slope()));
    slope.rate_hz().map(|(rate, _)| rate)
}

/// With n - 1; of one value the deviation is 0.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

/// By nearest rank.
fn quantile_s(ascending_ns: &[i64], share: f64) -> Option<f64> {
    let rank = (share * ascending_ns.len() as f64).ceil().max(1.0) as usize;
    ascending_ns.get(rank - 1).map(|ns| *ns as f64 / 1e9)
}
