//! However a capture reaches the engine, its rows are the same; and the engine's memory is bounded.

mod made;

use made::Pieces;
use proptest::prelude::*;
use twinbed_core::capture::{self, Frame, LinkType, Origin};
use twinbed_core::flow::Summary;
use twinbed_core::readers::tcptrace::{merged, shard_of, Engine, Options, Router, Row};

/// A packet: pair of endpoints, side, flags, numbers near to a base, payload, window, microseconds after the last.
type Made = (u8, bool, u8, u16, u16, u8, u16, u32);

fn any_packet() -> impl Strategy<Value = Made> {
    (0u8..4, any::<bool>(), 0u8..64, 0u16..400, 0u16..400, 0u8..80, 0u16..3, 0u32..90_000_000)
}

fn frame_bytes((pair, side, flags, sequence, acknowledgment, payload, window, _): &Made) -> Vec<u8> {
    let mut bytes = vec![0; 40 + usize::from(*payload)];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(40 + u16::from(*payload)).to_be_bytes());
    bytes[9] = 6;
    bytes[12..16].copy_from_slice(&[10, 0, 0, 1 + u8::from(*side)]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 2 - u8::from(*side)]);
    let ports = [80, 1000 + u16::from(*pair)];
    bytes[20..22].copy_from_slice(&ports[usize::from(*side)].to_be_bytes());
    bytes[22..24].copy_from_slice(&ports[usize::from(!*side)].to_be_bytes());
    let near = |offset: u16| u32::MAX.wrapping_sub(200).wrapping_add(offset.into()).to_be_bytes();
    bytes[24..28].copy_from_slice(&near(*sequence));
    bytes[28..32].copy_from_slice(&near(*acknowledgment));
    bytes[32] = 0x50;
    bytes[33] = *flags;
    bytes[34..36].copy_from_slice(&window.to_be_bytes());
    bytes
}

fn run(packets: &[(i64, Vec<u8>)], options: Options) -> (Vec<Row>, Summary) {
    let mut engine = Engine::new(options);
    let mut rows = Vec::new();
    for (time, data) in packets {
        let frame = Frame { time_ns: Some(*time), original_bytes: data.len() as u32, link: LinkType::RAW, data };
        engine.frame(&frame, &mut |row| rows.push(row));
    }
    let summary = engine.finish(Origin::default(), &mut |row| rows.push(row));
    (rows, summary)
}

/// As [`run`], on Ethernet and with the connections in shards.
fn run_sharded(packets: &[(i64, Vec<u8>)], options: &Options) -> (Vec<Row>, Summary) {
    let mut engines = options.engines();
    let (mut router, mut rows) = (Router::default(), Vec::new());
    for (number, (time, data)) in (1..).zip(packets) {
        let data = [&[0; 12][..], &[8, 0], data].concat();
        let frame =
            Frame { time_ns: Some(*time), original_bytes: data.len() as u32, link: LinkType::ETHERNET, data: &data };
        let bin = router.bin_of(&frame, options);
        let usual = options.usual(&frame);
        let same = usual.as_ref().map_or(bin, Router::bin_of_usual);
        assert_eq!(same, bin, "the same by the headers");
        engines[shard_of(bin)].frame_of(number, &frame, usual.as_ref(), bin, &mut |row| rows.push(row));
    }
    let last_ns = packets.last().map(|(time, _)| *time);
    let summary = merged(engines, last_ns, Origin::default(), &mut |row| rows.push(row));
    (rows, summary)
}

fn packets(made: &[Made]) -> Vec<(i64, Vec<u8>)> {
    let mut time = 0;
    made.iter()
        .map(|one| {
            time += i64::from(one.7) * 1_000;
            (time, frame_bytes(one))
        })
        .collect()
}

fn pcap(packets: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let mut file = 0xa1b2_3c4du32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 101, 0, 0, 0]);
    for (time, data) in packets {
        for number in [time / 1_000_000_000, time % 1_000_000_000, data.len() as i64, data.len() as i64] {
            file.extend((number as u32).to_le_bytes());
        }
        file.extend(data);
    }
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn shards_give_the_rows_of_the_whole(made in prop::collection::vec(any_packet(), 1..80)) {
        let packets = packets(&made);
        let (rows, summary) = run(&packets, Options::default());
        let (mut sharded_rows, sharded) = run_sharded(&packets, &Options::default());
        for side in sharded_rows.iter_mut().flat_map(|row| [&mut row.a, &mut row.b]) {
            side.frame_bytes -= 14 * side.total_packets;
        }
        prop_assert_eq!(rows, sharded_rows);
        prop_assert_eq!(sharded.bytes, summary.bytes + 14 * summary.packets);
        prop_assert_eq!(sharded.captured_bytes, summary.captured_bytes + 14 * summary.packets);
        let Summary { bytes, captured_bytes, .. } = summary;
        prop_assert_eq!(Summary { bytes, captured_bytes, ..sharded }, summary);
    }

    #[test]
    fn the_streams_chunks_and_a_capture_in_two_parts_change_nothing(
        made in prop::collection::vec(any_packet(), 1..60), chunk in 1usize..100, cut in any::<prop::sample::Index>()
    ) {
        let packets = packets(&made);
        let (whole, _) = run(&packets, Options::default());
        let file = pcap(&packets);
        let (one, two) = packets.split_at(cut.index(packets.len() + 1));
        for parts in [vec![file], vec![pcap(one), pcap(two)]] {
            let mut engine = Engine::new(Options::default());
            let mut rows = Vec::new();
            let mut origin = Origin::default();
            for part in &parts {
                origin = capture::read_stream(Pieces::new(part, [chunk]), |frame| engine.frame(frame, &mut |row| rows.push(row)))
                    .expect("a capture");
            }
            engine.finish(origin, &mut |row| rows.push(row));
            prop_assert_eq!(&whole, &rows);
        }
    }

    #[test]
    fn few_connections_held_lose_no_packet(made in prop::collection::vec(any_packet(), 1..80), held in 1usize..4) {
        let packets = packets(&made);
        let options = Options { max_connections: held, ..Options::default() };
        let (rows, _) = run(&packets, options.clone());
        let total: u64 = rows.iter().map(|row| row.total_packets).sum();
        prop_assert_eq!(total, packets.len() as u64);
        prop_assert_eq!(rows, run(&packets, options).0);
    }
}

#[test]
fn a_syn_flood_is_finished_as_it_comes() {
    const HELD: usize = 1000;
    let mut engine = Engine::new(Options { max_connections: HELD, ..Options::default() });
    let mut early: Vec<u64> = Vec::new();
    for number in 0u32..20_000 {
        let mut data = frame_bytes(&(0, false, 2, 0, 0, 0, 1, 0));
        data[16..20].copy_from_slice(&number.to_be_bytes());
        let frame = Frame { time_ns: Some(0), original_bytes: 40, link: LinkType::RAW, data: &data };
        engine.frame(&frame, &mut |row| early.push(row.first_packet_number));
    }
    let finished = early.len();
    assert!(finished >= 20_000 - HELD);
    let summary = engine.finish(Origin::default(), &mut |row| early.push(row.first_packet_number));
    assert_eq!(early, (1..=20_000).collect::<Vec<u64>>());
    assert_eq!(summary.notes["open_connections_finished_early"], finished as u64);
}
