//! What each fuzz target does with its bytes. `tests/fuzz_smoke.rs` runs the same on stable Rust.
#![allow(dead_code, reason = "each target uses one")]

use twinbed_core::datagrams::{streams, Headers, Options as UdpOptions, Width};
use twinbed_core::flow::{connections, connections_from, Options};
use twinbed_core::http::{ab as ab_report, ab_requests, wrk as wrk_report};
use twinbed_core::packetisation::packetisation;
use twinbed_core::pair::{match_captures, Options as PairOptions};
use twinbed_core::proc::{kernel_log, Counters};
use twinbed_core::request::requests;

/// What is on the wire is no less than what was captured, nothing is sent again more often than sent, and each packet is in
/// one exchange at most.
fn packets(data: &[u8]) {
    if let Ok(found) = packetisation(data, &Default::default()) {
        for side in found.connections.iter().flat_map(|row| [&row.originator, &row.responder]) {
            let (counts, disorder) = (&side.counts, &side.disorder);
            assert!(counts.wire_packets >= counts.packets && counts.wire_data_packets >= counts.data_segments);
            let late = disorder.retransmitted_packets + disorder.recovered_packets + disorder.reordered_packets;
            assert!(late <= counts.wire_data_packets && side.bursts.packets <= counts.wire_data_packets);
        }
    }
    if let Ok(found) = requests(data, &Default::default()) {
        let packets: u64 = found.exchanges.iter().map(|row| row.client.packets + row.server.packets).sum();
        assert!(packets <= found.summary.packets);
        assert!(found.exchanges.iter().all(|row| (row.connection as usize) < found.connections.len()));
    }
}

/// Rows must not claim more than the capture has, and a stream must give what a slice gives.
fn capture(data: &[u8]) {
    packets(data);
    let options = Options::default();
    let whole = connections(data, &options);
    match (&whole, connections_from(data, &options)) {
        (Ok(capture), Ok(streamed)) => {
            assert_eq!(*capture, streamed);
            let packets: u64 =
                capture.connections.iter().map(|row| row.originator.packets + row.responder.packets).sum();
            assert!(packets <= capture.summary.packets);
            for row in &capture.connections {
                assert!(row.originator.packets + row.responder.packets > 0);
                assert!(row.duration_s().is_none_or(|duration_s| duration_s >= 0.0));
                for side in [&row.originator, &row.responder] {
                    assert!(side.unique_payload_bytes + side.retransmitted_bytes <= side.payload_bytes);
                    assert!(side.payload_bytes <= side.bytes && side.wire_packets >= side.packets);
                }
            }
        }
        (Err(error), Err(_)) => assert!(!error.to_string().is_empty()),
        (one, other) => panic!("slice {one:?}, stream {other:?}"),
    }
}

/// Any bytes, and the same with a pcap header in front.
pub fn pcap(data: &[u8]) {
    capture(data);
    let mut file = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0".to_vec();
    file.extend(match data.first().map(|first| first % 6) {
        Some(1) => [113, 0, 0, 0],
        Some(2) => [20, 1, 0, 0],
        Some(3) => [101, 0, 0, 0],
        Some(4) => [0, 0, 0, 0],
        Some(5) => [228, 0, 0, 0],
        _ => [1, 0, 0, 0],
    });
    file.extend(data);
    capture(&file);
}

/// Any bytes, and the same with a section and an interface in front.
pub fn pcapng(data: &[u8]) {
    capture(data);
    let mut file =
        b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0".to_vec();
    file.extend(b"\x01\0\0\0\x14\0\0\0\x01\0\0\0\0\0\x04\0\x14\0\0\0");
    file.extend(data);
    capture(&file);
}

const RAW_IP_HEADER: [u8; 24] = *b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0\x65\0\0\0";

/// Every datagram expected has come or is lost, and every packet is in one row.
pub fn udp(data: &[u8]) {
    for headers in [Headers::Recognised, Headers::Forced(Width::Bits32), Headers::Forced(Width::Bits64)] {
        let options = UdpOptions { headers, ..UdpOptions::default() };
        let Ok(found) = streams(data, &options) else { continue };
        assert_eq!(found.rows.iter().map(|row| row.carried.packets).sum::<u64>(), found.udp_packets);
        for statistics in found.rows.iter().filter_map(|row| row.statistics.as_ref().ok()) {
            let counts = statistics.sequence;
            assert_eq!(counts.expected, counts.distinct + counts.lost);
            assert!((0.0..=1.0).contains(&counts.loss()) && counts.loss_burst_max <= counts.lost);
        }
    }
}

/// The first byte says where the second capture begins; every packet comes to exactly one end.
pub fn pair(data: &[u8]) {
    let Some((&cut, rest)) = data.split_first() else { return };
    let (head, tail) = rest.split_at(rest.len() * usize::from(cut) / 256);
    let made = [&RAW_IP_HEADER[..], tail].concat();
    for (first, second) in [(head, tail), (rest, rest), (rest, &made), (&made, rest)] {
        let Ok(pairing) = match_captures(first, second, &PairOptions::default()) else { continue };
        for row in &pairing.rows {
            let sent = row.lost.packets + row.partly_lost.packets + row.edge_sent.packets;
            assert_eq!(row.sent.packets, row.matched_sent_packets + sent);
            let arrived = row.appeared.packets + row.duplicated.packets + row.edge_arrived.packets;
            assert_eq!(row.arrived.packets, row.matched_arrived_packets + arrived);
        }
    }
}

pub fn ab(data: &[u8]) {
    let _ = ab_report::parse(data);
    let _ = ab_report::parse_percentiles(data);
    if let Ok(requests) = ab_requests::parse(data) {
        assert!(requests.len() <= data.len());
    }
}

pub fn wrk(data: &[u8]) {
    let _ = wrk_report::parse(data);
}

pub fn counters(data: &[u8]) {
    if let Ok(counters) = Counters::parse(data) {
        for difference in counters.differences() {
            assert!(difference.difference.is_none_or(|difference| difference >= 0.0));
        }
        assert!(counters.intervals().all(|interval| interval.difference.is_some() || interval.note.is_some()));
    }
    let _ = kernel_log(data);
}
