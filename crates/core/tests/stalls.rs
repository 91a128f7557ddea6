//! Stalls against segments worked out by hand, and tshark's analysis of captures (tests/golden/stalls/README.md).

mod made;
mod whole;

use std::path::Path;

use made::{pcap, segments, tcp, Packet, Tcp};
use proptest::prelude::*;
use twinbed_core::readers::stalls::{Analyzer, EndedBy, Reason, Stall};
use whole::whole;

const START_US: u64 = 1_700_000_000_000_000;
const MS: u64 = 1000;

/// Segments at times in milliseconds.
fn packets(timed: &[(u64, Tcp)]) -> Vec<Packet> {
    let all: Vec<Tcp> = timed.iter().map(|(_, segment)| *segment).collect();
    let mut packets = segments(&all);
    for (packet, (at_ms, _)) in packets.iter_mut().zip(timed) {
        packet.time_us = START_US + at_ms * MS;
    }
    packets
}

fn stalls(timed: &[(u64, Tcp)]) -> Vec<Stall> {
    whole(Analyzer::default(), &pcap(&packets(timed), false, false, 1)).rows
}

/// Start in ms, duration in ms, originator waits, unacknowledged, retransmissions, returned packets, reason, end.
type Figures = (i64, i64, bool, u64, u64, u64, Reason, EndedBy);

fn figures(row: &Stall) -> Figures {
    let start = (row.start_ns - START_US as i64 * 1000) / 1_000_000;
    let counts = (row.unacknowledged_bytes, row.retransmissions, row.returned_packets);
    (start, row.duration_ns / 1_000_000, row.originator_waits, counts.0, counts.1, counts.2, row.reason, row.ended_by)
}

fn found(timed: &[(u64, Tcp)]) -> Vec<Figures> {
    stalls(timed).iter().map(figures).collect()
}

use EndedBy::{Acknowledgment, CaptureEnd, Data, Reset, Window};
use Reason::{Unanswered, ZeroWindow};

/// A handshake with a round trip of 10 ms at the client: the timeout is 10 + 200 ms, and a stall longer than 420 ms.
fn open(isn: u32) -> Vec<(u64, Tcp)> {
    let peer = 500;
    vec![
        (0, tcp(true, "S", isn, 0, 0)),
        (10, tcp(false, "SA", peer, isn.wrapping_add(1), 0)),
        (10, tcp(true, "A", isn.wrapping_add(1), peer + 1, 0)),
    ]
}

fn after_open(isn: u32, rest: &[(u64, Tcp)]) -> Vec<(u64, Tcp)> {
    [open(isn), rest.to_vec()].concat()
}

#[test]
fn a_request_that_is_not_answered_for_13_s() {
    for isn in [7, u32::MAX - 50, i32::MAX as u32 - 50] {
        let at = |offset: u32| isn.wrapping_add(1 + offset);
        let timed = after_open(
            isn,
            &[
                (20, tcp(true, "A", at(0), 501, 100)),
                (230, tcp(true, "A", at(0), 501, 100)),
                (650, tcp(true, "A", at(0), 501, 100)),
                (13_020, tcp(false, "A", 501, at(100), 0)),
                (13_030, tcp(false, "A", 501, at(100), 300)),
                (13_031, tcp(true, "A", at(100), 801, 0)),
            ],
        );
        assert_eq!(found(&timed), [(20, 13_000, true, 100, 2, 0, Unanswered, Acknowledgment)], "{isn}");
        assert_eq!(stalls(&timed)[0].timeout_ns, 210_000_000);
    }
}

/// 420 ms are two timeouts; the server's acknowledgment is the data that ends the wait.
#[test]
fn a_stall_is_longer_than_two_timeouts() {
    let timed = |wait: u64| {
        after_open(
            7,
            &[
                (20, tcp(true, "A", 8, 501, 100)),
                (20 + wait, tcp(false, "A", 501, 108, 300)),
                (21 + wait, tcp(true, "A", 108, 801, 0)),
            ],
        )
    };
    assert_eq!(found(&timed(420)), []);
    assert_eq!(found(&timed(421)), [(20, 421, true, 100, 0, 0, Unanswered, Acknowledgment)]);
}

