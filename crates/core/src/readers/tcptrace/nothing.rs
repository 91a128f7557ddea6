//! The side that has sent nothing. Written out, so that a connection begins with one copy of what stands in the program.

use super::acknowledged::Acknowledged;
use super::direction::{Direction, REMEMBERED_PACKETS};
use super::outstanding::Outstanding;
use super::sent::Sent;
use super::window::{Advertised, InFlight};

pub(super) static NOTHING: Direction = Direction::NONE;

impl Direction {
    pub const NONE: Direction = Direction {
        packets: 0,
        acks: 0,
        pure_acks: 0,
        data_packets: 0,
        pushed: 0,
        syns: 0,
        fins: 0,
        truncated_packets: 0,
        ip_bytes: 0,
        frame_bytes: 0,
        data_bytes: 0,
        truncated_bytes: 0,
        new_numbers: 0,
        min_segment: 0,
        max_segment: 0,
        last_ns: 0,
        idle_max_ns: 0,
        first_data_ns: 0,
        last_data_ns: 0,
        syn_number: 0,
        syn_position: 0,
        fin_position: 0,
        has_syn_number: false,
        has_fin_number: false,
        max_segment_option: None,
        window_scale: 0,
        offers_scale: false,
        offers_timestamps: false,
        offers_sack: false,
        window_is_open: false,
        had_in_flight: false,
        has_acknowledged: false,
        ends_initial_window: false,
        advertised: Advertised::NONE,
        in_flight: InFlight::NONE,
        initial_window_bytes: 0,
        initial_window_packets: 0,
        sent: Sent::NONE,
        outstanding: Outstanding::NONE,
        acknowledged: Acknowledged::NONE,
        last_acknowledgment: 0,
        acknowledged_number: 0,
        last_window: 0,
        compared_acknowledgment: 0,
        compared_window: 0,
        duplicates_in_a_row: 0,
        recent: [0; REMEMBERED_PACKETS],
        recent_at: 0,
        rare: None,
    };
}

impl Default for Direction {
    fn default() -> Self {
        Direction::NONE
    }
}
