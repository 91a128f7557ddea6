//! What is read in encapsulations, against tshark (tests/golden/encapsulations/how.md), and that every packet of a capture
//! is in some count, whatever its link and its bytes.

mod made;
mod whole;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use made::{pcap, tcp, udp, Packet};
use proptest::prelude::*;
use twinbed_core::capture::read_slice;
use twinbed_core::readers::{http, packetisation, tcptrace, udp as streams, zeek};
use twinbed_core::wire::{address, dissect, dissect_inner, Dissected, Transport};
use whole::whole;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/encapsulations")
}

/// Lines of tshark's reading, by file.
fn expected() -> Vec<(String, Vec<Vec<String>>)> {
    let text = std::fs::read_to_string(golden().join("expected.tsv")).expect("tshark's reading");
    let mut files: Vec<(String, Vec<Vec<String>>)> = Vec::new();
    for line in text.lines() {
        let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
        if files.last().is_none_or(|(name, _)| *name != cells[0]) {
            files.push((cells[0].clone(), Vec::new()));
        }
        files.last_mut().expect("a file").1.push(cells);
    }
    files
}

#[test]
fn tshark_reads_the_same_inside() {
    let mut compared = 0;
    for (name, lines) in expected() {
        let mut lines = lines.iter();
        let file = std::fs::read(golden().join(format!("{name}.pcap"))).expect("a capture");
        read_slice(&file, |frame| {
            let cells = lines.next().expect("a line for each frame");
            let dissected = dissect_inner(frame);
            if name.starts_with("not-ip") {
                assert_eq!(dissected, Dissected::NonIp { kind: kind(&name, cells) });
                return;
            }
            let Dissected::Ip(packet) = dissected else { panic!("{name}: {dissected:?}") };
            let Transport::Tcp(segment) = packet.transport else { panic!("{name}: {packet:?}") };
            let (source, destination) = packet.addresses.numbers();
            let [source, destination] = [source, destination].map(|number| address(number, packet.addresses.is_v6()));
            let theirs: [IpAddr; 2] = [1, 2].map(|at| cells[at].parse().expect("an address"));
            assert_eq!([source, destination], theirs, "{name}");
            let numbers = [
                u32::from(segment.source_port),
                u32::from(segment.destination_port),
                segment.sequence,
                segment.payload_bytes,
            ];
            assert_eq!(numbers, [3, 4, 5, 6].map(|at| cells[at].parse().expect("a number")), "{name}");
            assert!(!packet.longer_than_frame, "{name}");
            let bytes = packet.transport_data(frame.data);
            assert_eq!(bytes.len(), usize::from(segment.header_bytes) + segment.payload_bytes as usize, "{name}");
            compared += 1;
            // Cut anywhere: read or counted, without a panic.
            for cut in 0..frame.data.len() {
                let cut = twinbed_core::capture::Frame { data: &frame.data[..cut], ..*frame };
                let _ = (dissect(&cut), dissect_inner(&cut));
            }
        })
        .expect("a readable capture");
        assert_eq!(lines.next(), None, "{name}");
    }
    assert_eq!(compared, 3 * 38);
}

/// tshark's name of the last protocol, as twinbed counts it. Of 802.11, it names management, control and data alike.
fn kind(name: &str, cells: &[String]) -> &'static str {
    let protocols = cells[7].as_str();
    match (name, protocols.rsplit(':').next().expect("a protocol")) {
        ("not-ip-ethernet", "arp") => "arp",
        ("not-ip-ethernet", "lldp") => "lldp",
        ("not-ip-ethernet", "stp") => "spanning_tree",
        ("not-ip-wlan", _) => match cells[8].as_str() {
            "0" => "wlan_management",
            "1" => "wlan_control",
            _ if cells[9] == "1" => "wlan_encrypted",
            _ => "wlan_without_data",
        },
        other => panic!("{other:?}"),
    }
}