#[test]
fn nothing_stalls_where_all_is_acknowledged() {
    // A server that takes 13 s, then a connection that is kept alive for a minute, each probe unanswered but the last.
    let timed = after_open(
        7,
        &[
            (20, tcp(true, "A", 8, 501, 100)),
            (60, tcp(false, "A", 501, 108, 0)),
            (13_060, tcp(false, "A", 501, 108, 300)),
            (13_061, tcp(true, "A", 108, 801, 0)),
            (30_000, tcp(true, "A", 107, 801, 0)),
            (40_000, tcp(true, "A", 107, 801, 1)),
            (50_000, tcp(true, "A", 107, 801, 0)),
            (50_010, tcp(false, "A", 801, 108, 0)),
            (70_000, tcp(true, "FA", 108, 801, 0)),
            (70_010, tcp(false, "FA", 801, 109, 0)),
            (70_011, tcp(true, "A", 109, 802, 0)),
            (99_000, tcp(true, "A", 109, 802, 0)),
        ],
    );
    assert_eq!(found(&timed), []);
}

/// Before the handshake is over the timeout is 1 s: a SYN that is lost once is no stall, one that is lost twice is.
#[test]
fn syns_wait_a_second_each() {
    let syn = |at| (at, tcp(true, "S", 7, 0, 0));
    let answer = |at| (at, tcp(false, "SA", 500, 8, 0));
    assert_eq!(found(&[syn(0), syn(1000), answer(1010), (1011, tcp(true, "A", 8, 501, 0))]), []);
    let twice = [syn(0), syn(1000), syn(3000), answer(3010), (3011, tcp(true, "A", 8, 501, 0))];
    assert_eq!(found(&twice), [(0, 3010, true, 1, 2, 0, Unanswered, Acknowledgment)]);
    assert_eq!(found(&[syn(0), syn(1000), syn(3000)]), [(0, 3000, true, 1, 2, 0, Unanswered, CaptureEnd)]);
    // The answer to the SYN is lost on its way to the client.
    let unheard = [syn(0), answer(1), syn(1000), answer(1001), (1003, tcp(true, "A", 8, 501, 0))];
    assert_eq!(found(&unheard), []);
    let unheard =
        [syn(0), answer(1), syn(1000), answer(1001), syn(3000), answer(3001), (3003, tcp(true, "A", 8, 501, 0))];
    assert_eq!(found(&unheard), [(1, 3002, false, 1, 2, 2, Unanswered, Acknowledgment)]);
}

#[test]
fn duplicate_acknowledgments_are_no_progress_and_a_reset_is_the_end() {
    let duplicate = |at| (at, tcp(false, "A", 501, 8, 0));
    let timed = after_open(
        7,
        &[
            (20, tcp(true, "A", 8, 501, 100)),
            (21, tcp(true, "A", 108, 501, 100)),
            (300, duplicate(300).1),
            (600, duplicate(600).1),
            (601, tcp(true, "A", 8, 501, 100)),
            (1000, tcp(false, "RA", 501, 8, 0)),
            (9000, tcp(true, "A", 208, 501, 100)),
            (19_000, tcp(true, "A", 208, 501, 100)),
        ],
    );
    assert_eq!(found(&timed), [(21, 979, true, 200, 1, 2, Unanswered, Reset)]);
}

/// All is acknowledged, the window is closed, and the sender probes into it: as Linux does, and with a byte of data.
#[test]
fn a_closed_window_is_a_stall_of_its_own_reason() {
    for (sequence, bytes) in [(107, 0), (108, 1)] {
        let probe = |at| (at, tcp(true, "A", sequence, 501, bytes));
        let closed = |at| (at, tcp(false, "A", 501, 108, 0).window(0));
        let timed = after_open(
            7,
            &[
                (20, tcp(true, "A", 8, 501, 100)),
                closed(30),
                probe(240),
                closed(250),
                probe(650),
                closed(660),
                (2030, tcp(false, "A", 501, 108, 0)),
                (2031, tcp(true, "A", 108, 501, 50)),
                (2040, tcp(false, "A", 501, 158, 0)),
            ],
        );
        assert_eq!(found(&timed), [(30, 2000, true, 0, 0, 2, ZeroWindow, Window)]);
        assert_eq!(stalls(&timed)[0].probes, 2);
        // Nobody waits for one that is closed when all is sent.
        let unwanted = after_open(7, &[timed[3], timed[4], timed[9], (60_000, tcp(false, "FA", 501, 108, 0))]);
        assert_eq!(found(&unwanted), []);
    }
}

