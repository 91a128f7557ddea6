//! However a capture reaches the engine, its rows are the same; and the engine's memory is bounded.

mod made;

use made::Pieces;
use proptest::prelude::*;
use twinbed_core::capture::{self, Frame, LinkType, Origin};
use twinbed_core::readers::tcptrace::{Engine, Options, Row};

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

fn run(packets: &[(i64, Vec<u8>)], keep: impl Fn(u16) -> bool, options: Options) -> Vec<Row> {
    let mut engine = Engine::new(options);
    let mut rows = Vec::new();
    for (time, data) in packets {
        let pair = u16::from_be_bytes([data[20], data[21]]).max(u16::from_be_bytes([data[22], data[23]]));
        if keep(pair) {
            let frame = Frame { time_ns: Some(*time), original_bytes: data.len() as u32, link: LinkType::RAW, data };
            engine.frame(&frame, &mut |row| rows.push(row));
        }
    }
    engine.capture_ends(packets.last().map_or(0, |last| last.0));
    engine.finish(Origin::default(), &mut |row| rows.push(row));
    rows
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

/// What does not depend on which packets the engine did not get.
fn without_numbers(mut rows: Vec<Row>) -> Vec<Row> {
    rows.iter_mut().for_each(|row| row.first_packet_number = 0);
    rows.sort_by_key(|row| (row.first_ns, row.a.port.max(row.b.port), row.last_ns, row.total_packets));
    rows
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
        let whole = without_numbers(run(&packets, |_| true, Options::default()));
        let mut sharded = run(&packets, |port| port % 2 == 0, Options::default());
        sharded.extend(run(&packets, |port| port % 2 == 1, Options::default()));
        prop_assert_eq!(whole, without_numbers(sharded));
    }

    #[test]
    fn the_streams_chunks_and_a_capture_in_two_parts_change_nothing(
        made in prop::collection::vec(any_packet(), 1..60), chunk in 1usize..100, cut in any::<prop::sample::Index>()
    ) {
        let packets = packets(&made);
        let whole = run(&packets, |_| true, Options::default());
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
        let rows = run(&packets, |_| true, options.clone());
        let total: u64 = rows.iter().map(|row| row.total_packets).sum();
        prop_assert_eq!(total, packets.len() as u64);
        prop_assert_eq!(rows, run(&packets, |_| true, options));
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
