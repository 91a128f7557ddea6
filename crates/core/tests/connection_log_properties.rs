//! Whatever the packets: how they are stored or handed over changes no row, and nothing makes the log panic.

mod made;
mod whole;

use made::{pcap, tcp, Packet, Pieces, Tcp};
use proptest::prelude::*;
use twinbed_core::capture::{read_slice, Origin};
use twinbed_core::readers::zeek::{Capture, Log, Options};
use twinbed_core::readers::{self, read_stream};
use whole::whole;

const ETHERNET: u32 = 1;

fn any_segment() -> impl Strategy<Value = Tcp> {
    let flags = prop::sample::select(vec!["S", "SA", "A", "A", "A", "FA", "RA", "R", "SF", "F"]);
    let number = || prop_oneof![0u32..60, Just(u32::MAX - 5), any::<u32>()];
    (any::<bool>(), flags, number(), number(), 0usize..40, any::<bool>()).prop_map(
        |(client, flags, sequence, acknowledgment, payload_bytes, closed)| {
            tcp(client, flags, sequence, acknowledgment, payload_bytes).window(if closed { 0 } else { 500 })
        },
    )
}

/// Times go forwards by seconds, so that timers run out on the way.
fn any_packets() -> impl Strategy<Value = Vec<Packet>> {
    let frame = prop_oneof![
        6 => any_segment().prop_map(|segment| segment.frame()),
        1 => (any::<bool>(), 0usize..50).prop_map(|(client, bytes)| made::udp(client, bytes)),
        1 => prop::collection::vec(any::<u8>(), 0..80),
    ];
    let step = prop_oneof![4 => 0u64..1_000_000, 1 => 0u64..400_000_000];
    prop::collection::vec((frame, step, 14usize..120, any::<bool>()), 0..40).prop_map(|list| {
        let mut time_us = 1_600_000_000_000_000;
        let mut packet = |(mut data, step, snap, is_damaged): (Vec<u8>, u64, usize, bool)| {
            time_us += step;
            let original_bytes = data.len() as u32;
            data.truncate(snap);
            if let (true, Some(last)) = (is_damaged && snap % 5 == 0, data.last_mut()) {
                *last ^= 1;
            }
            Packet { time_us, data, original_bytes }
        };
        list.into_iter().map(&mut packet).collect()
    })
}

fn logged(packets: &[Packet], options: &Options) -> Capture {
    whole(Log::new(options.clone()), &pcap(packets, false, false, ETHERNET))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn feeding_in_parts_changes_nothing(packets in any_packets(), at in 0usize..40, piece in 1usize..90) {
        let options = Options { max_connections: 3, ..Options::default() };
        let expected = logged(&packets, &options);
        let (first, second) = packets.split_at(at.min(packets.len()));
        let mut log = Log::new(options.clone());
        let mut rows = Vec::new();
        let mut origin = Origin::default();
        for part in [first, second] {
            origin = read_slice(&pcap(part, false, false, ETHERNET), |frame| log.frame(frame)).expect("a capture");
            rows.extend(log.take());
        }
        let rest = log.finish(origin);
        rows.extend(rest.rows);
        prop_assert_eq!(&rows, &expected.rows);
        prop_assert_eq!(&rest.summary, &expected.summary);
        let file = pcap(&packets, false, false, ETHERNET);
        prop_assert_eq!(read_stream(Log::new(options), Pieces::new(&file, [piece])).expect("a capture"), expected);
    }

    #[test]
    fn counts_add_up(packets in any_packets(), ignore_checksums in any::<bool>()) {
        let Capture { rows, summary } = logged(&packets, &Options { ignore_checksums, ..Options::default() });
        prop_assert_eq!(rows.len() as u64, summary.connections);
        let in_rows: u64 = rows.iter().map(|row| row.originator.packets + row.responder.packets).sum();
        let skipped: u64 = summary.skipped.values().sum();
        prop_assert_eq!(in_rows + summary.ignored_packets + skipped + summary.not_ip.values().sum::<u64>(), summary.packets);
        prop_assert!(rows.iter().all(|row| row.unseen_bytes <= row.missed_bytes));
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), link in 0u32..300) {
        let mut file = pcap(&[], false, false, link);
        file.extend(&bytes);
        let options = Options { tunnels: true, ..Options::default() };
        let _ = readers::read_slice(Log::new(options.clone()), &file);
        let packet = Packet { time_us: 0, original_bytes: bytes.len() as u32, data: bytes };
        let _ = readers::read_slice(Log::new(options), &pcap(&[packet], false, false, link));
    }
}

/// Real captures with bytes changed: the same changes each time.
#[test]
fn damaged_captures_never_panic() {
    const ROUNDS: u64 = 150;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let names =
        ["captures/zeek-get.pcap", "captures/zeek-retransmit-fast009.pcap", "captures/zeek-fin_retransmission.pcap"];
    for name in names.into_iter().chain(["checksums/veth-offload-on.pcap", "captures/zeek-cooper-grill-dvwa.pcapng"]) {
        let whole = std::fs::read(folder.join(name)).expect("a golden capture");
        let mut state = 0x7477_696e_6265_6421_u64;
        let mut below = |limit: usize| {
            // xorshift64*
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
        };
        for round in 0..ROUNDS {
            let mut bytes = whole.clone();
            for _ in 0..1 + below(40) {
                let at = below(bytes.len());
                bytes[at] = if below(2) == 0 { 0xff } else { bytes[at] ^ 1 << below(8) };
            }
            let options = Options {
                tunnels: round % 2 == 0,
                ignore_checksums: round % 3 > 0,
                max_connections: 4,
                ..Options::default()
            };
            let _ = readers::read_slice(Log::new(options), &bytes);
        }
    }
}