/// Data that is new is progress even where none of it is acknowledged, and one end's keeps the connection going.
#[test]
fn new_data_of_either_end_is_progress() {
    let slow: Vec<(u64, Tcp)> = (0..20).map(|at| (20 + 400 * at, tcp(true, "A", 8 + at as u32, 501, 1))).collect();
    assert_eq!(found(&after_open(7, &slow)), []);
    let timed = after_open(
        7,
        &[
            (20, tcp(true, "A", 8, 501, 100)),
            (30, tcp(false, "A", 501, 8, 1000)),
            (31, tcp(true, "A", 8, 501, 100)),
            (700, tcp(false, "A", 1501, 8, 1000)),
        ],
    );
    // Both wait; the client sent again.
    assert_eq!(found(&timed), [(30, 670, true, 100, 1, 0, Unanswered, Data)]);
}

/// A capture that begins amid a connection, with the acknowledgment of what came before; and one that lacks a segment.
#[test]
fn what_the_capture_does_not_hold_is_not_waited_for() {
    let timed = [
        (0, tcp(false, "A", 501, 1000, 0)),
        (1, tcp(true, "A", 1000, 501, 10)),
        (2, tcp(false, "A", 501, 1010, 0)),
        (9000, tcp(false, "A", 501, 5010, 0)),
        (19_000, tcp(true, "A", 5010, 501, 10)),
        (19_001, tcp(false, "A", 501, 5020, 0)),
    ];
    assert_eq!(found(&timed), []);
}

#[test]
fn a_port_that_is_used_again_is_another_connection() {
    let mut timed = after_open(7, &[(20, tcp(true, "A", 8, 501, 100)), (30, tcp(false, "RA", 501, 8, 0))]);
    timed.extend(open(9000).into_iter().map(|(at, segment)| (at + 5000, segment)));
    timed.push((5020, tcp(true, "A", 9001, 501, 5)));
    timed.push((7020, tcp(false, "A", 501, 9006, 0)));
    let rows = stalls(&timed);
    assert_eq!((rows.len(), rows[0].first_packet, figures(&rows[0]).1), (1, 6, 2000));
}

/// What tshark's analysis of the packets comes to (tests/golden/stalls/expected.py).
#[test]
fn tshark_agrees() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let text = std::fs::read_to_string(golden.join("stalls/expected.tsv")).expect("the expected stalls");
    let mut compared = (0, 0);
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let bytes = std::fs::read(golden.join(cells[0])).expect("a golden capture");
        let rows = whole(Analyzer::default(), &bytes).rows;
        let expected: Vec<&str> = if cells[1].is_empty() { vec![] } else { cells[1].split(' ').collect() };
        let ours: Vec<String> = rows
            .iter()
            .map(|row| {
                let (seconds, ns) = (row.start_ns / 1_000_000_000, row.start_ns % 1_000_000_000);
                format!("{seconds}.{ns:09}+{}/{}", row.duration_ns, row.retransmissions)
            })
            .collect();
        assert_eq!(ours, expected, "{}", cells[0]);
        compared = (compared.0 + 1, compared.1 + expected.len());
    }
    assert!(compared.0 >= 120 && compared.1 >= 15, "{compared:?}");
}

proptest! {
    /// Any segments at any times: stalls of a connection do not overlap, and are longer than two timeouts.
    #[test]
    fn stalls_follow_each_other(
        timed in proptest::collection::vec(
            (0u64..3000, any::<bool>(), 0usize..6, any::<u32>(), any::<u32>(), 0usize..3, any::<bool>()), 1..60)
    ) {
        let flags = ["A", "S", "SA", "FA", "A", "RA"];
        let mut now = 0;
        let segments: Vec<(u64, Tcp)> = timed
            .iter()
            .map(|(pause, client, flag, sequence, acknowledgment, bytes, near)| {
                now += pause;
                let mask = if *near { 7 } else { u32::MAX };
                let segment = tcp(*client, flags[*flag], sequence & mask, acknowledgment & mask, *bytes);
                (now, segment.window((sequence & 1) as u16))
            })
            .collect();
        let rows = stalls(&segments);
        for (at, row) in rows.iter().enumerate() {
            prop_assert!(row.duration_ns > 2 * row.timeout_ns && row.timeout_ns >= 200_000_000);
            let before = rows[..at].iter().rev().find(|other| other.first_packet == row.first_packet);
            prop_assert!(before.is_none_or(|other| other.start_ns + other.duration_ns <= row.start_ns));
        }
    }
}
