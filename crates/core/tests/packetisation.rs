//! Packetisation against segments worked out by hand, tshark, the kernel's own segmentation and its counters
//! (tests/golden/packetisation/README.md, tests/golden/captures/README.md).

mod made;
mod whole;

use std::path::{Path, PathBuf};

use made::{pcap, segments, tcp, udp, Packet, Pieces};
use proptest::prelude::*;
use twinbed_core::readers::packetisation::{Analyzer, Direction, Options, Packetisation};
use twinbed_core::readers::{read_slice, read_stream};
use whole::whole;

fn golden(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(folder)
}

fn read(bytes: &[u8]) -> Packetisation {
    whole(Analyzer::new(Options::default()), bytes)
}

fn read_golden(name: &str) -> Packetisation {
    read(&std::fs::read(golden("packetisation").join(name)).expect("a golden capture"))
}

fn made(packets: &[Packet]) -> Packetisation {
    read(&pcap(packets, false, false, 1))
}

fn at_us(mut packets: Vec<Packet>, times_us: &[u64]) -> Vec<Packet> {
    assert_eq!(packets.len(), times_us.len());
    for (packet, time_us) in packets.iter_mut().zip(times_us) {
        packet.time_us = 1_700_000_000_000_000 + time_us;
    }
    packets
}

#[test]
fn tshark_agrees() {
    let mut compared = 0;
    for entry in std::fs::read_dir(golden("packetisation")).expect("the golden folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let Some(capture) = name.strip_suffix(".tshark.tsv") else { continue };
        let rows = read_golden(&format!("{capture}.pcap"));
        for line in std::fs::read_to_string(&path).expect("text").lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let number = |at: usize| -> u64 { cells[at].parse().expect("a number") };
            let stream = number(0) as usize;
            let row = &rows.connections[stream];
            let is_originator = row.originator_address.to_string() == cells[1];
            let side = if is_originator { &row.originator } else { &row.responder };
            let disorder = &side.disorder;
            assert_eq!(
                [
                    side.counts.packets,
                    side.counts.data_segments,
                    side.counts.payload_bytes,
                    side.in_flight.max_bytes,
                    disorder.retransmitted_packets + disorder.recovered_packets,
                ],
                [number(3), number(4), number(5), number(6), number(7)],
                "{capture}, stream {stream}, from {}",
                cells[1],
            );
            compared += 1;
        }
    }
    assert!(compared >= 60, "{compared}");
}

#[test]
fn super_packets_stand_for_what_the_kernel_made_of_them() {
    let wire = read_golden("offload-on-wire.pcap").connections.remove(0).responder;
    assert_eq!((wire.counts.super_packets, wire.counts.wire_packets), (0, wire.counts.packets));
    for place in ["offload-on-server.pcap", "offload-on-client.pcap"] {
        let rows = read_golden(place);
        let side = &rows.connections[0].responder;
        assert!(side.counts.packets * 5 < wire.counts.packets, "{place}: joined");
        assert_eq!(side.counts.wire_packets, wire.counts.packets, "{place}");
        assert_eq!(side.counts.wire_data_packets, wire.counts.data_segments, "{place}");
        // Size by size, too.
        let sizes = |rows: &Packetisation| -> Vec<(u32, u64)> {
            let of_responder = rows.sizes.iter().filter(|row| !row.from_originator && row.count.wire_packets > 0);
            of_responder.map(|row| (row.count.least_bytes, row.count.wire_packets)).collect()
        };
        assert_eq!(sizes(&rows), sizes(&read_golden("offload-on-wire.pcap")), "{place}");
    }
}

#[test]
fn packets_are_the_same_with_offloads_on_and_off() {
    // 30 responses of 20 kB, captured on a client with offloads and on one without.
    let on = read_golden("small-on.pcap").connections.remove(0).responder.counts;
    let off = read_golden("small-off.pcap").connections.remove(0).responder.counts;
    assert!(on.packets * 5 < off.packets, "{} and {}", on.packets, off.packets);
    assert_eq!(off.super_packets, 0);
    assert_eq!((on.wire_packets, on.wire_data_packets), (off.packets, off.data_segments));
}

