//! What each fuzz target does with its bytes. `tests/fuzz_smoke.rs` runs the same on stable Rust.
#![allow(dead_code, reason = "each target uses one")]

use std::io::Read;
use twinbed_core::chain::{compare, tally, tally_slice, walk, Chain, Cut};
use twinbed_core::syscall::Architecture;

use twinbed_core::capture::{read_merged, read_slice, read_stream, Decompressed};
use twinbed_core::proc::{kernel_log, Counters};
use twinbed_core::readers::matching::{match_captures, Options as PairOptions};
use twinbed_core::readers::observer::tls::hello;
use twinbed_core::readers::tcptrace::{Engine, Options, Row};
use twinbed_core::readers::udp::{streams, Headers, Options as UdpOptions, Width};
use twinbed_core::readers::{self, http, observer, packetisation, stalls, zeek};
use twinbed_core::reports::{ab as ab_report, ab_requests, wrk as wrk_report};
use twinbed_core::stations::Stations;

/// Link types that frames are read of.
const LINKS: [u8; 8] = [1, 113, 20, 101, 0, 9, 228, 50];

/// `data` as it is, and as the packets of a pcap file: whole records, and as one packet of a link type that the first byte says.
fn captures(data: &[u8]) -> [Vec<u8>; 3] {
    let link = LINKS[usize::from(data.first().copied().unwrap_or_default()) % LINKS.len()];
    // 20 stands for 276 = 256 + 20: Linux's cooked header, version 2.
    let header = [&PCAP_HEADER[..], &[link, u8::from(link == 20), 0, 0]].concat();
    let packet = data.get(1..).unwrap_or_default();
    let length = (packet.len() as u32).to_le_bytes();
    let record = [&[0; 8], &length[..], &length[..], packet].concat();
    [data.to_vec(), [&header[..], data].concat(), [header, record].concat()]
}

const PCAP_HEADER: [u8; 20] = *b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0";

/// Frames as a stream gives them are those that a slice gives, and they lie in the file.
fn reads_alike(data: &[u8]) {
    let (mut bytes, mut frames) = (0u64, Vec::new());
    let whole = read_slice(data, |frame| {
        bytes += frame.data.len() as u64;
        frames.push((frame.time_ns, frame.original_bytes, frame.data.len()));
    });
    assert!(bytes <= data.len() as u64);
    let mut again = Vec::new();
    let stream =
        read_stream(Trickle(data), |frame| again.push((frame.time_ns, frame.original_bytes, frame.data.len())));
    assert_eq!(frames, again);
    assert_eq!(whole.is_ok(), stream.is_ok());
    let mut merged = 0;
    let ended = read_merged([data, data], |_| merged += 1);
    assert!(ended.is_err() || merged == 2 * frames.len());
}

/// Gives a few bytes at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(buffer.len()).min(7);
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// Any bytes, and the same with a pcap header in front.
pub fn pcap(data: &[u8]) {
    for capture in captures(data) {
        reads_alike(&capture);
    }
}

/// Any bytes, and the same with a section and an interface in front.
pub fn pcapng(data: &[u8]) {
    reads_alike(data);
    let mut file =
        b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0".to_vec();
    file.extend(b"\x01\0\0\0\x14\0\0\0\x01\0\0\0\0\0\x04\0\x14\0\0\0");
    file.extend(data);
    reads_alike(&file);
}

/// A bomb must not be unpacked into memory: what is read goes by.
pub fn compressed(data: &[u8]) {
    const MOST: u64 = 1 << 24;
    let Ok(reader) = Decompressed::new(data) else { return };
    let _ = read_stream(reader.take(MOST), |_| {});
}

/// Packets are in one row at most, and what was sent again was sent.
pub fn statistics(data: &[u8]) {
    for capture in captures(data) {
        for options in [Options::default(), Options { tunnels: true, max_connections: 2, ..Options::default() }] {
            let mut rows: Vec<Row> = Vec::new();
            let mut engine = Engine::new(options);
            let mut sink = |row| rows.push(row);
            let Ok(origin) = read_slice(&capture, |frame| engine.frame(frame, &mut sink)) else { continue };
            let summary = engine.finish(origin, &mut sink);
            assert!(rows.iter().map(|row| row.total_packets).sum::<u64>() <= summary.packets);
            for row in &rows {
                assert!(row.total_packets > 0 && row.a.total_packets + row.b.total_packets == row.total_packets);
                for side in [&row.a, &row.b] {
                    assert!(
                        side.actual_data_pkts <= side.total_packets
                            && side.rare().rexmt_data_pkts <= side.total_packets
                    );
                    assert!(side.rtt_min <= side.rtt_max && side.min_segm_size <= side.max_segm_size);
                }
            }
        }
    }
}

