//! Whatever the packets: how they are stored changes nothing, and no cut makes a reader panic.

mod engines;
mod made;

use engines::{read, try_read};
use made::{pcap, pcapng_section, tcp, Clock, Packet, Pieces, Tcp, MICROSECONDS};
use proptest::prelude::*;

const ETHERNET: u32 = 1;

fn any_segment() -> impl Strategy<Value = Tcp> {
    let flags = prop::sample::select(vec!["S", "SA", "A", "A", "A", "AF", "RA", "R"]);
    let sequence = prop_oneof![0u32..60, Just(u32::MAX - 5), any::<u32>()];
    (any::<bool>(), flags, sequence, 0u32..60, 0usize..40, any::<bool>()).prop_map(
        |(client, flags, sequence, acknowledgment, payload_bytes, closed)| {
            tcp(client, flags, sequence, acknowledgment, payload_bytes).window(if closed { 0 } else { 500 })
        },
    )
}

fn any_packets() -> impl Strategy<Value = Vec<Packet>> {
    let frame = prop_oneof![
        6 => any_segment().prop_map(|segment| segment.frame()),
        1 => (any::<bool>(), 0usize..50).prop_map(|(client, bytes)| made::udp(client, bytes)),
        1 => prop::collection::vec(any::<u8>(), 0..80),
    ];
    let packet = (frame, 0u64..4_000_000_000, 14usize..120);
    prop::collection::vec(packet, 0..25).prop_map(|list| {
        list.into_iter()
            .map(|(mut data, time_us, snap)| {
                let original_bytes = data.len() as u32;
                data.truncate(snap);
                Packet { time_us: 1_600_000_000_000_000 + time_us, data, original_bytes }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn chunking_changes_nothing(
        packets in any_packets(),
        sizes in prop::collection::vec(1usize..70, 1..8),
        ng in any::<bool>(),
    ) {
        let file = if ng {
            pcapng_section(&packets, false, MICROSECONDS, 1)
        } else {
            pcap(&packets, false, false, ETHERNET)
        };
        let pieces = Pieces::new(&file, sizes);
        prop_assert_eq!(read(&file), engines::read_stream(pieces).expect("a capture"));
    }

    #[test]
    fn byte_order_and_format_change_nothing(packets in any_packets()) {
        let expected = read(&pcap(&packets, false, false, ETHERNET));
        let nanosecond = Clock { resolution: 9, ticks_per_second: 1_000_000_000, offset_s: 0 };
        let offset = Clock { resolution: 12, ticks_per_second: 1_000_000_000_000, offset_s: 1_599_999_999 };
        let binary = Clock { resolution: 0x80 | 34, ticks_per_second: 1 << 34, offset_s: 1_599_999_999 };
        let mut two_sections = Vec::new();
        let (first, second) = packets.split_at(packets.len() / 2);
        two_sections.extend(pcapng_section(first, true, nanosecond, 1));
        two_sections.extend(pcapng_section(second, false, offset, 1));
        for file in [
            pcap(&packets, true, false, ETHERNET),
            pcap(&packets, false, true, ETHERNET),
            pcap(&packets, true, true, ETHERNET),
            pcapng_section(&packets, false, MICROSECONDS, 1),
            pcapng_section(&packets, true, nanosecond, 1),
            pcapng_section(&packets, true, offset, 1),
            two_sections,
        ] {
            let mut capture = read(&file);
            capture.summary.interfaces = 1;
            capture.log_summary.interfaces = 1;
            prop_assert_eq!(&capture, &expected);
        }
        // 2^-34 s is finer than a microsecond, but cuts it: at most a nanosecond is lost.
        let capture = read(&pcapng_section(&packets, false, binary, 1));
        prop_assert_eq!(capture.flows.len(), expected.flows.len());
        for (row, expected) in capture.flows.iter().zip(&expected.flows) {
            let off_ns = expected.first_ns.unwrap_or(0) - row.first_ns.unwrap_or(0);
            prop_assert!((0..=1).contains(&off_ns), "{} ns", off_ns);
            prop_assert_eq!(engines::ways(row), engines::ways(expected));
        }
    }

    /// How packets are told to be one connection differs; between two endpoints the sums are the same.
    #[test]
    fn engines_agree_on_what_was_sent(packets in any_packets()) {
        let capture = read(&pcap(&packets, false, false, ETHERNET));
        prop_assert_eq!(capture.counted(), capture.logged());
        prop_assert_eq!(capture.summary.packets, packets.len() as u64);
        let counted: u64 = capture.flows.iter().map(|row| row.total_packets).sum();
        let logged: u64 = capture.log.iter().map(|row| row.originator.packets + row.responder.packets).sum();
        prop_assert!(counted <= logged && logged <= capture.summary.packets);
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = try_read(&bytes);
        let mut file = pcap(&[], false, false, ETHERNET);
        file.extend(&bytes);
        let _ = try_read(&file);
    }
}

/// More than 2^32 bytes: nothing new looks old.
#[test]
fn more_than_a_sequence_space() {
    const STEP: u32 = 60_000;
    const COUNT: u64 = 75_000;
    assert!(COUNT * u64::from(STEP) > 1 << 32);
    let mut packets = made::segments(&[tcp(true, "S", 100, 0, 0), tcp(false, "SA", 500, 101, 0)]);
    for at in 0..COUNT {
        let sequence = 501u32.wrapping_add((at as u32).wrapping_mul(STEP));
        // Headers only, as a snap length leaves it.
        let mut data = tcp(false, "A", sequence, 101, 0).frame();
        data[16..18].copy_from_slice(&((40 + STEP) as u16).to_be_bytes());
        packets.push(Packet { time_us: 1_700_000_001_000_000 + at, data, original_bytes: 54 + STEP });
    }
    let capture = read(&pcap(&packets, false, false, ETHERNET));
    let side = &capture.flows[0].b;
    assert_eq!((capture.flows.len(), side.unique_bytes_sent), (1, COUNT * u64::from(STEP)));
    assert_eq!(side.rare().rexmt_data_pkts + side.rare().outoforder_pkts, 0);
    assert_eq!(capture.log[0].responder_bytes, Some(COUNT * u64::from(STEP)));
}

/// A file cut anywhere gives the packets before the cut, and says what it left; within its header, an error.
#[test]
fn a_file_cut_at_every_byte() {
    let packets = made::segments(&[
        tcp(true, "S", 1, 0, 0).mss(1460),
        tcp(false, "SA", 1, 2, 0).mss(1460),
        tcp(true, "A", 2, 2, 9),
        tcp(false, "AF", 2, 11, 5),
    ]);
    let pcap_file = pcap(&packets, false, false, ETHERNET);
    let ng_file = pcapng_section(&packets, true, MICROSECONDS, 1);
    for (file, header_bytes) in [(&pcap_file, 24), (&ng_file, 28)] {
        let mut before = 0;
        for length in 0..=file.len() {
            let result = try_read(&file[..length]);
            if length < header_bytes {
                assert!(result.is_err(), "{length}");
                continue;
            }
            let summary = result.expect("rows so far").summary;
            assert!(summary.packets >= before && summary.packets <= 4);
            assert!(summary.skipped.get("last_record_cut_off").is_none_or(|count| *count == 1));
            before = summary.packets;
        }
        assert_eq!(before, 4);
    }
    let cut = try_read(&pcap_file[..pcap_file.len() - 1]).expect("rows so far").summary;
    assert_eq!((cut.packets, cut.skipped.get("last_record_cut_off")), (3, Some(&1)));
    let whole = try_read(&pcap_file).expect("rows").summary;
    assert!(whole.skipped.is_empty());
}

#[test]
fn errors_say_where_and_what() {
    let mut file = pcap(&made::segments(&[tcp(true, "S", 1, 0, 0)]), false, false, ETHERNET);
    file[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = try_read(&file).expect_err("an impossible length");
    assert_eq!(
        error.to_string(),
        "pcap record header at byte 32: captured length is 4294967295, expected at most 16777216"
    );
    let error = try_read(&file[..10]).expect_err("half a header");
    assert_eq!(error.to_string(), "pcap file header at byte 0: 24 bytes needed (says the format), 10 there");
}
