//! The flow rows against what tcptrace, tshark and the kernel say (tests/golden/captures/README.md).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use twinbed_core::flow::{connections, Capture, Connection, DirectionCounts, Options, Protocol};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/captures")
}

fn read(name: &str) -> Capture {
    let bytes = std::fs::read(folder().join(name)).expect("a golden capture");
    connections(&bytes, &Options::default()).expect("a readable capture")
}

/// (file name of the capture, text of NAME.ending)
fn expected(ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder()).expect("the golden folder") {
        let path = entry.expect("a folder entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if let Some(capture) = name.strip_suffix(ending) {
            found.push((capture.to_owned(), std::fs::read_to_string(&path).expect("text")));
        }
    }
    found.sort();
    assert!(found.len() >= 15, "{} files {ending}", found.len());
    found
}

/// A side's address and port, then the side.
type Side<'a> = ((String, u16), &'a DirectionCounts);

fn sides(row: &Connection) -> [Side<'_>; 2] {
    [
        ((row.originator_address.to_string(), row.originator_port), &row.originator),
        ((row.responder_address.to_string(), row.responder_port), &row.responder),
    ]
}

#[test]
fn tcptrace_agrees() {
    // tcptrace takes a SYN+ACK after a FIN, and anything after four idle minutes, for a new connection.
    const SPLIT: [&str; 2] = ["zeek-fin_retransmission.pcap", "zeek-retransmit-timeout.pcapng"];
    let mut compared = 0;
    for (name, text) in expected(".tcptrace.csv") {
        if SPLIT.contains(&name.as_str()) {
            continue;
        }
        let capture = read(&name);
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let rows: Vec<BTreeMap<&str, &str>> =
            lines.map(|line| header.iter().copied().zip(line.split(',')).collect()).collect();
        let tcp: Vec<&Connection> = capture.connections.iter().filter(|row| row.protocol == Protocol::Tcp).collect();
        assert_eq!(tcp.len(), rows.len(), "{name}: connections");
        for (own, theirs) in tcp.iter().zip(&rows) {
            // tcptrace writes fd77::0001 for fd77::1.
            let host_a: std::net::IpAddr = theirs["host_a"].parse().expect("an address");
            let a = (host_a.to_string(), theirs["port_a"].parse().expect("a port"));
            let mut own_sides = sides(own);
            if own_sides[0].0 != a {
                // Whoever's packet came first is tcptrace's a, even if it answers a SYN.
                own_sides.reverse();
            }
            assert_eq!(own_sides[0].0, a, "{name}");
            for (side, way) in own_sides.iter().zip(["a2b", "b2a"]) {
                let counts = side.1;
                let number = |column: &str| -> u64 {
                    let cell = theirs[format!("{column}_{way}").as_str()];
                    cell.parse().unwrap_or_else(|_| panic!("{name}: {column}_{way} is {cell:?}"))
                };
                let pairs = [
                    (counts.packets, number("total_packets")),
                    (counts.rst_segments, number("resets_sent")),
                    (counts.pure_acks, number("pure_acks_sent")),
                    (counts.unique_payload_bytes, number("unique_bytes_sent")),
                    (counts.data_segments, number("actual_data_pkts")),
                    (counts.payload_bytes, number("actual_data_bytes")),
                    (counts.retransmitted_segments, number("rexmt_data_pkts")),
                    (counts.retransmitted_bytes + counts.retransmitted_syn_fin, number("rexmt_data_bytes")),
                    (counts.zero_window_probes, number("zwnd_probe_pkts")),
                    (counts.out_of_order_segments, number("outoforder_pkts")),
                    (u64::from(counts.max_segment_bytes), number("max_segm_size")),
                ];
                let (ours, their): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
                let what = "packets, resets, pure acks, unique bytes, data packets, data bytes, \
                            rexmt packets, rexmt bytes, probes, out of order, max segment";
                assert_eq!(ours, their, "{name} {a:?} {way}: {what}");
                let syn_fin = format!("{}/{}", counts.syn_segments, counts.fin_segments);
                assert_eq!(syn_fin, theirs[format!("SYN/FIN_pkts_sent_{way}").as_str()], "{name} {way}");
                compared += 1;
            }
            // tcptrace writes microseconds without leading zeros: 1389719042.4547 is 1389719042.004547.
            let (seconds, microseconds) = theirs["first_packet"].split_once('.').expect("a time");
            let number = |text: &str| text.parse::<i64>().expect("a number");
            let first_ns = number(seconds) * 1_000_000_000 + number(microseconds) * 1_000;
            assert_eq!(own.start_ns.map(|ns| ns / 1_000 * 1_000), Some(first_ns), "{name}: start");
        }
    }
    assert!(compared >= 90, "{compared} directions");
}

