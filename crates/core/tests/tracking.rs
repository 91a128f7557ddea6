//! Which packets are one connection, as packetisation and requests follow them: each expectation follows from the sequence
//! numbers written here. Connections without payload have no row, so each has some.

mod made;
mod whole;

use made::{pcap, segments, tcp, Packet, Tcp};
use twinbed_core::readers::packetisation::{Analyzer, Connection, Options};
use whole::whole;

const ETHERNET: u32 = 1;

fn read_packets(packets: &[Packet]) -> Vec<Connection> {
    whole(Analyzer::new(Options::default()), &pcap(packets, false, false, ETHERNET)).connections
}

/// Each connection's originator's port, packets and payload.
fn shape(list: &[Tcp]) -> Vec<(u16, u64, u64)> {
    let one = |row: Connection| {
        let (own, peer) = (row.originator.counts, row.responder.counts);
        (row.originator_port, own.packets + peer.packets, own.payload_bytes + peer.payload_bytes)
    };
    read_packets(&segments(list)).into_iter().map(one).collect()
}

#[test]
fn a_new_initial_number_is_a_new_connection() {
    let whole = [
        tcp(true, "S", 100, 0, 0),
        tcp(false, "SA", 500, 101, 0),
        tcp(true, "A", 101, 501, 10),
        tcp(true, "AF", 111, 501, 0),
        tcp(false, "AF", 501, 112, 0),
        tcp(true, "A", 112, 502, 0),
    ];
    let reset = [
        tcp(true, "S", 9000, 0, 0),
        tcp(false, "SA", 7000, 9001, 0),
        tcp(true, "A", 9001, 7001, 3),
        tcp(false, "R", 7001, 0, 0),
    ];
    // Without any close before the second one.
    let open = [tcp(true, "S", 20_000, 0, 4), tcp(true, "S", 30_000, 0, 5)];
    let list = [&whole[..], &reset, &open].concat();
    assert_eq!(shape(&list), [(40000, 6, 10), (40000, 4, 3), (40000, 1, 4), (40000, 1, 5)]);
}

#[test]
fn a_refused_syn_sent_again_is_one_connection() {
    let refused = [tcp(true, "S", 100, 0, 4), tcp(false, "RA", 0, 101, 0)];
    assert_eq!(shape(&[refused, refused].concat()), [(40000, 4, 8)]);
}

#[test]
fn both_ends_may_open_at_once() {
    let list = [
        tcp(true, "S", 100, 0, 0),
        tcp(false, "S", 500, 0, 0),
        tcp(true, "SA", 100, 501, 0),
        tcp(false, "SA", 500, 101, 0),
        tcp(true, "A", 101, 501, 7),
    ];
    assert_eq!(shape(&list), [(40000, 5, 7)]);
}

#[test]
fn a_syn_may_be_captured_after_what_it_leads_to() {
    let answer_first = [tcp(false, "SA", 500, 101, 0), tcp(true, "S", 100, 0, 0), tcp(true, "A", 101, 501, 7)];
    assert_eq!(shape(&answer_first), [(40000, 3, 7)]);
    let data_first = [tcp(true, "A", 101, 501, 7), tcp(true, "S", 100, 0, 0)];
    assert_eq!(shape(&data_first), [(40000, 2, 7)]);
}

#[test]
fn capture_from_the_middle() {
    let list = [tcp(false, "A", 900, 50, 100), tcp(true, "A", 50, 1000, 0), tcp(false, "A", 800, 50, 100)];
    assert_eq!(shape(&list), [(80, 3, 200)]);
}

#[test]
fn udp_rows_end_after_silence() {
    let mut packets = made::paced([made::udp(true, 30), made::udp(false, 100), made::udp(true, 30)]);
    packets[2].time_us = packets[1].time_us + 60_000_000;
    assert_eq!(read_packets(&packets).len(), 1);
    packets[2].time_us += 1;
    let rows = read_packets(&packets);
    assert_eq!(rows.len(), 2);
    let (own, peer) = (&rows[0].originator.counts, &rows[0].responder.counts);
    assert_eq!((own.payload_bytes, peer.payload_bytes, peer.bytes), (30, 100, 128));
}
