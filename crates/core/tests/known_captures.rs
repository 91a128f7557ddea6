//! What was sent, against what tshark and the kernel say (tests/golden/captures/README.md, tests/golden/tcp/README.md).
//! That the statistics are tcptrace's and the log is Zeek's: `statistics_tcptrace.rs`, `connection_log.rs`.

mod engines;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use engines::{add, ways, Capture, Way};
use twinbed_core::readers::packetisation::Analyzer;
use twinbed_core::readers::tcptrace::{Completeness, Row};
use whole::whole;

fn golden(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(folder)
}

fn read(name: &str) -> Capture {
    engines::read(&std::fs::read(golden("captures").join(name)).expect("a golden capture"))
}

/// What was sent in each direction of a connection.
type Connection = BTreeMap<Way, [u64; 7]>;

/// tshark's streams, in order.
fn streams(text: &str) -> Vec<Connection> {
    let mut streams = BTreeMap::<u32, Connection>::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let end = |at: usize| -> (IpAddr, u16) {
            (cells[at].parse().expect("an address"), cells[at + 1].parse().expect("a port"))
        };
        let (from, to) = (end(1), end(3));
        let values = std::array::from_fn(|at| cells[5 + at].parse().expect("a sum"));
        let stream = streams.entry(cells[0].parse().expect("a number")).or_default();
        add(stream, (from.0, from.1, to.0, to.1), values);
    }
    streams.into_values().collect()
}

fn connection(row: &Row) -> Connection {
    let mut connection = Connection::new();
    ways(row).into_iter().for_each(|(way, values)| add(&mut connection, way, values));
    connection
}

/// Connections between the same endpoints, in order.
fn by_endpoints(connections: Vec<Connection>) -> BTreeMap<BTreeSet<(IpAddr, u16)>, Vec<Connection>> {
    let mut by_ends: BTreeMap<_, Vec<Connection>> = BTreeMap::new();
    for connection in connections {
        let ends = connection.keys().flat_map(|way| [(way.0, way.1), (way.2, way.3)]).collect();
        by_ends.entry(ends).or_default().push(connection);
    }
    by_ends
}

fn sum(connections: &[Connection]) -> Connection {
    let mut sums = Connection::new();
    connections.iter().flatten().for_each(|(way, values)| add(&mut sums, *way, *values));
    sums
}

/// Where tshark's streams are not tcptrace's connections, which the statistics follow, and only sums are equal: 300 s of
/// silence, a SYN from both ends to a connection that both forgot, a SYN+ACK after a FIN.
const OTHERWISE_SPLIT: [&str; 6] = [
    "paused-300-half-closed-a.pcap",
    "paused-300-plain-a.pcap",
    "port-reuse-a.pcap",
    "port-reuse-b.pcap",
    "zeek-fin_retransmission.pcap",
    "zeek-retransmit-timeout.pcapng",
];

/// tshark counts the last fragment alone, with the payload of all; one datagram's pieces come in reverse, where the first
/// is not known yet.
const FRAGMENTED: &str = "fragmentation-a.pcap";

#[test]
fn tshark_agrees() {
    let (mut captures, mut split) = (0, BTreeSet::new());
    for folder in ["captures", "tcp"] {
        for entry in std::fs::read_dir(golden(folder)).expect("the golden folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            let Some(name) = name.strip_suffix(".tshark.tsv") else { continue };
            let theirs = streams(&std::fs::read_to_string(&path).expect("text"));
            let capture = engines::read(&std::fs::read(golden(folder).join(name)).expect("a golden capture"));
            captures += 1;
            let in_all = sum(&theirs);
            if name == FRAGMENTED {
                let packets = |sums: [u64; 4]| sums[0];
                assert!(capture.logged().into_values().map(packets).eq(in_all.into_values().map(|sums| sums[0])));
                assert_eq!(capture.log_summary.skipped["ip_fragment_without_transport_header"], 2);
                continue;
            }
            let in_all: BTreeMap<Way, [u64; 4]> =
                in_all.into_iter().map(|(way, sums)| (way, std::array::from_fn(|at| sums[at]))).collect();
            assert_eq!(capture.logged(), in_all, "{name}: packets, frame, IP and payload bytes");
            let (ours, theirs) = (by_endpoints(capture.flows.iter().map(connection).collect()), by_endpoints(theirs));
            assert!(ours.keys().eq(theirs.keys()), "{name}");
            for (ours, theirs) in ours.values().zip(theirs.values()) {
                if ours.len() == theirs.len() {
                    assert_eq!(ours, theirs, "{name}: and SYNs, FINs, RSTs");
                } else {
                    assert_eq!(sum(ours), sum(theirs), "{name}: and SYNs, FINs, RSTs");
                    split.insert(name.to_owned());
                }
            }
        }
    }
    assert!(captures > 100, "{captures}");
    assert!(split.iter().eq(OTHERWISE_SPLIT.iter()), "{split:?}");
}

