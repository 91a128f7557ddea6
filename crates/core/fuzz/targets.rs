//! What each fuzz target does with its bytes. `tests/fuzz_smoke.rs` runs the same on stable Rust.
#![allow(dead_code, reason = "each target uses one")]

use twinbed_core::chain::{compare, tally, tally_slice, walk, Chain, Cut};
use twinbed_core::flow::{connections, connections_from, Options};
use twinbed_core::http::{ab as ab_report, ab_requests, wrk as wrk_report};
use twinbed_core::proc::{kernel_log, Counters};
use twinbed_core::syscall::Architecture;

/// Rows must not claim more than the capture has, and a stream must give what a slice gives.
fn capture(data: &[u8]) {
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

/// A trace of system calls, of whatever kind: a stream gives what a slice gives, no call is in two programs, and a chain has
/// its own transitions.
pub fn system_calls(data: &[u8]) {
    let cut = Cut { skip: 0, limit: None };
    let whole = tally_slice(data, Architecture::X86_64, cut);
    let streamed = tally(data, Architecture::X86_64, cut);
    let (programs, source) = match (whole, streamed) {
        (Ok(whole), Ok(streamed)) => {
            assert_eq!(whole, streamed);
            whole
        }
        // A perf.data file cannot be read as a stream.
        (Ok(whole), Err(_)) => whole,
        (Err(error), Err(_)) => {
            assert!(!error.to_string().is_empty());
            return;
        }
        (Err(error), Ok(_)) => panic!("slice {error:?}"),
    };
    let calls = programs.iter().fold(0_u64, |sum, one| sum.saturating_add(one.transitions.calls()));
    assert!(calls <= source.calls);
    for program in &programs {
        let found = walk(&Chain::new(&program.transitions, 2, 0.0), &program.transitions, None);
        assert_eq!(found.invalid, 0);
        assert!(found.log10_valid <= 0.0);
        let distance = compare(&program.transitions, &programs[0].transitions, 1, 0.01).distance();
        assert!(distance.is_none_or(|distance| (0.0..=1.0).contains(&distance)));
    }
}
