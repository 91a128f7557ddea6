//! The columns of `flows`: tcptrace's names in snake case, a direction's with the ending that tcptrace prints.

use twinbed_core::readers::tcptrace::Row;

use twinbed_core::table::Column;

/// The columns in their order.
pub fn columns() -> Vec<Column<Row>> {
    let mut columns = vec![
        Column::address("host_a", |row: &Row| row.a.host),
        Column::port("port_a", |row: &Row| row.a.port),
        Column::address("host_b", |row: &Row| row.b.host),
        Column::port("port_b", |row: &Row| row.b.port),
        Column::integer("first_packet_number", |row: &Row| row.first_packet_number),
        Column::optional_real("first_packet", |row: &Row| seconds(row.first_ns)),
        Column::optional_real("last_packet", |row: &Row| seconds(row.last_ns)),
        Column::optional_integer("first_packet_ns", |row: &Row| row.first_ns),
        Column::optional_integer("last_packet_ns", |row: &Row| row.last_ns),
        Column::optional_real("elapsed_time", |row: &Row| row.elapsed),
        Column::integer("total_packets", |row: &Row| row.total_packets),
        Column::text("complete_conn", |row: &Row| row.complete.name()),
        Column::integer("syns", |row: &Row| row.syns),
        Column::integer("fins", |row: &Row| row.fins),
    ];
    // What each side sent, side by side.
    macro_rules! directions {
        ($($part:ident $kind:ident: $($field:ident),+;)+) => { $($(direction!($part $kind $field);)+)+ };
    }
    macro_rules! direction {
        (own $kind:ident $field:ident) => {
            columns.push(Column::$kind(concat!(stringify!($field), "_a2b"), |row: &Row| row.a.$field));
            columns.push(Column::$kind(concat!(stringify!($field), "_b2a"), |row: &Row| row.b.$field));
        };
        (rare $kind:ident $field:ident) => {
            let a2b = Column::$kind(concat!(stringify!($field), "_a2b"), |row: &Row| row.a.rare().$field);
            columns.push(a2b.of_part(0, |row| row.a.has_rare()));
            let b2a = Column::$kind(concat!(stringify!($field), "_b2a"), |row: &Row| row.b.rare().$field);
            columns.push(b2a.of_part(1, |row| row.b.has_rare()));
        };
    }
    directions! {
        own integer: total_packets, ip_bytes, frame_bytes;
        rare integer: resets_sent;
        own integer: ack_pkts_sent, pure_acks_sent;
        rare integer: sack_pkts_sent, dsack_pkts_sent, max_sack_blks_per_ack;
        own integer: unique_bytes_sent, actual_data_pkts, actual_data_bytes;
        rare integer: rexmt_data_pkts, rexmt_data_bytes, zwnd_probe_pkts, zwnd_probe_bytes, outoforder_pkts;
        own integer: pushed_data_pkts, syn_pkts_sent, fin_pkts_sent;
        own flag: req_1323_ws, req_1323_ts;
        own integer: adv_wind_scale;
        own flag: req_sack;
        rare integer: sacks_sent, urgent_data_pkts, urgent_data_bytes;
        own optional_integer: mss_requested, max_segm_size, min_segm_size;
        own optional_real: avg_segm_size;
        own optional_integer: max_win_adv, min_win_adv;
        own integer: zero_win_adv;
        own optional_real: avg_win_adv;
        own optional_integer: max_owin, min_non_zero_owin;
        own optional_real: avg_owin, wavg_owin;
        own optional_integer: initial_window_bytes, initial_window_pkts, ttl_stream_length, missed_data;
        own integer: truncated_data, truncated_packets;
        own optional_real: data_xmit_time, idletime_max;
        rare integer: hardware_dups;
        own optional_real: throughput;
        own integer: rtt_samples;
        own optional_real: rtt_min, rtt_max, rtt_avg, rtt_stdev, rtt_from_3whs;
        own integer: rtt_full_sz_smpls;
        own optional_real: rtt_full_sz_min, rtt_full_sz_max, rtt_full_sz_avg, rtt_full_sz_stdev;
        rare integer: post_loss_acks, ambiguous_acks;
        rare optional_real: rtt_min_last, rtt_max_last, rtt_avg_last, rtt_sdv_last;
        own integer: segs_cum_acked, duplicate_acks;
        rare integer: triple_dupacks, max_retrans;
        rare optional_real: min_retr_time, max_retr_time, avg_retr_time, sdv_retr_time;
    }
    columns
}

fn seconds(ns: Option<i64>) -> Option<f64> {
    ns.map(|ns| ns as f64 / 1e9)
}
