//! iperf3's streams, against what iperf3 printed of them and by exact arithmetic.

mod made;

use made::{paced, pcap, Packet};
use proptest::prelude::*;
use twinbed_core::readers::udp::{
    streams, HeaderStatistics, Headers, Options, Row, Streams, Unread, Width, MAX_STREAMS,
};

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(bytes: &[u8]) -> Streams {
    streams(bytes, &Options::default()).expect("a capture")
}

fn data(bytes: &[u8]) -> Vec<(Row, HeaderStatistics)> {
    let rows = read(bytes).rows.into_iter();
    rows.filter_map(|row| row.statistics.clone().ok().map(|statistics| (row, statistics))).collect()
}

/// Every number is in `tests/golden/udp/NAME.iperf3.json` and, for `relay`, in its plan.
#[test]
fn loss_and_order_are_as_iperf3_says() {
    // File, then for each stream: expected, lost by iperf3, out of order by iperf3, really lost, doubled, reordered.
    type Stream = (u64, u64, u64, u64, u64, u64);
    let files: [(&str, &[Stream]); 4] = [
        ("relay", &[(250, 3, 4, 5, 2, 2)]),
        ("tbf", &[(188, 59, 0, 59, 0, 0)]),
        ("wide", &[(125, 1, 0, 1, 0, 0), (125, 2, 0, 2, 0, 0)]),
        ("reverse", &[(125, 0, 0, 0, 0, 0)]),
    ];
    for (name, expected) in files {
        let rows = data(&golden(&format!("udp/{name}.pcap")));
        let counts = |(_, statistics): &(Row, HeaderStatistics)| {
            let counts = statistics.sequence;
            let iperf3 = (counts.expected, counts.iperf3_lost, counts.iperf3_out_of_order);
            (iperf3.0, iperf3.1, iperf3.2, counts.lost, counts.duplicates, counts.reordered)
        };
        assert_eq!(rows.iter().map(counts).collect::<Vec<_>>(), expected, "{name}");
        let width = if name == "wide" { Width::Bits64 } else { Width::Bits32 };
        assert!(rows.iter().all(|(_, statistics)| statistics.width == width), "{name}");
    }
}

/// 20, 21 and 22 were dropped together; 120 was held back for three packets.
#[test]
fn bursts_and_extent_are_the_relays() {
    let (row, statistics) = data(&golden("udp/relay.pcap")).remove(0);
    let counts = statistics.sequence;
    assert_eq!((counts.loss_bursts, counts.loss_burst_max, counts.reordering_extent_max), (3, 3, Some(3)));
    assert_eq!((counts.lost_rfc3550, counts.first, counts.highest), (3, 1, 250));
    // 250 less 5 and 2 more of 1000 bytes, and the greeting of 4.
    assert_eq!((row.carried.packets, row.carried.payload_bytes), (248, 247_004));
}

/// iperf3's 2.6522 ms holds its own scheduling too; the queue's part is nearly all of it here.
#[test]
fn jitter_is_near_what_iperf3_says_where_a_queue_makes_it() {
    let (_, statistics) = data(&golden("udp/tbf.pcap")).remove(0);
    let jitter = statistics.jitter.expect("many datagrams").last_s;
    assert!((jitter / 2.652_218_459_3e-3 - 1.0).abs() < 0.01, "{jitter}");
}

#[test]
fn greetings_have_no_statistics() {
    let back: Vec<Row> = read(&golden("udp/wide.pcap")).rows.into_iter().filter(|row| row.source.1 == 5201).collect();
    assert_eq!(back.len(), 2);
    assert!(back.iter().all(|row| row.statistics == Err(Unread::GreetingOnly) && row.carried.packets == 1));
}

fn sent(sequence: u32, sent_us: u64, payload_bytes: usize) -> Vec<u8> {
    let mut frame = made::udp(true, payload_bytes);
    let header = [(sent_us / 1_000_000) as u32, (sent_us % 1_000_000) as u32, sequence];
    let start = frame.len() - payload_bytes;
    for (at, word) in header.into_iter().enumerate() {
        frame[start + at * 4..][..4].copy_from_slice(&word.to_be_bytes());
    }
    frame
}

fn arriving(datagrams: &[(u32, u64, u64)]) -> Vec<Packet> {
    let packet = |&(sequence, sent_us, time_us): &(u32, u64, u64)| {
        let data = sent(sequence, sent_us, 100);
        Packet { time_us, original_bytes: data.len() as u32, data }
    };
    datagrams.iter().map(packet).collect()
}

/// The jitter by hand of `jitter.rs`, through the whole path: sent every 20 ms, |D| = 16, 16 and 32 ms.
#[test]
fn jitter_of_made_packets_is_exact() {
    let made = arriving(&[(1, 0, 100_000), (2, 20_000, 136_000), (3, 40_000, 140_000), (4, 60_000, 192_000)]);
    let (row, statistics) = data(&pcap(&made, false, false, 1)).remove(0);
    let jitter = statistics.jitter.expect("four datagrams");
    assert!((jitter.last_s - 3.816_406_25e-3).abs() < 1e-15);
    let delay = statistics.delay.expect("times");
    // 100, 116, 100 and 132 ms.
    assert_eq!((delay.min_ns, delay.p50_ns, delay.p95_ns), (100_000_000, 100_000_000, 132_000_000));
    assert_eq!((row.carried.first_ns, row.carried.last_ns), (Some(100_000_000), Some(192_000_000)));
}