/// Link layers and tunnels without end are not followed to it.
#[test]
fn nesting_is_bounded() {
    let inner = tcp(true, "A", 1, 1, 9).frame();
    for (layer, count) in [(&[0x81, 0, 0, 5][..], 100_000), (&[0x88, 0x47, 0, 0, 1, 9, 0, 0, 0, 0][..], 100_000)] {
        let mut data = inner[..12].to_vec();
        for _ in 0..count {
            data.extend(layer);
            if layer.len() > 4 {
                data.extend(&inner[..12]);
            }
        }
        data.extend(&inner[12..]);
        let original_bytes = data.len() as u32;
        let file = pcap(&[Packet { time_us: 0, data, original_bytes }], false, false, 1);
        let summary = whole(zeek::Log::new(zeek::Options::default()), &file).summary;
        assert_eq!(summary.skipped.get("link_layers_nested_too_deep"), Some(&1));
    }
}

/// Frames of any bytes, and frames that have a header of some encapsulation before them.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..120);
    let ether_types = prop::sample::select(vec![
        0x0800u16, 0x86dd, 0x8100, 0x8847, 0x8864, 0x88e7, 0x8926, 0x8903, 0x0806, 0x002a, 0x05ff, 0x6558,
    ]);
    let inner = prop_oneof![
        (any::<bool>(), 0usize..40).prop_map(|(client, bytes)| tcp(client, "A", 9, 9, bytes).frame()),
        (any::<bool>(), 0usize..40).prop_map(|(client, bytes)| udp(client, bytes)),
        bytes.clone(),
    ];
    let under = (ether_types, prop::collection::vec(any::<u8>(), 0..24), inner.clone(), 0usize..20).prop_map(
        |(ether_type, header, inner, from)| {
            let mut data = vec![2; 12];
            data.extend(ether_type.to_be_bytes());
            data.extend(header);
            data.extend(inner.get(from..).unwrap_or_default());
            data
        },
    );
    prop_oneof![2 => bytes, 2 => inner, 3 => under]
}

/// Every link type that is read, with some others.
fn any_link() -> impl Strategy<Value = u32> {
    let read = vec![0u32, 1, 6, 9, 10, 12, 14, 50, 51, 100, 101, 104, 105, 108, 113, 127, 204, 228, 229, 276];
    prop_oneof![6 => prop::sample::select(read), 1 => 0u32..400]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_packet_is_in_some_count(
        frames in prop::collection::vec(any_frame(), 0..12),
        link in any_link(),
        tunnels in any::<bool>(),
        ignore_checksums in any::<bool>(),
        snap in 0usize..140,
    ) {
        let packets: Vec<Packet> = frames
            .into_iter()
            .zip(1_700_000_000_000_000u64..)
            .map(|(mut data, time_us)| {
                let original_bytes = data.len() as u32;
                data.truncate(snap);
                Packet { time_us, data, original_bytes }
            })
            .collect();
        let file = pcap(&packets, false, false, link);
        let count = packets.len() as u64;

        let options = zeek::Options { tunnels, ignore_checksums, ..zeek::Options::default() };
        let log = whole(zeek::Log::new(options), &file);
        let in_rows: u64 = log.rows.iter().map(|row| row.originator.packets + row.responder.packets).sum();
        let summary = log.summary;
        let joined = summary.notes.get("ip_fragment_joined").copied().unwrap_or(0);
        let others = sum(&summary.skipped) + sum(&summary.not_ip) + summary.ignored_packets + joined;
        prop_assert_eq!((in_rows + others, summary.packets), (count, count));

        let mut engine = tcptrace::Engine::new(tcptrace::Options { tunnels, ..tcptrace::Options::default() });
        let mut rows = Vec::new();
        let origin = read_slice(&file, |frame| engine.frame(frame, &mut |row| rows.push(row))).expect("a capture");
        let summary = engine.finish(origin, &mut |row| rows.push(row));
        let in_rows: u64 = rows.iter().map(|row| row.total_packets).sum();
        let joined = summary.notes.get("ip_fragment_joined").copied().unwrap_or(0);
        let others = sum(&summary.skipped) + sum(&summary.not_ip) + joined;
        prop_assert_eq!((in_rows + others, summary.packets), (count, count));

        let requests = whole(http::Analyzer::new(http::Options { tunnels, ..Default::default() }), &file);
        let cut = whole(
            packetisation::Analyzer::new(packetisation::Options { tunnels, ..Default::default() }), &file,
        );
        prop_assert_eq!((requests.summary.packets, cut.summary.packets), (count, count));
        let in_rows: u64 =
            cut.connections.iter().map(|row| row.originator.counts.packets + row.responder.counts.packets).sum();
        let others = sum(&cut.summary.skipped) + cut.summary.packets_without_payload_connection;
        prop_assert_eq!(in_rows + others, count);
        let flows = whole(streams::Engine::new(streams::Options { tunnels, ..Default::default() }), &file);
        prop_assert_eq!(flows.udp_packets + sum(&flows.skipped), flows.packets);
        prop_assert_eq!(flows.packets, count);
    }
}

