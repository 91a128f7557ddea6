//! What belongs to which connection, and which bytes are new: each expectation follows from the sequence numbers written here.

mod made;

use made::{pcap, segments, tcp, Packet, Tcp};
use twinbed_core::flow::{connections, Capture, Options};

const ETHERNET: u32 = 1;

fn read_packets(packets: &[Packet]) -> Capture {
    connections(&pcap(packets, false, false, ETHERNET), &Options::default()).expect("a capture")
}

fn read(list: &[Tcp]) -> Capture {
    read_packets(&segments(list))
}

/// A handshake with the client's initial number 100 and the server's 500.
fn handshake() -> Vec<Tcp> {
    vec![tcp(true, "S", 100, 0, 0), tcp(false, "SA", 500, 101, 0), tcp(true, "A", 101, 501, 0)]
}

fn with(more: &[Tcp]) -> Vec<Tcp> {
    let mut list = handshake();
    list.extend(more);
    list
}

#[test]
fn a_whole_connection() {
    let rows = read(&with(&[
        tcp(true, "A", 101, 501, 10),
        tcp(false, "A", 501, 111, 1000),
        tcp(false, "AF", 1501, 111, 500),
        tcp(true, "AF", 111, 2002, 0),
        tcp(false, "A", 2002, 112, 0),
    ]))
    .connections;
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert!(row.complete && !row.reset);
    assert_eq!((row.originator_port, row.responder_port), (40000, 80));
    assert_eq!(row.duration_s(), Some(0.007));
    let responder = &row.responder;
    assert_eq!((responder.payload_bytes, responder.unique_payload_bytes), (1500, 1500));
    assert_eq!((responder.data_segments, responder.pure_acks, responder.max_segment_bytes), (2, 1, 1000));
    assert_eq!(responder.bytes, 1500 + 4 * 40);
    assert_eq!(responder.frame_bytes, 1500 + 4 * 54);
    assert_eq!(responder.retransmitted_segments, 0);
}

#[test]
fn sequence_numbers_wrap() {
    let isn = u32::MAX - 999;
    let mut list = vec![tcp(true, "S", isn, 0, 0), tcp(false, "SA", 500, isn.wrapping_add(1), 0)];
    for at in 0..5u32 {
        list.push(tcp(true, "A", isn.wrapping_add(1 + at * 400), 501, 400));
    }
    // The third one, which lies across the wrap, again.
    list.push(tcp(true, "A", isn.wrapping_add(801), 501, 400));
    let row = &read(&list).connections[0];
    assert_eq!(row.originator.unique_payload_bytes, 2000);
    assert_eq!((row.originator.retransmitted_segments, row.originator.retransmitted_bytes), (1, 400));
    assert_eq!(row.originator.out_of_order_segments, 0);
}

/// More than 2^32 bytes: nothing new looks old.
#[test]
fn more_than_a_sequence_space() {
    let step = 60_000u32;
    let mut packets = segments(&handshake());
    let count = 75_000u64;
    for at in 0..count {
        let segment = tcp(false, "A", 501u32.wrapping_add((at as u32).wrapping_mul(step)), 101, step as usize);
        // Headers only, as a snap length leaves it.
        let original_bytes = 54 + step;
        let mut frame = Tcp { payload_bytes: 0, ..segment }.frame();
        frame[16..18].copy_from_slice(&((40 + step) as u16).to_be_bytes());
        packets.push(Packet { time_us: 1_700_000_001_000_000 + at, data: frame, original_bytes });
    }
    let row = &read_packets(&packets).connections[0];
    assert_eq!(row.responder.unique_payload_bytes, count * u64::from(step));
    assert!(count * u64::from(step) > 1 << 32);
    assert_eq!(row.responder.retransmitted_segments + row.responder.out_of_order_segments, 0);
}