#[test]
fn numbers_wrap() {
    let made = arriving(&[(u32::MAX - 1, 1000, 1000), (u32::MAX, 2000, 2000), (0, 3000, 3000), (2, 4000, 4000)]);
    let (_, statistics) = data(&pcap(&made, false, false, 1)).remove(0);
    assert_eq!((statistics.sequence.expected, statistics.sequence.lost), (5, 1));
}

#[test]
fn a_short_snap_length_is_a_reason_and_not_a_zero() {
    let cut = |bytes: usize| {
        let mut made = arriving(&[(1, 1000, 1000), (2, 2000, 2000), (3, 3000, 3000)]);
        made.iter_mut().for_each(|packet| packet.data.truncate(bytes));
        read(&pcap(&made, false, false, 1)).rows.remove(0)
    };
    const HEADERS: usize = 14 + 20 + 8;
    assert!(cut(HEADERS + 12).statistics.is_ok());
    let row = cut(HEADERS + 11);
    assert_eq!((row.statistics, row.carried.cut_off, row.carried.payload_bytes), (Err(Unread::PayloadCutOff), 3, 300));
}

#[test]
fn other_datagrams_have_sizes_and_times_only() {
    let made = paced((0..50).map(|at| made::udp(at % 2 == 0, 60)));
    let rows = read(&pcap(&made, false, false, 1)).rows;
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(
            (row.statistics, row.carried.packets, row.carried.payload_bytes),
            (Err(Unread::NotIperf3), 25, 1500)
        );
    }
}

#[test]
fn headers_can_be_forced_or_left() {
    // Clocks that disagree by a minute a packet are no iperf3.
    let made = arriving(&[(1, 0, 1000), (2, 60_000_000, 2000), (3, 120_000_000, 3000)]);
    let file = pcap(&made, false, false, 1);
    let of =
        |headers| streams(&file[..], &Options { headers, ..Options::default() }).expect("a capture").rows.remove(0);
    assert_eq!(of(Headers::Recognised).statistics, Err(Unread::NotIperf3));
    assert_eq!(of(Headers::Ignore).statistics, Err(Unread::NotAsked));
    let forced = of(Headers::Forced(Width::Bits32)).statistics.expect("headers");
    assert_eq!((forced.sequence.expected, forced.sequence.lost), (3, 0));
}

#[test]
fn the_same_ports_greeting_again_are_another_test() {
    let mut made = arriving(&[(1, 1000, 1000), (2, 2000, 2000), (1, 3000, 4000), (2, 4000, 5000)]);
    let mut greeting = made::udp(true, 4);
    let at = greeting.len() - 4;
    greeting[at..].copy_from_slice(b"9876");
    made.insert(2, Packet { time_us: 3000, original_bytes: greeting.len() as u32, data: greeting });
    let rows = data(&pcap(&made, false, false, 1));
    assert_eq!(
        rows.iter().map(|(row, statistics)| (row.flow, statistics.sequence.expected)).collect::<Vec<_>>(),
        [(0, 2), (1, 2)]
    );
}

#[test]
fn streams_that_are_followed_are_bounded() {
    let datagram = |port: u16, at: u64| {
        let mut data = sent(at as u32, at * 1000, 12);
        data[34..36].copy_from_slice(&port.to_be_bytes());
        Packet { time_us: at * 1000, original_bytes: data.len() as u32, data }
    };
    let made: Vec<Packet> =
        (1..=2).flat_map(|at| (0..MAX_STREAMS as u16 + 3).map(move |port| datagram(port, at))).collect();
    let rows = read(&pcap(&made, false, false, 1)).rows;
    let refused = rows.iter().filter(|row| row.statistics == Err(Unread::TooManyStreams)).count();
    assert_eq!((rows.len(), refused), (MAX_STREAMS + 3, 3));
}

#[test]
fn a_damaged_capture_gives_the_rows_up_to_there() {
    let file = pcap(&arriving(&[(1, 1000, 1000), (2, 2000, 2000), (3, 3000, 3000)]), false, false, 1);
    let cut_off = read(&file[..file.len() - 5]);
    assert_eq!((cut_off.rows[0].carried.packets, cut_off.stopped.is_some()), (2, true));
    assert!(streams(&b"what is this, then?"[..], &Options::default()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the payloads and lengths, forced or not.
    #[test]
    fn nothing_panics(
        packets in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..24), 14usize..70, any::<u32>()), 0..30),
        wide in any::<bool>(),
    ) {
        let packet = |(payload, snap, time): (Vec<u8>, usize, u32)| {
            let mut data = made::udp(true, payload.len());
            let start = data.len() - payload.len();
            data[start..].copy_from_slice(&payload);
            let original_bytes = data.len() as u32;
            data.truncate(snap);
            Packet { time_us: u64::from(time) * 1000, data, original_bytes }
        };
        let file = pcap(&packets.into_iter().map(packet).collect::<Vec<_>>(), false, false, 1);
        let width = if wide { Width::Bits64 } else { Width::Bits32 };
        for headers in [Headers::Recognised, Headers::Forced(width)] {
            streams(&file[..], &Options { headers, ..Options::default() }).expect("a capture");
        }
    }
}