fn sum(counts: &twinbed_core::capture::Counts) -> u64 {
    counts.values().sum()
}

/// The captures of tests/golden/encapsulations that hold a tunnel: without a look inside, each packet is counted as not
/// entered, by its kind; with one, none.
#[test]
fn tunnels_that_are_not_entered_are_counted() {
    for (name, kind) in [
        ("vxlan", "vxlan_tunnel_not_entered"),
        ("geneve", "geneve_tunnel_not_entered"),
        ("gtp-u", "gtp_tunnel_not_entered"),
        ("teredo", "teredo_tunnel_not_entered"),
        ("gre-mpls", "gre_tunnel_not_entered"),
        ("erspan-2", "gre_tunnel_not_entered"),
        ("ipip", "ip_in_ip_tunnel_not_entered"),
        ("6in4", "ip_in_ip_tunnel_not_entered"),
        ("vlan-mpls", ""),
    ] {
        let file = std::fs::read(golden().join(format!("{name}.pcap"))).expect("a capture");
        for tunnels in [false, true] {
            let log = whole(zeek::Log::new(zeek::Options { tunnels, ..Default::default() }), &file).summary;
            let (_, flows) = whole(tcptrace::Rows::new(tcptrace::Options { tunnels, ..Default::default() }), &file);
            let expected: Vec<_> = if kind.is_empty() || tunnels { vec![] } else { vec![(kind, log.packets)] };
            for notes in [log.notes, flows.notes] {
                let notes: Vec<_> = notes.into_iter().filter(|(note, _)| note.ends_with("_not_entered")).collect();
                assert_eq!(notes, expected, "{name} {tunnels}");
            }
        }
    }
}

/// A fragment of a tunnel's packet stays closed, and is counted as such even where tunnels are entered.
#[test]
fn fragments_of_tunnels_are_not_entered() {
    let mut file = std::fs::read(golden().join("ipip.pcap")).expect("a capture");
    // The first packet's outer IP header, behind the headers of file, record and Ethernet: more fragments.
    file[24 + 16 + 14 + 6] |= 0x20;
    let options = zeek::Options { tunnels: true, ignore_checksums: true, ..Default::default() };
    let summary = whole(zeek::Log::new(options), &file).summary;
    assert_eq!(summary.notes.get("ip_in_ip_tunnel_not_entered"), Some(&1));
}

/// A packet whose TCP header cannot be, with a bad checksum: one count has it, not two.
#[test]
fn a_malformed_packet_is_in_one_count() {
    let mut data = tcp(true, "S", 1, 0, 0).frame();
    // A header of 24 bytes where there are 20, which the checksum does not have either.
    data[14 + 20 + 12] = 0x60;
    let original_bytes = data.len() as u32;
    let file = pcap(&[Packet { time_us: 0, data, original_bytes }], false, false, 1);
    let summary = whole(zeek::Log::new(zeek::Options::default()), &file).summary;
    assert_eq!((summary.packets, summary.ignored_packets, summary.skipped.values().sum::<u64>()), (1, 0, 1));
}
