//! One IP packet under every link-layer header, and lengths that headers leave open.

mod engines;
mod made;
mod whole;

use engines::Capture;
use made::{pcap, tcp, Packet};
use twinbed_core::readers::packetisation::Analyzer;
use whole::whole;

fn read(data: Vec<u8>, original_bytes: u32, link: u32) -> Capture {
    let packets = [Packet { time_us: 1_700_000_000_000_000, data, original_bytes }];
    engines::read(&pcap(&packets, false, false, link))
}

/// Frame, IP and payload bytes of the one packet, on which both engines agree.
fn lengths(capture: &Capture) -> [u64; 3] {
    let counted = capture.counted();
    assert_eq!(counted, capture.logged());
    assert_eq!(counted.len(), 1);
    let [packets, lengths @ ..] = counted.into_values().next().expect("one direction");
    assert_eq!(packets, 1);
    lengths
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
        let capture = under(&header, link);
        assert_eq!(lengths(&capture), [140 + header.len() as u64, 140, 100], "link type {link}, {header:?}");
        let Capture { summary, log_summary, .. } = capture;
        assert!(summary.not_ip.is_empty() && log_summary.not_ip.is_empty());
        assert!(summary.skipped.is_empty() && summary.notes.is_empty());
        assert!(log_summary.skipped.is_empty() && log_summary.notes.is_empty());
    }
    let arp = under(&ethernet(&[8, 6]), 1);
    assert_eq!((arp.summary.not_ip.get("arp"), arp.log_summary.not_ip.get("arp")), (Some(&1), Some(&1)));
    let zigbee = under(&[], 195);
    for skipped in [zigbee.summary.skipped, zigbee.log_summary.skipped] {
        assert_eq!(skipped.get("link_type_ieee802_15_4_not_read"), Some(&1));
    }
}

/// Frames are padded to 60 bytes; the IP length says what is data.
#[test]
fn padding_is_not_payload() {
    let mut data = tcp(true, "A", 1, 1, 0).frame();
    data.resize(60, 0);
    let capture = read(data, 60, 1);
    assert_eq!(lengths(&capture), [60, 40, 0]);
    assert_eq!(capture.flows[0].a.pure_acks_sent, 1);
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
    assert_eq!(lengths(&read(data, 14 + 40 + 20 + 150_000, 1)), [150_074, 150_060, 150_000]);
    let option = [&[6, 0, 0xc2, 4][..], &(8u32 + 20 + 150_000).to_be_bytes()].concat();
    let data = ipv6(0, 0, &[option, tcp_header()].concat());
    assert_eq!(lengths(&read(data, 14 + 40 + 8 + 20 + 150_000, 1)), [150_082, 150_068, 150_000]);
}

/// Linux writes a total length of 0 above 64 KiB.
#[test]
fn a_total_length_of_zero_is_the_frames() {
    let mut data = tcp(false, "A", 501, 101, 10).frame();
    data[16..18].copy_from_slice(&[0, 0]);
    let packets = [Packet { time_us: 1, original_bytes: 14 + 40 + 100_000, data }];
    let file = pcap(&packets, false, false, 1);
    assert_eq!(lengths(&engines::read(&file)), [100_054, 100_040, 100_000]);
    let cut = whole(Analyzer::new(Default::default()), &file);
    // 100,000 / 1460 = 68.5
    assert_eq!(cut.connections[0].originator.counts.wire_packets, 69);
}

#[test]
fn a_snap_length_changes_no_length() {
    let whole = made::segments(&[tcp(true, "A", 101, 501, 700), tcp(false, "A", 501, 801, 1460)]);
    let counted = |snap: usize| {
        let mut cut = whole.clone();
        cut.iter_mut().for_each(|packet| packet.data.truncate(snap));
        engines::read(&pcap(&cut, false, false, 1))
    };
    let (all, headers) = (counted(2000), counted(54));
    assert_eq!(all.counted(), headers.counted());
    assert_eq!((all.counted(), headers.counted()), (all.logged(), headers.logged()));
    assert_eq!((headers.flows[0].a.truncated_data, headers.flows[0].b.truncated_packets), (700, 1));
    let less = counted(40);
    for skipped in [less.summary.skipped, less.log_summary.skipped] {
        assert_eq!(skipped.get("tcp_header_cut_off"), Some(&2));
    }
}

#[test]
fn fragments_without_a_transport_header() {
    let first = ipv6(8 + 20 + 16, 44, &[&[6, 0, 0, 1, 0, 0, 0, 9][..], &tcp_header(), &[0; 16]].concat());
    let length = first.len() as u32;
    assert_eq!(lengths(&read(first, length, 1))[2], 16);
    let later = ipv6(8 + 20, 44, &[&[6, 0, 0, 0x28, 0, 0, 0, 9][..], &tcp_header()].concat());
    let length = later.len() as u32;
    let capture = read(later, length, 1);
    assert!(capture.flows.is_empty() && capture.log.is_empty());
    for skipped in [&capture.summary.skipped, &capture.log_summary.skipped] {
        assert_eq!(skipped.get("ip_fragment_without_transport_header"), Some(&1));
    }
    assert_eq!(capture.summary.protocols.get(&6), Some(&1));
}

/// A header may claim more than the frame had: it is believed, and said.
#[test]
fn lengths_beyond_the_frame_are_noted() {
    let mut data = tcp(true, "A", 1, 1, 10).frame();
    data[16..18].copy_from_slice(&1000u16.to_be_bytes());
    let capture = read(data, 64, 1);
    assert_eq!(lengths(&capture), [64, 1000, 960]);
    for notes in [&capture.summary.notes, &capture.log_summary.notes] {
        assert_eq!(notes.get("ip_length_above_frame_length"), Some(&1));
    }
}

/// A snap length in the file's header cuts nothing that a record holds, and an MSS has 16 bits without a sign: tcptrace says
/// 258 bytes truncated and an MSS of 4294967255 here (docs/flows.md).
#[test]
fn records_longer_than_the_snap_length_and_a_large_mss() {
    let packets = made::segments(&[
        tcp(true, "S", 1, 0, 0).mss(65495),
        tcp(false, "SA", 1, 2, 0).mss(40000),
        tcp(true, "A", 2, 2, 300),
    ]);
    let mut file = pcap(&packets, false, false, 1);
    file[16..20].copy_from_slice(&96u32.to_le_bytes());
    let capture = engines::read(&file);
    let row = &capture.flows[0];
    assert_eq!((row.a.mss_requested, row.b.mss_requested), (Some(65495), Some(40000)));
    assert_eq!((row.a.actual_data_bytes, row.a.truncated_data, row.a.truncated_packets), (300, 0, 0));
}
