//! Captures made to exhaust memory: what the engine holds, counted, against the bounds in docs/flows.md.

use super::direction::Direction;
use super::outstanding::{OutstandingSegment, MAX_SEGMENTS};
use super::sent::MAX_GAPS;
use super::{Engine, Options, Row, MAX_PLACES};
use crate::capture::{self, Frame, LinkType, Origin};
use crate::wire::tcp::{ACK, SYN};

/// A TCP packet over bare IPv4 with its payload cut off: connection, from its client, number, payload, flags.
fn packet(connection: u32, is_client: bool, number: u32, payload: u16, flags: u8, options: &[u8]) -> Vec<u8> {
    let header = 40 + options.len();
    let mut data = vec![0; header];
    data[0] = 0x45;
    data[2..4].copy_from_slice(&(header as u16 + payload).to_be_bytes());
    data[9] = 6;
    let ends = [(10 << 24 | connection >> 12, 1024 + (connection & 0xfff) as u16), (11 << 24, 80)];
    for (at, (host, port)) in [usize::from(!is_client), usize::from(is_client)].map(|end| ends[end]).iter().enumerate()
    {
        data[12 + 4 * at..16 + 4 * at].copy_from_slice(&host.to_be_bytes());
        data[20 + 2 * at..22 + 2 * at].copy_from_slice(&port.to_be_bytes());
    }
    data[24..28].copy_from_slice(&number.to_be_bytes());
    data[32] = ((5 + options.len() / 4) as u8) << 4;
    data[33] = flags;
    data[34] = 1;
    data[40..].copy_from_slice(options);
    data
}

fn take(engine: &mut Engine, data: &[u8], rows: &mut Vec<Row>) {
    let original_bytes = u16::from_be_bytes([data[2], data[3]]).into();
    engine.frame(&Frame { time_ns: Some(0), original_bytes, link: LinkType::RAW, data }, &mut |row| rows.push(row));
}

/// Counted anew, not by the engine's own book.
fn places(engine: &Engine) -> usize {
    engine.bins[0].live.iter().flat_map(|(_, live)| live.sides()).map(Direction::places).sum()
}

#[test]
fn all_connections_together_hold_no_more_places_than_the_budget() {
    let (connections, rounds) = (2_000, 60);
    let mut engine = Engine::new(Options::default());
    engine.max_places = 1 << 16;
    let (mut rows, mut highest) = (Vec::new(), 0);
    for round in 0..rounds {
        for connection in 0..connections {
            // Never acknowledged, and a gap before each.
            let data = packet(connection, round % 2 == 0, 1 + round * 10, 5, ACK, &[]);
            take(&mut engine, &data, &mut rows);
            assert!(engine.bins[0].places <= engine.max_places);
        }
        highest = highest.max(engine.bins[0].places);
        assert_eq!(engine.bins[0].places, places(&engine));
    }
    assert!(highest > engine.max_places / 2, "{highest}: the budget was never near");
    let summary = engine.finish(Origin::default(), &mut |row| rows.push(row));
    // No connection is lost, no packet is uncounted, and each of the sides is told of.
    assert_eq!(rows.len(), connections as usize);
    assert!(rows.iter().all(|row| row.total_packets == u64::from(rounds) && row.a.unique_bytes_sent == 150));
    for note in ["sides_with_unacknowledged_segments_forgotten", "sides_with_sequence_gaps_taken_for_sent"] {
        assert_eq!(summary.notes[note], 2 * u64::from(connections), "{note}");
    }
}

#[test]
fn places_are_given_back_with_their_connections() {
    let mut engine = Engine::new(Options { max_connections: 64, ..Options::default() });
    let mut rows = Vec::new();
    for connection in 0..10_000 {
        for segment in 0..20 {
            take(&mut engine, &packet(connection, true, 1 + segment * 10, 5, ACK, &[]), &mut rows);
        }
        assert!(engine.bins[0].live.len() <= 64);
        assert_eq!(engine.bins[0].places, places(&engine));
    }
    let summary = engine.finish(Origin::default(), &mut |row| rows.push(row));
    assert_eq!(
        (rows.len(), summary.notes.keys().collect::<Vec<_>>()),
        (10_000, vec![&"open_connections_finished_early"])
    );
}