/// The server's kernel counted its own retransmissions during `lossy-server.pcap`.
#[test]
fn the_kernel_agrees_on_retransmissions() {
    let text = std::fs::read_to_string(golden("captures/lossy-server.nstat.txt")).expect("nstat's output");
    let line = text.lines().find(|line| line.starts_with("TcpRetransSegs")).expect("a count");
    let kernel: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    let ours: u64 = read("lossy-server.pcap").flows.iter().map(|row| row.b.rare().rexmt_data_pkts).sum();
    assert!(kernel > 50);
    assert_eq!(ours, kernel);
}

/// What was lost between is seen as gaps filled late, not as repeats: ends differ, unique bytes do not.
#[test]
fn both_ends_of_a_lossy_path_agree_on_unique_bytes() {
    let unique = |name| -> Vec<u64> { read(name).flows.iter().map(|row| row.b.unique_bytes_sent).collect() };
    assert_eq!(unique("lossy-server.pcap"), unique("lossy-client.pcap"));
    assert!(read("lossy-client.pcap").flows.iter().all(|row| row.complete == Completeness::Yes));
}

/// By hand from `tshark -r`: the answer to a SYN came first in the file, and the SYN is missing in the other.
#[test]
fn the_originator_is_who_sent_the_syn() {
    let originator = |name| {
        let rows = read(name).log;
        assert_eq!(rows.len(), 1);
        (rows[0].originator_address.to_string(), rows[0].originator_port)
    };
    assert_eq!(originator("zeek-handshake-reorder.pcap"), ("141.142.228.5".into(), 59856));
    assert_eq!(originator("zeek-missing-syn.pcap"), ("141.42.64.125".into(), 56730));
}

/// 12 responses of 50,237 payload bytes in super-packets; without offload `ceil(payload / 1448)` each.
/// By tshark: packets above 1,500 bytes of IP have payloads 7240 and up, all multiples of 1448 but the last.
#[test]
fn super_packets_stand_for_wire_packets() {
    let bytes = std::fs::read(golden("captures/http-short.pcap")).expect("a golden capture");
    let connections = whole(Analyzer::new(Default::default()), &bytes).connections;
    assert_eq!(connections.len(), 12);
    for row in &connections {
        let (own, peer) = (&row.responder.counts, &row.originator.counts);
        assert!(own.super_packets > 0);
        // 50,237 / 1448 = 34.7 data packets, and SYN+ACK, an ACK, FIN+ACK or ACK.
        assert_eq!(own.wire_packets, 35 + own.packets - own.data_segments);
        assert_eq!(peer.wire_packets, peer.packets);
    }
}

#[test]
fn formats_of_one_capture_agree() {
    let micro = read("http-short.pcap");
    assert_eq!(micro, read("http-short-nano.pcap"));
    let merged = read("merged.pcapng");
    assert_eq!((merged.summary.interfaces, merged.log_summary.interfaces), (2, 2));
    // Numbers in a capture are all that differs.
    let rows = |captures: &[&Capture]| {
        let mut flows: Vec<Row> = captures.iter().flat_map(|capture| capture.flows.clone()).collect();
        let mut log: Vec<_> = captures.iter().flat_map(|capture| capture.log.clone()).collect();
        flows.iter_mut().for_each(|row| row.first_packet_number = 0);
        log.iter_mut().for_each(|row| row.number = 0);
        flows.sort_by_key(|row| row.first_ns);
        log.sort_by_key(|row| row.start_ns);
        (flows, log)
    };
    assert_eq!(rows(&[&merged]), rows(&[&micro, &read("cooked.pcap")]));
}