#[test]
fn retransmissions_are_the_kernels() {
    let folder = golden("captures");
    let nstat = std::fs::read_to_string(folder.join("lossy-server.nstat.txt")).expect("text");
    let kernel: u64 = nstat
        .lines()
        .find_map(|line| line.strip_prefix("TcpRetransSegs")?.split_whitespace().next()?.parse().ok())
        .expect("a count");
    let total = |name: &str, of: fn(&Direction) -> u64| -> u64 {
        let rows = read(&std::fs::read(folder.join(name)).expect("a capture"));
        rows.connections.iter().map(|row| of(&row.responder)).sum()
    };
    assert_eq!(total("lossy-server.pcap", |side| side.disorder.retransmitted_packets), kernel);
    // Behind the loss, what was sent again is new; tshark calls 37 and 11 of them retransmissions, none out of order.
    assert_eq!(total("lossy-client.pcap", |side| side.disorder.recovered_packets), 37 + 11);
    assert_eq!(total("lossy-client.pcap", |side| side.disorder.reordered_packets), 0);
}

#[test]
fn a_small_transfer_by_hand() {
    let packets = segments(&[
        tcp(true, "S", 1000, 0, 0).mss(1460),
        tcp(false, "SA", 5000, 1001, 0).mss(1460),
        tcp(true, "A", 1001, 5001, 0),
        tcp(true, "A", 1001, 5001, 100),
        tcp(false, "A", 5001, 1101, 2920),
        tcp(false, "A", 7921, 1101, 1460),
        tcp(true, "A", 1101, 7921, 0),
        tcp(true, "A", 1101, 9381, 0),
        tcp(false, "A", 9381, 1101, 500),
        tcp(true, "A", 1101, 9881, 0),
    ]);
    // Microseconds: the handshake takes 200; the second burst begins 8 ms after the first.
    let rows = made(&at_us(packets, &[0, 100, 200, 200, 1000, 1010, 1110, 1210, 9010, 9110]));
    let row = &rows.connections[0];
    assert_eq!((row.first_packet, row.handshake_ns), (1, Some(200_000)));
    let side = &row.responder;
    assert_eq!((side.counts.data_segments, side.counts.wire_data_packets, side.counts.super_packets), (3, 4, 1));
    // 2920 for 10 us, 4380 for 100, 1460 for 100, 0 for 7800, 500 for 100.
    assert_eq!((side.in_flight.max_bytes, side.in_flight.phase_ns, side.in_flight.busy_ns), (4380, 8_110_000, 310_000));
    let byte_us = 2920 * 10 + 4380 * 100 + 1460 * 100 + 500 * 100;
    assert_eq!(side.in_flight.mean_bytes(), Some(f64::from(byte_us) * 1e3 / 8_110_000.0));
    assert_eq!((side.bursts.count, side.bursts.packets_max, side.bursts.bytes_max), (2, 3, 4380));
    assert_eq!(side.bursts.gap_max_s(), Some(0.008));
    assert_eq!(side.acks_per_data_packet(&row.originator), Some(1.0));
    assert_eq!(row.originator.acks_per_data_packet(side), Some(0.0));
    assert_eq!(side.retransmission_rate(), Some(0.0));
    let sizes: Vec<_> = rows
        .sizes
        .iter()
        .filter(|size| !size.from_originator)
        .map(|size| (size.count.least_bytes, size.count.segments, size.count.wire_packets))
        .collect();
    assert_eq!(sizes, [(500, 1, 1), (1460, 1, 3), (2920, 1, 0)]);
}

#[test]
fn keep_alive_probes_are_neither_data_nor_retransmissions() {
    let rows = made(&segments(&[
        tcp(true, "S", 0, 0, 0),
        tcp(false, "SA", 0, 1, 0),
        tcp(true, "A", 1, 1, 10),
        tcp(false, "A", 1, 11, 0),
        tcp(true, "A", 10, 1, 1),
        tcp(false, "A", 1, 11, 0),
    ]));
    let side = &rows.connections[0].originator;
    assert_eq!((side.counts.data_segments, side.disorder.retransmitted_packets), (1, 0));
}

#[test]
fn connections_without_payload_are_counted_and_have_no_row() {
    let rows = made(&segments(&[tcp(true, "S", 9, 0, 0), tcp(false, "RA", 0, 10, 0)]));
    assert!(rows.connections.is_empty());
    assert_eq!(rows.summary.connections_without_payload, 1);
    assert_eq!(rows.summary.packets_without_payload_connection, 2);
}