#[test]
fn one_side_holds_so_many_segments_and_gaps() {
    let (mut contiguous, mut gapped) = (Engine::new(Options::default()), Engine::new(Options::default()));
    let mut rows = Vec::new();
    for at in 0..70_000 {
        take(&mut contiguous, &packet(0, true, 1 + at * 5, 5, ACK, &[]), &mut rows);
        take(&mut gapped, &packet(0, true, 1 + at * 10, 5, ACK, &[]), &mut rows);
    }
    // Places are a power of two.
    assert_eq!((places(&contiguous), places(&gapped)), (MAX_SEGMENTS, MAX_SEGMENTS + 2 * MAX_GAPS));
    for (engine, notes) in [(contiguous, 1), (gapped, 2)] {
        let summary = engine.finish(Origin::default(), &mut |row| rows.push(row));
        assert_eq!((rows.pop().map(|row| row.a.unique_bytes_sent), summary.notes.len()), (Some(350_000), notes));
    }
}

#[test]
fn the_budget_costs_what_the_manual_says() {
    assert_eq!((size_of::<OutstandingSegment>(), size_of::<(i64, i64)>()), (24, 16));
    assert_eq!(MAX_PLACES * size_of::<OutstandingSegment>(), 96 << 20);
}

#[test]
fn a_million_options_leave_nothing() {
    let mut engine = Engine::new(Options::default());
    let mut rows = Vec::new();
    let mut sacks = vec![5, 34];
    sacks.extend([7; 32]);
    sacks.extend([1; 6]);
    for (number, options) in
        [[1u8; 40].as_slice(), &[0xfd, 2].repeat(20), &[0xfd, 0].repeat(20), &sacks].iter().enumerate()
    {
        for flags in [ACK, SYN | ACK] {
            for _ in 0..125_000 / 40 * 2 {
                take(&mut engine, &packet(0, number % 2 == 0, 1, 0, flags, options), &mut rows);
            }
        }
    }
    assert_eq!((engine.bins[0].live.len(), places(&engine)), (1, 0));
    // A million in one section header: 4 bytes each, comments of no text.
    let body = [1u32.to_le_bytes()].concat().repeat(1_000_000);
    let length = (28 + body.len()) as u32;
    let mut file = [0x0a0d_0d0a, length, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX].map(u32::to_le_bytes).concat();
    file.extend(body);
    file.extend(length.to_le_bytes());
    let read = capture::read_slice(&file, |frame| engine.frame(frame, &mut |row| rows.push(row)));
    assert!(read.is_ok(), "{read:?}");
    assert_eq!((engine.bins[0].live.len(), places(&engine)), (1, 0));
}

#[test]
fn endless_fragments_hold_one_connection() {
    let mut engine = Engine::new(Options::default());
    let mut rows = Vec::new();
    for number in 0..300_000u32 {
        // A first fragment, a later one of it, and one that belongs to nothing.
        let mut data = packet(0, true, 1, 0, ACK, &[]);
        data[4..6].copy_from_slice(&(number as u16).to_be_bytes());
        data[6..8].copy_from_slice(&[0x2000u16, 0x2005, 0x3fff][number as usize % 3].to_be_bytes());
        take(&mut engine, &data, &mut rows);
    }
    assert_eq!((engine.bins[0].live.len(), places(&engine), rows.len()), (1, 0, 0));
}

#[test]
fn lengths_of_four_gigabytes_are_refused() {
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    let data = packet(0, true, 1, 0, ACK, &[]);
    let record = |length: u32| [0, 0, length, length].map(u32::to_le_bytes).concat();
    let good = [record(data.len() as u32), data.clone()].concat();
    let mut engine = Engine::new(Options::default());
    let file = [header, good, record(u32::MAX), data.clone()].concat();
    let read = capture::read_slice(&file, |frame| engine.frame(frame, &mut |_| {}));
    assert!(read.is_err(), "{read:?}");
    // Its wire length may be what it likes, and IP's length beyond the frame.
    let frame = Frame { time_ns: Some(0), original_bytes: u32::MAX, link: LinkType::RAW, data: &data };
    engine.frame(&frame, &mut |_| {});
    take(&mut engine, &packet(0, true, 1, u16::MAX - 40, ACK, &[]), &mut Vec::new());
    assert_eq!((engine.bins[0].live.len(), engine.summary.packets), (1, 3));
}
