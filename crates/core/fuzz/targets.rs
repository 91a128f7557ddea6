//! What each fuzz target does with its bytes. `tests/fuzz_smoke.rs` runs the same on stable Rust.
#![allow(dead_code, reason = "each target uses one")]

use twinbed_core::flow::{connections, connections_from, Options};
use twinbed_core::http::{ab as ab_report, ab_requests, wrk as wrk_report};
use twinbed_core::packetisation::packetisation;
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