#[test]
fn udp_has_sizes_bursts_and_gaps() {
    let packets: Vec<Packet> = made::paced([udp(true, 100), udp(true, 100), udp(true, 60), udp(false, 40)]);
    let rows = made(&at_us(packets, &[0, 10, 5000, 5010]));
    let side = &rows.connections[0].originator;
    assert_eq!((side.bursts.count, side.bursts.packets_max, side.bursts.gap_max_s()), (2, 2, Some(0.00499)));
    assert_eq!((side.in_flight.max_bytes, side.counts.wire_packets), (0, 3));
    assert_eq!(rows.sizes.len(), 3);
}

#[test]
fn a_flood_of_half_open_connections_is_bounded() {
    // 200,000 SYNs, three times what is followed at once: none has a row, all are counted.
    let mut frame = tcp(true, "S", 1, 0, 0).frame();
    let mut packets = Vec::new();
    let mut analyzer = twinbed_core::readers::packetisation::Analyzer::new(Options::default());
    for number in 0..200_000u32 {
        frame[26..30].copy_from_slice(&number.to_be_bytes());
        packets.clone_from(&frame);
        analyzer.frame(&twinbed_core::capture::Frame {
            time_ns: Some(i64::from(number)),
            original_bytes: packets.len() as u32,
            link: twinbed_core::capture::LinkType::ETHERNET,
            data: &packets,
        });
    }
    let rows = analyzer.finish(Default::default());
    assert_eq!(rows.summary.connections_without_payload, 200_000);
    assert!(rows.summary.connections_finished_early > 100_000);
}

/// Segments of one transfer, each of `pieces` full packets and perhaps a short last one.
fn transfer(pieces: &[usize], split: bool) -> Vec<Packet> {
    const MOST: usize = 1460;
    let mut list = vec![
        tcp(true, "S", 0, 0, 0).mss(MOST as u16),
        tcp(false, "SA", 0, 1, 0).mss(MOST as u16),
        tcp(true, "A", 1, 1, 20),
    ];
    let mut sequence = 1u32;
    for &bytes in pieces {
        let step = if split { MOST } else { usize::MAX };
        let mut left = bytes;
        while left > 0 {
            let now = left.min(step);
            list.push(tcp(false, "A", sequence, 21, now));
            sequence += now as u32;
            left -= now;
        }
    }
    list.push(tcp(true, "A", 21, sequence, 0));
    // At one time, so that the time-weighted values have no length.
    let times = vec![0; list.len()];
    at_us(segments(&list), &times)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn splitting_super_packets_keeps_what_was_on_the_wire(pieces in prop::collection::vec(1usize..20_000, 1..12)) {
        let (joined, split) = (made(&transfer(&pieces, false)), made(&transfer(&pieces, true)));
        let (one, other) = (&joined.connections[0].responder, &split.connections[0].responder);
        prop_assert_eq!(other.counts.super_packets, 0);
        prop_assert_eq!(one.counts.wire_packets, other.counts.packets);
        prop_assert_eq!(one.bursts, other.bursts);
        prop_assert_eq!(one.disorder, other.disorder);
        prop_assert_eq!(one.in_flight.max_bytes, other.in_flight.max_bytes);
        let wire = |rows: &Packetisation| -> Vec<(u32, u64)> {
            let sizes = rows.sizes.iter().filter(|size| size.count.wire_packets > 0);
            sizes.map(|size| (size.count.least_bytes, size.count.wire_packets)).collect()
        };
        prop_assert_eq!(wire(&joined), wire(&split));
    }

    #[test]
    fn any_bytes_and_any_chunks(
        cuts in prop::collection::vec((0usize..6000, any::<u8>()), 0..12), chunk in 1usize..3000,
    ) {
        let mut bytes = std::fs::read(golden("packetisation").join("pipeline-cut.pcap")).expect("a capture");
        for (at, byte) in cuts {
            // The file header stays.
            let at = 24 + at % (bytes.len() - 24);
            bytes[at] = byte;
        }
        let analyzer = || Analyzer::new(Options::default());
        match (read_slice(analyzer(), &bytes), read_stream(analyzer(), Pieces::new(&bytes, [chunk]))) {
            (Ok(whole), Ok(parts)) => prop_assert_eq!(whole, parts),
            (whole, parts) => prop_assert!(whole.is_err() && parts.is_err()),
        }
    }
}