#[test]
fn syn_and_fin_hold_a_number_each() {
    let rows = read(&[
        tcp(true, "S", 100, 0, 0),
        tcp(true, "S", 100, 0, 0),
        tcp(false, "SA", 500, 101, 0),
        tcp(true, "A", 101, 501, 5),
        tcp(true, "AF", 106, 501, 0),
        tcp(true, "AF", 106, 501, 0),
        // The data and the FIN in one.
        tcp(true, "AF", 101, 501, 5),
    ])
    .connections;
    let originator = &rows[0].originator;
    assert_eq!(rows.len(), 1);
    assert_eq!((originator.syn_segments, originator.fin_segments), (2, 3));
    assert_eq!(originator.unique_payload_bytes, 5);
    assert_eq!(originator.retransmitted_segments, 3);
    assert_eq!(originator.retransmitted_bytes, 5);
    assert_eq!(originator.retransmitted_syn_fin, 3);
    assert_eq!(originator.out_of_order_segments, 0);
}

#[test]
fn keep_alives_are_not_retransmissions() {
    let rows = read(&with(&[
        tcp(true, "A", 101, 501, 10),
        tcp(false, "A", 501, 111, 0),
        // One below the next number, all acknowledged: without and with a byte.
        tcp(true, "A", 110, 501, 0),
        tcp(true, "A", 110, 501, 1),
        tcp(false, "A", 501, 111, 0),
    ]))
    .connections;
    let originator = &rows[0].originator;
    assert_eq!(originator.keep_alive_segments, 2);
    assert_eq!(originator.retransmitted_segments, 0);
    assert_eq!(originator.unique_payload_bytes, 10);
    // The same byte while it is not acknowledged is one.
    let rows = read(&with(&[tcp(true, "A", 101, 501, 1), tcp(true, "A", 101, 501, 1)])).connections;
    assert_eq!(rows[0].originator.keep_alive_segments, 0);
    assert_eq!(rows[0].originator.retransmitted_segments, 1);
}

#[test]
fn zero_window_probes_are_not_data() {
    let start = with(&[
        tcp(true, "A", 101, 501, 100),
        tcp(false, "A", 501, 201, 0).window(0),
        tcp(true, "A", 201, 501, 1),
        tcp(false, "A", 501, 201, 0).window(0),
        tcp(true, "A", 201, 501, 1),
    ]);
    let mut refused = start.clone();
    refused.extend([tcp(false, "A", 501, 201, 0).window(5000), tcp(true, "A", 201, 501, 50)]);
    let row = &read(&refused).connections[0];
    assert_eq!(row.originator.zero_window_probes, 2);
    assert_eq!(row.originator.unique_payload_bytes, 150);
    assert_eq!(row.originator.retransmitted_segments, 0);
    // Where the byte was taken, the data go on after it.
    let mut taken = start;
    taken.extend([tcp(false, "A", 501, 202, 0).window(5000), tcp(true, "A", 202, 501, 49)]);
    let row = &read(&taken).connections[0];
    assert_eq!(row.originator.unique_payload_bytes, 150);
    assert_eq!((row.originator.retransmitted_segments, row.originator.out_of_order_segments), (0, 0));
}

#[test]
fn partial_overlaps_and_late_data() {
    let row = &read(&with(&[
        tcp(false, "A", 501, 101, 100),
        tcp(false, "A", 551, 101, 100),
        tcp(false, "A", 751, 101, 100),
        tcp(false, "A", 651, 101, 100),
    ]))
    .connections[0];
    assert_eq!(row.responder.unique_payload_bytes, 350);
    assert_eq!((row.responder.retransmitted_segments, row.responder.retransmitted_bytes), (1, 50));
    assert_eq!(row.responder.out_of_order_segments, 1);
}

#[test]
fn a_new_initial_number_is_a_new_connection() {
    let mut list = with(&[tcp(true, "AF", 101, 501, 0), tcp(false, "AF", 501, 102, 0), tcp(true, "A", 102, 502, 0)]);
    list.extend([tcp(true, "S", 9000, 0, 0), tcp(false, "SA", 7000, 9001, 0), tcp(true, "A", 9001, 7001, 3)]);
    // Reset, and again; the last one without any close before.
    list.extend([tcp(false, "R", 7001, 0, 0), tcp(true, "S", 20_000, 0, 0), tcp(true, "S", 30_000, 0, 0)]);
    let rows = read(&list).connections;
    let shape: Vec<_> =
        rows.iter().map(|row| (row.complete, row.reset, row.originator.packets + row.responder.packets)).collect();
    assert_eq!(shape, [(true, false, 6), (false, true, 4), (false, false, 1), (false, false, 1)]);
}