#[test]
fn tshark_agrees() {
    type Sums = BTreeMap<(String, u16, String, u16), [u64; 7]>;
    for (name, text) in expected(".tshark.tsv") {
        let mut theirs = Sums::new();
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            let port = |at: usize| cells[at].parse::<u16>().expect("a port");
            let key = (cells[1].to_owned(), port(2), cells[3].to_owned(), port(4));
            for (at, cell) in cells[5..].iter().enumerate() {
                theirs.entry(key.clone()).or_default()[at] += cell.parse::<u64>().expect("a sum");
            }
        }
        let mut ours = Sums::new();
        for row in read(&name).connections.iter().filter(|row| row.protocol == Protocol::Tcp) {
            let [one, two] = sides(row);
            for (from, to) in [(&one, &two), (&two, &one)] {
                let counts = from.1;
                if counts.packets == 0 {
                    continue;
                }
                let key = (from.0 .0.clone(), from.0 .1, to.0 .0.clone(), to.0 .1);
                let values = [
                    counts.packets,
                    counts.frame_bytes,
                    counts.bytes,
                    counts.payload_bytes,
                    counts.syn_segments,
                    counts.fin_segments,
                    counts.rst_segments,
                ];
                let sums = ours.entry(key).or_default();
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
        }
        assert_eq!(ours, theirs, "{name}: packets, frame bytes, IP bytes, payload, SYN, FIN, RST");
    }
}

/// The server's kernel counted its own retransmissions during `lossy-server.pcap`.
#[test]
fn the_kernel_agrees_on_retransmissions() {
    let text = std::fs::read_to_string(folder().join("lossy-server.nstat.txt")).expect("nstat's output");
    let line = text.lines().find(|line| line.starts_with("TcpRetransSegs")).expect("a count");
    let kernel: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    let rows = read("lossy-server.pcap").connections;
    let ours: u64 = rows.iter().map(|row| row.responder.retransmitted_segments).sum();
    assert!(kernel > 50);
    assert_eq!(ours, kernel);
}

/// What was lost between is seen as gaps filled late, not as repeats: ends differ, unique bytes do not.
#[test]
fn both_ends_of_a_lossy_path_agree_on_unique_bytes() {
    let unique =
        |name| -> Vec<u64> { read(name).connections.iter().map(|row| row.responder.unique_payload_bytes).collect() };
    assert_eq!(unique("lossy-server.pcap"), unique("lossy-client.pcap"));
    assert!(read("lossy-client.pcap").connections.iter().all(|row| row.complete && !row.reset));
}

/// By hand from `tshark -r`: the answer to a SYN came first in the file, and the SYN is missing in the other.
#[test]
fn the_originator_is_who_sent_the_syn() {
    let reordered = &read("zeek-handshake-reorder.pcap").connections;
    assert_eq!(reordered.len(), 1);
    assert_eq!(
        (reordered[0].originator_address.to_string(), reordered[0].originator_port),
        ("141.142.228.5".into(), 59856)
    );
    assert!(reordered[0].complete);
    let missing = &read("zeek-missing-syn.pcap").connections[0];
    assert_eq!((missing.originator_address.to_string(), missing.originator_port), ("141.42.64.125".into(), 56730));
    assert!(!missing.complete);
}

/// Five packets by `tshark -r`: SYN, FIN and FIN+ACK on the SYN's own number, SYN+ACK, RST.
#[test]
fn a_fin_on_the_syns_number_does_not_split() {
    let rows = read("zeek-fin_retransmission.pcap").connections;
    assert_eq!(rows.len(), 1);
    assert!(rows[0].reset && !rows[0].complete);
    assert_eq!((rows[0].originator.packets, rows[0].responder.packets), (3, 2));
}

/// By `tshark -r`, which marks the last of the three packets, 300 s later, as a retransmission of 18 bytes.
#[test]
fn a_long_idle_time_does_not_split() {
    let rows = read("zeek-retransmit-timeout.pcapng").connections;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].originator.retransmitted_segments, rows[0].originator.retransmitted_bytes), (1, 18));
}

/// 12 responses of 50,237 payload bytes in super-packets; without offload `ceil(payload / 1448)` each.
/// By tshark: packets above 1,500 bytes of IP have payloads 7240 and up, all multiples of 1448 but the last.
#[test]
fn super_packets_stand_for_wire_packets() {
    let capture = read("http-short.pcap");
    assert_eq!(capture.connections.len(), 12);
    for row in &capture.connections {
        assert!(row.responder.super_packets > 0);
        // 50,237 / 1448 = 34.7 data packets, and SYN+ACK, an ACK, FIN+ACK or ACK.
        let bare = row.responder.packets - row.responder.data_segments;
        assert_eq!(row.responder.wire_packets, 35 + bare);
        assert_eq!(row.originator.wire_packets, row.originator.packets);
    }
}

#[test]
fn formats_of_one_capture_agree() {
    let micro = read("http-short.pcap");
    assert_eq!(micro, read("http-short-nano.pcap"));
    let merged = read("merged.pcapng");
    assert_eq!(merged.summary.interfaces, 2);
    let cooked = read("cooked.pcap");
    let mut both: Vec<Connection> = micro.connections.into_iter().chain(cooked.connections).collect();
    both.sort_by_key(|row| row.start_ns);
    assert_eq!(merged.connections, both);
}
