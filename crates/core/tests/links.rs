//! One IP packet under every link-layer header, and lengths that headers leave open.

mod made;

use made::{pcap, tcp, Packet};
use twinbed_core::flow::{connections, Capture, Options};

fn read(data: Vec<u8>, original_bytes: u32, link: u32) -> Capture {
    let packets = [Packet { time_us: 1_700_000_000_000_000, data, original_bytes }];
    connections(&pcap(&packets, false, false, link), &Options::default()).expect("a capture")
}

fn under(header: &[u8], link: u32) -> Capture {
    let ip = &tcp(true, "A", 1, 1, 100).frame()[14..];
    let data: Vec<u8> = header.iter().chain(ip).copied().collect();
    let original_bytes = data.len() as u32;
    read(data, original_bytes, link)
}

#[test]
fn every_link_header() {
    let ethernet = |tail: &[u8]| [&[2; 12], tail].concat();
    let sll = |ether_type: [u8; 2]| [&[0; 14][..], &ether_type].concat();
    let sll2 = |ether_type: [u8; 2]| [&ether_type[..], &[0; 18]].concat();
    let cases = [
        (ethernet(&[8, 0]), 1),
        (ethernet(&[0x81, 0, 0, 5, 8, 0]), 1),
        (ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]), 1),
        (sll([8, 0]), 113),
        (sll2([8, 0]), 276),
        (vec![2, 0, 0, 0], 0),
        (vec![0, 0, 0, 2], 0),
        (vec![0, 0, 0, 2], 108),
        (vec![], 101),
        (vec![], 12),
        (vec![], 228),
    ];
    for (header, link) in cases {
        let Capture { connections: rows, summary } = under(&header, link);
        assert_eq!((rows.len(), summary.non_ip_packets), (1, 0), "link type {link}, {header:?}");
        let side = &rows[0].originator;
        assert_eq!((side.bytes, side.payload_bytes), (140, 100), "link type {link}, {header:?}");
        assert_eq!(side.frame_bytes, 140 + header.len() as u64);
        assert!(summary.skipped.is_empty() && summary.notes.is_empty());
    }
    let arp = under(&ethernet(&[8, 6]), 1).summary;
    assert_eq!((arp.non_ip_packets, arp.wire_packets), (1, 1));
    let wifi = under(&[], 105).summary;
    assert_eq!(wifi.skipped.get("link_type_not_read"), Some(&1));
}

/// Frames are padded to 60 bytes; the IP length says what is data.
#[test]
fn padding_is_not_payload() {
    let mut data = tcp(true, "A", 1, 1, 0).frame();
    data.resize(60, 0);
    let capture = read(data, 60, 1);
    let side = &capture.connections[0].originator;
    assert_eq!((side.payload_bytes, side.bytes, side.frame_bytes, side.pure_acks), (0, 40, 60, 1));
}

fn ipv6(payload_length: u16, next_header: u8, rest: &[u8]) -> Vec<u8> {
    let mut data = [&[2; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    data.extend(payload_length.to_be_bytes());
    data.extend([next_header, 64]);
    data.extend([0x20; 16]);
    data.extend([0xfd; 16]);
    data.extend(rest);
    data
}

fn tcp_header() -> Vec<u8> {
    tcp(true, "A", 1, 1, 0).frame()[34..54].to_vec()
}

/// BIG TCP: a payload length of 0, with the jumbo option or without.
#[test]
fn ipv6_above_64_kib() {
    let data = ipv6(0, 6, &tcp_header());
    let rows = read(data, 14 + 40 + 20 + 150_000, 1).connections;
    assert_eq!((rows[0].originator.payload_bytes, rows[0].originator.bytes), (150_000, 150_060));
    let option = [&[6, 0, 0xc2, 4][..], &(8u32 + 20 + 150_000).to_be_bytes()].concat();
    let data = ipv6(0, 0, &[option, tcp_header()].concat());
    let rows = read(data, 14 + 40 + 8 + 20 + 150_000, 1).connections;
    assert_eq!((rows[0].originator.payload_bytes, rows[0].originator.bytes), (150_000, 150_068));
}

#[test]
fn fragments_without_a_transport_header() {
    let first = ipv6(8 + 20 + 16, 44, &[&[6, 0, 0, 1, 0, 0, 0, 9][..], &tcp_header(), &[0; 16]].concat());
    let length = first.len() as u32;
    assert_eq!(read(first, length, 1).connections[0].originator.payload_bytes, 16);
    let later = ipv6(8 + 20, 44, &[&[6, 0, 0, 0x28, 0, 0, 0, 9][..], &tcp_header()].concat());
    let length = later.len() as u32;
    let capture = read(later, length, 1);
    assert!(capture.connections.is_empty());
    assert_eq!(capture.summary.skipped.get("ip_fragment_without_transport_header"), Some(&1));
    assert_eq!(capture.summary.protocols.get(&6), Some(&1));
}

/// A header may claim more than the frame had: it is believed, and said.
#[test]
fn lengths_beyond_the_frame_are_noted() {
    let mut data = tcp(true, "A", 1, 1, 10).frame();
    data[16..18].copy_from_slice(&1000u16.to_be_bytes());
    let capture = read(data, 64, 1);
    assert_eq!(capture.connections[0].originator.payload_bytes, 960);
    assert_eq!(capture.summary.notes.get("ip_length_above_frame_length"), Some(&1));
}
