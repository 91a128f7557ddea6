//! Two captures of one path: real ones against what was between them, made ones against what was left out of them.

use std::collections::BTreeSet;

use proptest::prelude::*;
use twinbed_core::readers::matching::{match_captures, Options, Orientation, Pairing, Row};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/pairs");

fn matched(first: &[u8], second: &[u8]) -> Pairing {
    match_captures(first, second, &Options::default()).expect("two captures")
}

fn golden(folder: &str) -> Pairing {
    let read = |name| {
        let path = format!("{GOLDEN}/{folder}/{name}");
        std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    matched(&read("a.pcap"), &read("b.pcap"))
}

/// The row with the most packets sent to the server.
fn bulk(pairing: &Pairing) -> Row {
    let rows = pairing.rows.iter().filter(|row| row.destination.1 == 5201);
    rows.max_by_key(|row| row.sent.payload_bytes).expect("rows").clone()
}

/// All but the bulk: nothing happened to them.
fn others_are_whole(pairing: &Pairing) {
    let bulk = bulk(pairing);
    for row in pairing.rows.iter().filter(|row| **row != bulk) {
        assert_eq!((row.lost.packets, row.appeared.packets, row.duplicated.packets), (0, 0, 0), "{row:?}");
        assert_eq!((row.sent, row.matched_sent_packets), (row.arrived, row.sent.packets), "{row:?}");
        assert_eq!((row.from_first, row.orientation), (row.destination.1 == 5201, Orientation::Connection), "{row:?}");
    }
}

#[test]
fn the_relays_losses_of_udp_are_found() {
    let pairing = golden("relay-udp");
    others_are_whole(&pairing);
    let row = bulk(&pairing);
    assert_eq!((row.lost.packets, row.lost.payload_bytes), (5, 5000));
    assert_eq!((row.duplicated.packets, row.reordered_packets), (2, 2));
    assert_eq!((row.edge_sent.packets, row.edge_arrived.packets, row.appeared.packets), (0, 0, 0));
    // 250 datagrams and the greeting.
    assert_eq!((row.sent.packets, row.arrived.packets), (251, 251 - 5 + 2));
}

#[test]
fn the_relays_losses_of_tcp_are_found() {
    let pairing = golden("relay-tcp");
    others_are_whole(&pairing);
    let row = bulk(&pairing);
    assert_eq!((row.lost.packets, row.lost.payload_bytes), (4, 4 * 988));
    assert_eq!((row.duplicated.packets, row.reordered_packets), (1, 1));
    assert_eq!((row.edge_sent.packets, row.edge_arrived.packets, row.appeared.packets), (0, 0, 0));
}

#[test]
fn the_shapers_drops_are_the_losses() {
    let pairing = golden("router-udp-tbf");
    others_are_whole(&pairing);
    assert_eq!(bulk(&pairing).lost.packets, 59);

    let row = bulk(&golden("router-tbf"));
    let lost = row.lost.payload_bytes + row.partly_lost.payload_bytes;
    assert_eq!((lost, row.edge_sent.payload_bytes), (52 * 1448, 1448));
    assert_eq!(row.sent.payload_bytes - lost - row.edge_sent.payload_bytes, row.arrived.payload_bytes);
}

#[test]
fn split_super_packets_are_not_lost() {
    let pairing = golden("router-tso");
    others_are_whole(&pairing);
    let row = bulk(&pairing);
    assert_eq!((row.split.packets, row.split_parts, row.merged.packets), (16, 361, 0));
    assert_eq!((row.sent_super_packets, row.arrived_super_packets, row.arrived.packets), (16, 0, 368));
    assert_eq!((row.sent.payload_bytes, row.arrived.payload_bytes), (524_325, 524_325));
    assert_eq!((row.matched_sent_packets, row.matched_arrived_packets), (row.sent.packets, 368));
    assert!(pairing.densities.iter().all(|each| each.displacements().all(|(by, _)| by == 0)));
    assert_eq!((row.lost.packets, row.partly_lost.packets, row.appeared.packets), (0, 0, 0));
}

#[test]
fn merged_segments_are_not_lost() {
    let pairing = golden("router-gro");
    assert!(
        pairing.densities.iter().all(|each| each.occupancies().all(|(held, _)| held == 0)),
        "merged ones all arrive"
    );
    let row = bulk(&pairing);
    assert_eq!((row.merged.packets, row.merged_parts, row.split.packets), (14, 361, 0));
    assert_eq!((row.sent.packets, row.matched_sent_packets, row.arrived_super_packets), (368, 368, 14));
    assert_eq!((row.lost.packets, row.partly_lost.packets, row.appeared.packets), (0, 0, 0));
}

/// Both captures are of one kernel, so of one clock: the estimate must be nearly 0.
#[test]
fn the_clock_offset_of_one_clock_is_none() {
    let pairing = golden("router-tso");
    let offset = pairing.clock_offset_if_symmetric_ns.expect("both directions");
    let round_trip = pairing.least_round_trip_ns.expect("both directions");
    assert!(offset.abs() < 100_000 && (0..1_000_000).contains(&round_trip), "{offset} {round_trip}");
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    time_us: u64,
    /// 10.0.0.1:1000 to 10.0.0.2:80, or back.
    there: bool,
    id: u16,
    stamp: Option<u32>,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Tcp { sequence: u32, payload_bytes: u32 },
    Udp { number: u32 },
}

const PAYLOAD: usize = 100;
const START_US: u64 = 1_700_000_000_000_000;

fn file(packets: &[Sent], offset_us: u64) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 262_144, 101] {
        file.extend(word.to_le_bytes());
    }
    for sent in packets {
        let mut transport = Vec::new();
        let (source, destination) = if sent.there { (1000u16, 80u16) } else { (80, 1000) };
        transport.extend(source.to_be_bytes());
        transport.extend(destination.to_be_bytes());
        let (protocol, transport_bytes) = match sent.what {
            What::Tcp { sequence, payload_bytes } => {
                transport.extend(sequence.to_be_bytes());
                transport.extend(1u32.to_be_bytes());
                transport.extend([if sent.stamp.is_some() { 8 << 4 } else { 5 << 4 }, 0x10, 1, 0, 0, 0, 0, 0]);
                if let Some(stamp) = sent.stamp {
                    transport.extend([1, 1, 8, 10]);
                    transport.extend(stamp.to_be_bytes());
                    transport.extend([0; 4]);
                }
                (6, transport.len() + payload_bytes as usize)
            }
            What::Udp { number } => {
                transport.extend((8 + PAYLOAD as u16).to_be_bytes());
                transport.extend([0, 0]);
                transport.extend(number.to_be_bytes());
                transport.extend([0; 28]);
                (17, 8 + PAYLOAD)
            }
        };
        let (from, to) = if sent.there { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
        let mut packet = vec![0x45, 0];
        packet.extend((20 + transport_bytes as u16).to_be_bytes());
        packet.extend(sent.id.to_be_bytes());
        packet.extend([0x40, 0, 64, protocol, 0, 0]);
        packet.extend(from);
        packet.extend(to);
        packet.extend(&transport);
        let time_us = sent.time_us + offset_us;
        let original_bytes = 20 + transport_bytes as u32;
        for word in [(time_us / 1_000_000) as u32, (time_us % 1_000_000) as u32, packet.len() as u32, original_bytes] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// Marks that open and close both captures and go both ways, so that nothing else is at an edge.
fn marked(packets: &[Sent], delay_us: u64) -> Vec<Sent> {
    let mark = |number: u32, time_us: u64| {
        [true, false].map(|there| Sent {
            time_us: time_us + if there { delay_us } else { 1000 - delay_us },
            there,
            id: number as u16,
            stamp: None,
            what: What::Udp { number },
        })
    };
    let (first, last) = (START_US - 1_000_000, START_US + 3_000_000_000);
    let mut all: Vec<Sent> = mark(u32::MAX, first).into_iter().chain(mark(u32::MAX - 1, last)).collect();
    all.extend(packets);
    all.sort_by_key(|sent| sent.time_us);
    all
}

fn tcp_row(pairing: &Pairing) -> Row {
    pairing.rows.iter().find(|row| row.protocol == 6).expect("a TCP row").clone()
}

/// Cuts `total` bytes from number `start` at `cuts`.
fn segments(start: u32, total: u32, cuts: &BTreeSet<u32>, stamp: bool) -> Vec<Sent> {
    let ends: Vec<u32> = cuts.iter().copied().filter(|cut| (1..total).contains(cut)).chain([total]).collect();
    let mut from = 0;
    let mut made = Vec::new();
    for end in ends {
        let what = What::Tcp { sequence: start.wrapping_add(from), payload_bytes: end - from };
        // Identifications of parts have no fixed relation to those of what they are parts of, but for the first.
        let time_us = START_US + u64::from(from) * 10;
        made.push(Sent { time_us, there: true, id: from as u16, stamp: stamp.then_some(7), what });
        from = end;
    }
    made
}

fn late(packets: &[Sent], delay_us: u64) -> Vec<Sent> {
    packets.iter().map(|sent| Sent { time_us: sent.time_us + delay_us, ..*sent }).collect()
}

/// The `number`th packet of a sender, at a millisecond.
fn numbered(millisecond: u64, number: u32, tcp: bool) -> Sent {
    let what = if tcp { What::Tcp { sequence: 5 + number * 100, payload_bytes: 100 } } else { What::Udp { number } };
    Sent { time_us: START_US + millisecond * 1000, there: true, id: number as u16 + 1, stamp: None, what }
}

/// The sender's numbers say which of two was sent first, so what its capture has the other way round is the capture's doing.
#[test]
fn what_a_capture_puts_into_another_order_is_not_the_paths() {
    let order = |numbers: &[u32], delay: u64| -> Vec<Sent> {
        (0..).zip(numbers).map(|(slot, number)| numbered(slot + delay, *number, true)).collect()
    };
    let rows = |sent: &[u32], arrived: &[u32]| {
        let row =
            tcp_row(&matched(&file(&marked(&order(sent, 0), 0), 0), &file(&marked(&order(arrived, 100), 300), 0)));
        (row.reordered_packets, row.capture_reordered_packets)
    };
    let displaced = |sent: &[u32], arrived: &[u32]| {
        let pairing = matched(&file(&marked(&order(sent, 0), 0), 0), &file(&marked(&order(arrived, 100), 300), 0));
        pairing.densities[0].displacements().collect::<Vec<_>>()
    };
    // Two marks go there too.
    assert_eq!(displaced(&[0, 1, 2, 3], &[0, 2, 1, 3]), [(-1, 1), (0, 4), (1, 1)]);
    assert_eq!(displaced(&[0, 2, 1, 3], &[0, 1, 2, 3]), [(0, 6)]);
    assert_eq!(displaced(&[2, 0, 3, 1], &[0, 1, 2, 3]), [(0, 6)]);
    assert_eq!(rows(&[0, 1, 2, 3], &[0, 2, 1, 3]), (1, 0));
    assert_eq!(rows(&[0, 2, 1, 3], &[0, 1, 2, 3]), (0, 1));
    assert_eq!(rows(&[0, 2, 1, 3], &[0, 2, 1, 3]), (0, 0), "both captures agree");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However clocks differ, TCP or UDP, with timestamps or without: what is left out is what is lost.
    #[test]
    fn any_subset_dropped_is_the_loss(
        dropped in prop::collection::btree_set(0usize..60, 0..40), tcp in any::<bool>(), stamp in any::<bool>(),
        start in prop_oneof![Just(u32::MAX - 2000), any::<u32>()], offset_us in 0u64..10_000_000_000,
    ) {
        let sent: Vec<Sent> = (0u32..60).map(|at| Sent {
            time_us: START_US + u64::from(at) * 1000,
            there: true,
            id: at as u16,
            stamp: stamp.then_some(at / 10),
            what: if tcp { What::Tcp { sequence: start.wrapping_add(at * 100), payload_bytes: 100 } } else { What::Udp { number: at } },
        }).collect();
        let arrived: Vec<Sent> = late(&sent, 300).into_iter().enumerate()
            .filter(|(at, _)| !dropped.contains(at)).map(|(_, sent)| sent).collect();
        let pairing = matched(&file(&marked(&sent, 0), 0), &file(&marked(&arrived, 300), offset_us));
        let lost: u64 = pairing.rows.iter().map(|row| row.lost.packets).sum();
        let bytes: u64 = pairing.rows.iter().map(|row| row.lost.payload_bytes).sum();
        prop_assert_eq!((lost, bytes), (dropped.len() as u64, dropped.len() as u64 * 100));
        for row in &pairing.rows {
            prop_assert_eq!((row.appeared.packets, row.duplicated.packets, row.reordered_packets), (0, 0, 0));
            prop_assert_eq!(row.edge_sent.packets + row.edge_arrived.packets, 0);
            if row.protocol == 6 {
                prop_assert_eq!(row.lost.packets, dropped.len() as u64);
            }
        }
        prop_assert!(pairing.rows.iter().all(|row| row.from_first == (row.source.1 == 1000)));
    }

    /// Wherever either side cuts the same bytes, none is lost, and the splits and merges are the cuts.
    #[test]
    fn split_and_merged_anywhere_loses_nothing(
        one in prop::collection::btree_set(1u32..20_000, 0..25), two in prop::collection::btree_set(1u32..20_000, 0..25),
        stamp in any::<bool>(), start in prop_oneof![Just(u32::MAX - 9000), any::<u32>()],
    ) {
        let sent = segments(start, 20_000, &one, stamp);
        // A part arrives no sooner than all of what it was cut from or merged from was sent.
        let arrived = late(&segments(start, 20_000, &two, stamp), 250_000);
        let row = tcp_row(&matched(&file(&marked(&sent, 0), 0), &file(&marked(&arrived, 400), 0)));
        prop_assert_eq!((row.lost.packets, row.partly_lost.packets, row.appeared.packets), (0, 0, 0));
        prop_assert_eq!((row.matched_sent_packets, row.matched_arrived_packets), (row.sent.packets, row.arrived.packets));
        let inside = |cuts: &BTreeSet<u32>, from: u32, to: u32| cuts.range(from + 1..to).count() as u64;
        let pieces = |own: &BTreeSet<u32>, other: &BTreeSet<u32>| {
            let ends: Vec<u32> = [0].into_iter().chain(own.iter().copied()).chain([20_000]).collect();
            ends.windows(2).map(|pair| inside(other, pair[0], pair[1]) + 1).filter(|parts| *parts > 1).fold(
                (0, 0), |(packets, parts), own| (packets + 1, parts + own))
        };
        prop_assert_eq!((row.split.packets, row.split_parts), pieces(&one, &two));
        prop_assert_eq!((row.merged.packets, row.merged_parts), pieces(&two, &one));
    }

    /// Super-packets split on the way, and any of the parts dropped: the bytes lost are those of the parts.
    #[test]
    fn parts_dropped_are_the_bytes_lost(
        cuts in prop::collection::btree_set(1u32..200, 0..20), dropped in prop::collection::btree_set(0u32..200, 0..90),
    ) {
        let cuts: BTreeSet<u32> = cuts.into_iter().map(|cut| cut * 100).collect();
        let sent = segments(5, 20_000, &cuts, true);
        let all: BTreeSet<u32> = (1..200).map(|cut| cut * 100).collect();
        let parts = late(&segments(5, 20_000, &all, true), 250_000);
        let arrived: Vec<Sent> = parts.into_iter().enumerate()
            .filter(|(at, _)| !dropped.contains(&(*at as u32))).map(|(_, sent)| sent).collect();
        let row = tcp_row(&matched(&file(&marked(&sent, 0), 0), &file(&marked(&arrived, 400), 0)));
        let edge = row.edge_sent.payload_bytes;
        prop_assert_eq!(row.lost.payload_bytes + row.partly_lost.payload_bytes + edge, dropped.len() as u64 * 100);
        prop_assert_eq!(edge, 0);
        prop_assert_eq!((row.appeared.packets, row.matched_arrived_packets), (0, row.arrived.packets));
    }

    /// RFC 4737 by its words: a packet is reordered where one that was sent later has arrived before, and 3-reordered where
    /// the three arrivals right before it all were.
    #[test]
    fn reordering_is_as_the_rfc_defines_it(
        late_by in prop::collection::vec(0usize..9, 60), tcp in any::<bool>(), offset_us in 0u64..10_000_000_000,
    ) {
        let sent: Vec<Sent> = (0u32..60).map(|at| numbered(u64::from(at), at, tcp)).collect();
        let mut order: Vec<usize> = (0..60).collect();
        order.sort_by_key(|at| at + late_by[*at]);
        let arrived: Vec<Sent> = (0u64..).zip(&order)
            .map(|(slot, at)| Sent { time_us: START_US + 100_000 + slot * 1000, ..sent[*at] }).collect();
        let pairing = matched(&file(&marked(&sent, 0), 0), &file(&marked(&arrived, 300), offset_us));
        let is_reordered = |at: &usize| order[..*at].iter().any(|before| *before > order[*at]);
        let is_three = |at: &usize| *at >= 3 && order[at - 3..*at].iter().all(|before| *before > order[*at]);
        let expected = (0..60).filter(is_reordered).count() as u64;
        let three = (0..60).filter(is_three).count() as u64;
        let sum = |of: fn(&Row) -> u64| pairing.rows.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum(|row| row.reordered_packets), expected);
        // RFC 5236: nothing is lost, so that the receive index is the place of the arrival.
        let displacements = |by: i64| (0i64..).zip(&order).filter(|(place, at)| *place - **at as i64 == by).count() as u64;
        for (by, packets) in pairing.densities[0].displacements() {
            // The two marks are in order.
            prop_assert_eq!(packets, displacements(by) + if by == 0 { 2 } else { 0 });
        }
        let counted: u64 = pairing.densities[0].displacements().map(|(_, packets)| packets).sum();
        prop_assert_eq!(counted, 62);
        prop_assert_eq!(sum(|row| row.three_reordered_packets), three);
        prop_assert_eq!(sum(|row| row.capture_reordered_packets + row.lost.packets), 0);
    }

    #[test]
    fn no_pair_of_files_panics(
        first in prop::collection::vec(any::<u8>(), 0..300), second in prop::collection::vec(any::<u8>(), 0..300),
        cut in 0usize..600,
    ) {
        let good = file(&marked(&segments(u32::MAX - 50, 300, &BTreeSet::from([1, 100, 250]), true), 0), 0);
        let mut spoilt = good.clone();
        spoilt.truncate(cut.max(24));
        spoilt.extend(&second);
        let _ = match_captures(&first[..], &second[..], &Options::default());
        let _ = match_captures(&spoilt[..], &good[..], &Options::default());
        let _ = match_captures(&good[..], &spoilt[..], &Options::default());
    }
}

/// The first copy was lost, its retransmission 200 ms later was not: one lost, and no delay of 200 ms.
#[test]
fn a_retransmission_is_not_the_packet_that_it_repeats() {
    let segment = |time_us, id, stamp, sequence| Sent {
        time_us: START_US + time_us,
        there: true,
        id,
        stamp,
        what: What::Tcp { sequence, payload_bytes: 500 },
    };
    for (stamps, ids) in [(true, false), (false, true), (false, false)] {
        let stamp = |value| stamps.then_some(value);
        let id = |value| if ids { value } else { 0 };
        let sent = [
            segment(0, id(1), stamp(1), 0),
            segment(1000, id(2), stamp(2), 500),
            segment(201_000, id(3), stamp(200), 500),
        ];
        let arrived = late(&[sent[0], sent[2]], 300);
        let row = tcp_row(&matched(&file(&marked(&sent, 0), 0), &file(&marked(&arrived, 300), 0)));
        assert_eq!((row.lost.packets, row.matched_sent_packets, row.duplicated.packets), (1, 2, 0));
        assert_eq!(row.raw_delay.map(|delay| (delay.min_ns, delay.max_ns)), Some((300_000, 300_000)));
    }
}

/// Delays of 10 to 13 ms on a clock that is one hour ahead, and 2 ms back.
#[test]
fn delays_vary_over_the_least_and_the_offset_is_an_estimate() {
    let there: Vec<Sent> = (0u32..100)
        .map(|at| Sent {
            time_us: START_US + u64::from(at) * 20_000,
            there: at % 2 == 0,
            id: at as u16,
            stamp: None,
            what: What::Udp { number: at },
        })
        .collect();
    const HOUR_US: u64 = 3_600_000_000;
    let second: Vec<Sent> = there
        .iter()
        .enumerate()
        .map(|(at, sent)| {
            let time_us =
                if sent.there { sent.time_us + 10_000 + 1000 * (at as u64 / 2 % 4) } else { sent.time_us - 2000 };
            Sent { time_us, ..*sent }
        })
        .collect();
    let pairing = matched(&file(&there, 0), &file(&second, HOUR_US));
    let row = pairing.rows.iter().find(|row| row.source.1 == 1000).expect("there");
    let delay = row.raw_delay.expect("matches");
    const MS: i64 = 1_000_000;
    let hour_ns = HOUR_US as i64 * 1000;
    assert_eq!((delay.min_ns, delay.p50_ns, delay.max_ns), (hour_ns + 10 * MS, hour_ns + 11 * MS, hour_ns + 13 * MS));
    assert_eq!(pairing.least_round_trip_ns, Some(12 * MS));
    // Wrong by half of what the two ways differ, as every such estimate.
    assert_eq!(pairing.clock_offset_if_symmetric_ns, Some(hour_ns + 4 * MS));
}

#[test]
fn other_addresses_match_nothing() {
    let sent = segments(5, 5000, &(1..50).map(|cut| cut * 100).collect(), true);
    let mut rewritten = file(&sent, 0);
    let mut at = 24;
    while at < rewritten.len() {
        rewritten[at + 16 + 12] = 192;
        at += 16 + rewritten[at + 8] as usize;
    }
    let pairing = matched(&file(&sent, 0), &rewritten);
    assert_eq!((pairing.matches, pairing.notes.get("starts_have_nothing_in_common")), (0, Some(&1)));
}

/// The second capture began late and ended early: what it cannot have seen is at the edge.
#[test]
fn what_one_capture_was_too_late_for_is_not_lost() {
    let sent = segments(5, 10_000, &(1..100).map(|cut| cut * 100).collect(), true);
    let row = tcp_row(&matched(&file(&sent, 0), &file(&late(&sent[20..70], 300), 0)));
    assert_eq!((row.lost.packets, row.edge_sent.packets, row.matched_sent_packets), (0, 50, 50));
}

/// Which capture is named first is told by the delays: only what says so changes.
#[test]
fn naming_the_captures_the_other_way_round_changes_nothing_else() {
    for folder in ["relay-udp", "relay-tcp", "router-tso", "router-gro", "router-tbf", "router-udp-tbf"] {
        let read = |name| std::fs::read(format!("{GOLDEN}/{folder}/{name}")).expect("a golden file");
        let (a, b) = (read("a.pcap"), read("b.pcap"));
        let (pairing, swapped) = (matched(&a, &b), matched(&b, &a));
        let sorted = |mut rows: Vec<Row>| {
            rows.sort_by_key(|row| (row.protocol, row.source, row.destination));
            rows
        };
        let turned = swapped.rows.into_iter().map(|row| Row { from_first: !row.from_first, ..row }).collect();
        assert_eq!(sorted(pairing.rows), sorted(turned), "{folder}");
        assert_eq!(pairing.least_round_trip_ns, swapped.least_round_trip_ns);
    }
}