/// Packets are in one row at most.
pub fn connections(data: &[u8]) {
    for capture in captures(data) {
        for ignore_checksums in [false, true] {
            let options = zeek::Options {
                ignore_checksums,
                unfinished_are_bad: !ignore_checksums,
                tunnels: !ignore_checksums,
                ..zeek::Options::default()
            };
            let Ok(log) = readers::read_slice(zeek::Log::new(options), &capture) else { continue };
            let packets: u64 = log.rows.iter().map(|row| row.originator.packets + row.responder.packets).sum();
            assert!(packets <= log.summary.packets && log.rows.len() as u64 == log.summary.connections);
        }
    }
}

/// What is on the wire is no less than what was captured, nothing is sent again more often than sent, each packet is in
/// one exchange at most, stalls are longer than their timeouts, and shares of blocks are shares.
pub fn packets(data: &[u8]) {
    for capture in captures(data) {
        if let Ok(cut) = readers::read_slice(packetisation::Analyzer::new(Default::default()), &capture) {
            for side in cut.connections.iter().flat_map(|row| [&row.originator, &row.responder]) {
                let (counts, disorder) = (&side.counts, &side.disorder);
                assert!(counts.wire_packets >= counts.packets && counts.wire_data_packets >= counts.data_segments);
                let late = disorder.retransmitted_packets + disorder.recovered_packets + disorder.reordered_packets;
                assert!(late <= counts.wire_data_packets && side.bursts.packets <= counts.wire_data_packets);
            }
        }
        if let Ok(requests) = readers::read_slice(http::Analyzer::new(Default::default()), &capture) {
            let packets: u64 = requests.exchanges.iter().map(|row| row.client.packets + row.server.packets).sum();
            assert!(packets <= requests.summary.packets);
            assert!(requests.exchanges.iter().all(|row| (row.connection as usize) < requests.connections.len()));
        }
        if let Ok(found) = readers::read_slice(stalls::Analyzer::new(true), &capture) {
            let sent: u64 = found.rows.iter().map(|row| row.retransmissions + row.probes + row.returned_packets).sum();
            assert!(sent <= found.packets);
            for row in &found.rows {
                assert!((stalls::LEAST_NS..=stalls::MOST_NS).contains(&row.timeout_ns));
                assert!(row.duration_ns > stalls::TIMEOUTS * row.timeout_ns);
            }
        }
        if let Ok(seen) = readers::read_slice(observer::Observer::default(), &capture) {
            for row in &seen.windows {
                let shares = [row.burst_share, row.full_share, row.push_share, row.ack_share, row.retransmitted_share];
                assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
                assert!(row.gap_p10_s <= row.gap_p50_s && row.gap_p50_s <= row.gap_p90_s && row.bytes_sd >= 0.0);
            }
            assert!(seen.hosts.iter().all(|host| host.syns > 0));
        }
    }
}

/// The hello of a client or server as the first bytes that they send: fingerprints have their form.
pub fn hello(data: &[u8]) {
    let is_hash = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if let Some(hello::Client { ja3, ja4 }) = hello::client(data) {
        let parts: Vec<&str> = ja4.split('_').collect();
        assert!(is_hash(&ja3, 32) && parts.len() == 3 && parts[0].len() == 10, "{ja3} {ja4}");
        assert!(is_hash(parts[1], 12) && is_hash(parts[2], 12), "{ja4}");
    }
    if let Some(ja3s) = hello::server(data) {
        assert!(is_hash(&ja3s, 32), "{ja3s}");
    }
}

const RAW_IP_HEADER: [u8; 24] = *b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0\x65\0\0\0";

/// Every datagram expected has come or is lost, and every packet is in one row.
pub fn udp(data: &[u8]) {
    for headers in [Headers::Recognised, Headers::Forced(Width::Bits32), Headers::Forced(Width::Bits64)] {
        let options = UdpOptions { headers, ..UdpOptions::default() };
        let Ok(flows) = streams(data, &options) else { continue };
        assert_eq!(flows.rows.iter().map(|row| row.carried.packets).sum::<u64>(), flows.udp_packets);
        for statistics in flows.rows.iter().filter_map(|row| row.statistics.as_ref().ok()) {
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

/// Rows are in order, and of connections that are there.
pub fn stations(data: &[u8]) {
    if let Ok(stations) = Stations::parse(data) {
        assert!(stations.rows.is_sorted_by_key(|row| row.time_ns));
        let connections = stations.connections.len();
        assert!(stations.rows.iter().all(|row| row.connection.is_none_or(|number| (number as usize) < connections)));
        assert!(stations.rows.len() as u64 + stations.unknown <= data.len() as u64);
    }
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
        let walked = walk(&Chain::new(&program.transitions, 2, 0.0), &program.transitions, None);
        assert_eq!(walked.invalid, 0);
        assert!(walked.log10_valid <= 0.0);
        let distance = compare(&program.transitions, &programs[0].transitions, 1, 0.01).distance();
        assert!(distance.is_none_or(|distance| (0.0..=1.0).contains(&distance)));
    }
}