#[test]
fn a_refused_syn_sent_again_is_one_connection() {
    let rows = read(&[
        tcp(true, "S", 100, 0, 0),
        tcp(false, "RA", 0, 101, 0),
        tcp(true, "S", 100, 0, 0),
        tcp(false, "RA", 0, 101, 0),
    ])
    .connections;
    assert_eq!(rows.len(), 1);
    assert!(rows[0].reset);
    assert_eq!((rows[0].originator.syn_segments, rows[0].responder.rst_segments), (2, 2));
}

#[test]
fn both_ends_may_open_at_once() {
    let rows = read(&[
        tcp(true, "S", 100, 0, 0),
        tcp(false, "S", 500, 0, 0),
        tcp(true, "SA", 100, 501, 0),
        tcp(false, "SA", 500, 101, 0),
    ])
    .connections;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].originator_port, 40000);
}

#[test]
fn capture_from_the_middle() {
    let rows =
        read(&[tcp(false, "A", 900, 50, 100), tcp(true, "A", 50, 1000, 0), tcp(false, "A", 800, 50, 100)]).connections;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].originator_port, 80);
    assert_eq!(rows[0].originator.unique_payload_bytes, 200);
    assert_eq!(rows[0].originator.out_of_order_segments, 1);
}

#[test]
fn udp_rows_end_after_silence() {
    let mut packets = made::paced([made::udp(true, 30), made::udp(false, 100), made::udp(true, 30)]);
    packets[2].time_us = packets[1].time_us + 60_000_000;
    assert_eq!(read_packets(&packets).connections.len(), 1);
    packets[2].time_us += 1;
    let rows = read_packets(&packets).connections;
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].originator.payload_bytes, rows[0].responder.payload_bytes), (30, 100));
    assert_eq!(rows[0].responder.bytes, 128);
}

#[test]
fn super_packets_by_the_segment_size_of_the_syns() {
    let list = [
        tcp(true, "S", 100, 0, 0).mss(1000),
        tcp(false, "SA", 500, 101, 0).mss(1460),
        tcp(false, "A", 501, 101, 3000),
        tcp(false, "A", 3501, 101, 3001),
        tcp(false, "A", 6502, 101, 1400),
    ];
    let summary = read(&list).summary;
    // 1400 + 40 bytes are below the MTU, so one packet whatever the segment size.
    assert_eq!((summary.super_packets, summary.wire_packets), (2, 2 + 3 + 4 + 1));
    // Without SYNs, by the MTU: 3000 / 1460.
    let summary = read(&list[2..3]).summary;
    assert_eq!((summary.super_packets, summary.wire_packets), (1, 3));
}

/// Linux writes a total length of 0 above 64 KiB.
#[test]
fn a_total_length_of_zero_is_the_frames() {
    let mut packets = segments(&[tcp(false, "A", 501, 101, 10)]);
    packets[0].data[16..18].copy_from_slice(&[0, 0]);
    packets[0].original_bytes = 14 + 40 + 100_000;
    let row = &read_packets(&packets).connections[0];
    assert_eq!((row.originator.payload_bytes, row.originator.bytes), (100_000, 100_040));
    assert_eq!(row.originator.wire_packets, 69);
}

#[test]
fn a_snap_length_changes_no_count() {
    let whole = segments(&with(&[tcp(true, "A", 101, 501, 700), tcp(false, "A", 501, 801, 1460)]));
    let mut cut = whole.clone();
    for packet in &mut cut {
        packet.data.truncate(54);
    }
    assert_eq!(read_packets(&whole).connections, read_packets(&cut).connections);
    for packet in &mut cut {
        packet.data.truncate(40);
    }
    let summary = read_packets(&cut).summary;
    assert_eq!(summary.skipped.get("tcp_header_cut_off"), Some(&5));
}
