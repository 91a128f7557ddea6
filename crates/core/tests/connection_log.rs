//! The connection log against Zeek's published logs (tests/golden/zeek/README.md), and against its documented rules
//! for packets made by hand.

mod made;
mod whole;

use std::path::{Path, PathBuf};

use made::{paced, pcap, tcp, Packet, Tcp};
use twinbed_core::readers::zeek::{timers, Capture, ConnectionState, Log, Options, Row};
use whole::whole;

const ETHERNET: u32 = 1;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn read_file(name: &str, ignore_checksums: bool) -> Capture {
    let bytes = std::fs::read(golden().join("captures").join(name)).expect("a golden capture");
    whole(Log::new(Options { ignore_checksums, ..Options::default() }), &bytes)
}

fn read(packets: &[Packet]) -> Capture {
    whole(Log::new(Options::default()), &pcap(packets, false, false, ETHERNET))
}

fn microseconds(ns: i64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

fn cell(row: &Row, field: &str) -> String {
    let or_unset = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    match field {
        "ts" => row.start_ns.map_or("-".to_owned(), microseconds),
        "id.orig_h" => row.originator_address.to_string(),
        "id.orig_p" => row.originator_port.to_string(),
        "id.resp_h" => row.responder_address.to_string(),
        "id.resp_p" => row.responder_port.to_string(),
        "proto" => row.protocol.name().to_owned(),
        "duration" => row.duration_ns.map_or("-".to_owned(), microseconds),
        "orig_bytes" => or_unset(row.originator_bytes),
        "resp_bytes" => or_unset(row.responder_bytes),
        "conn_state" => row.state.name().to_owned(),
        "missed_bytes" => row.missed_bytes.to_string(),
        "history" => row.history.as_str().to_owned(),
        "orig_pkts" => row.originator.packets.to_string(),
        "orig_ip_bytes" => row.originator.ip_bytes.to_string(),
        "resp_pkts" => row.responder.packets.to_string(),
        "resp_ip_bytes" => row.responder.ip_bytes.to_string(),
        other => panic!("field {other}"),
    }
}

#[test]
fn zeeks_published_logs() {
    for (capture, log, ignore_checksums) in [
        ("zeek-missing-syn.pcap", "missing-syn", true),
        ("zeek-retransmit-fast009.pcap", "retransmit-fast009", true),
        ("zeek-get.pcap", "get", false),
        ("zeek-retransmit-timeout.pcapng", "retransmit-timeout", true),
    ] {
        let text = std::fs::read_to_string(golden().join("zeek").join(format!("{log}.log"))).expect("a log");
        let mut lines = text.lines();
        let fields: Vec<&str> = lines.next().expect("fields").split('\t').skip(1).collect();
        let rows = read_file(capture, ignore_checksums).rows;
        let theirs: Vec<&str> = lines.collect();
        assert_eq!(rows.len(), theirs.len(), "{capture}");
        for (row, line) in rows.iter().zip(theirs) {
            for (field, expected) in fields.iter().zip(line.split('\t')) {
                if !expected.starts_with("XXXX") {
                    assert_eq!(cell(row, field), expected, "{capture}: {field}");
                }
            }
        }
    }
}

/// core.tcp.fin-retransmit/out: size 0, state 5 (closed), 3 packets of 156 bytes; size 0, state 6 (reset), 2 of 92.
#[test]
fn a_fin_again() {
    let row = &read_file("zeek-fin_retransmission.pcap", false).rows[0];
    assert_eq!((row.originator_bytes, row.responder_bytes), (Some(0), Some(0)));
    assert_eq!((row.originator.packets, row.originator.ip_bytes), (3, 156));
    assert_eq!((row.responder.packets, row.responder.ip_bytes), (2, 92));
    assert_eq!(row.state, ConnectionState::RstR);
}

/// The test of RSTOS0: `zeek -C -r tcp/syn-then-rst.pcap` gives SR, RSTOS0.
#[test]
fn syn_then_rst() {
    let row = &read_file("zeek-syn-then-rst.pcap", true).rows[0];
    assert_eq!((row.history.as_str(), row.state.name()), ("SR", "RSTOS0"));
}

/// No log of these is published; by the documented rules.
#[test]
fn by_the_rules() {
    let rows = |name| -> Vec<(String, &'static str)> {
        let short = |row: &Row| (row.history.as_str().to_owned(), row.state.name());
        read_file(name, false).rows.iter().map(short).collect()
    };
    // SYN+ACK first, from port 80; the SYN does not flip it again.
    assert_eq!(rows("zeek-handshake-reorder.pcap"), [("^hSADadFf".to_owned(), "SF")]);
    // SYNs at 0, 6.4, 9.3 and 12.1 s: an attempt is given up 5 s after its first.
    assert_eq!(rows("zeek-option-sack.pcap"), vec![("S".to_owned(), "S0"); 3]);
    assert_eq!(rows("zeek-window-scale-range.pcap"), [("ShADa".to_owned(), "S1")]);
    // Cut at 68 bytes: no payload longer than 14 is in the file, and the header's own cuts are not.
    assert_eq!(rows("zeek-truncated-header.pcap"), [("ShAdgDaGfF".to_owned(), "SF")]);
    let row = &read_file("zeek-content-range-gap.pcap", false).rows[0];
    // tshark: "ACKed unseen segment", from 1986 to 3366.
    assert_eq!((row.missed_bytes, row.unseen_bytes, row.history.as_str()), (1380, 1380, "ShADadgFf"));
}

/// IPv4 headers whose checksum the NIC was to write are in their rows, and counted as unfinished; other wrong ones are not.
#[test]
fn a_header_checksum_of_zero_is_offload() {
    let first = read_file("zeek-get.pcap", false);
    let (packets, bad) = (first.summary.packets, 0x1234u16);
    for (checksum, is_kept) in [(0u16, true), (bad, false)] {
        let mut bytes = std::fs::read(golden().join("captures/zeek-get.pcap")).expect("a golden capture");
        let mut at = 24;
        while at < bytes.len() {
            let captured = u32::from_le_bytes([bytes[at + 8], bytes[at + 9], bytes[at + 10], bytes[at + 11]]);
            bytes[at + 16 + 24..at + 16 + 26].copy_from_slice(&checksum.to_be_bytes());
            at += 16 + captured as usize;
        }
        let capture = whole(Log::new(Options::default()), &bytes);
        let ipv4 = capture.summary.checksums.ipv4;
        if is_kept {
            assert_eq!((ipv4.partial, ipv4.bad, capture.summary.ignored_packets), (packets, 0, 0));
            assert_eq!(capture.rows, first.rows);
        } else {
            assert_eq!((ipv4.partial, ipv4.bad, capture.summary.ignored_packets), (0, packets, packets));
            assert!(capture.rows.is_empty());
        }
    }
}

/// A capture on a host that leaves checksums to its NIC, as Zeek reads it: of what was left unfinished it has the letter alone.
/// tests/golden/checksums/expected.tsv counts them with tshark.
#[test]
fn unfinished_checksums_are_bad_where_that_is_asked() {
    let file = golden().join("checksums/veth-offload-on.pcap");
    let bytes = std::fs::read(file).expect("a golden capture");
    let zeek = whole(Log::new(Options { unfinished_are_bad: true, ..Options::default() }), &bytes);
    let ours = whole(Log::new(Options::default()), &bytes);
    let ignoring =
        whole(Log::new(Options { unfinished_are_bad: true, ignore_checksums: true, ..Options::default() }), &bytes);
    assert_eq!(ours.rows, ignoring.rows);
    assert!(ours.summary.checksums.tcp.partial > 0);
    assert_eq!(ours.summary.ignored_packets, 0);
    let unfinished = |capture: &Capture| {
        let of = &capture.summary.checksums;
        of.tcp.partial + of.udp.partial + of.icmpv6.partial
    };
    assert_eq!(zeek.summary.ignored_packets, unfinished(&zeek));
    let tcp = |row: &&Row| row.protocol.name() == "tcp";
    assert!(zeek
        .rows
        .iter()
        .filter(tcp)
        .all(|row| row.state.name() == "OTH" && row.history.as_str().contains(['C', 'c'])));
}

/// Zeek's baselines `core.checksums`: bad_TCP_checksum.
#[test]
fn a_bad_checksum_is_only_in_the_history() {
    for name in ["zeek-ip4-tcp-bad-chksum.pcap", "zeek-ip6-tcp-bad-chksum.pcap"] {
        let Capture { rows, summary } = read_file(name, false);
        assert_eq!((rows[0].history.as_str(), rows[0].state.name(), rows[0].originator.packets), ("C", "OTH", 0));
        assert_eq!((summary.checksums.tcp.bad, summary.ignored_packets), (1, 1));
        let rows = read_file(name, true).rows;
        assert_eq!((rows[0].history.as_str(), rows[0].state.name(), rows[0].originator.packets), ("S", "S0", 1));
    }
}

/// A segment of 20 bytes whose header says that it has 24: no checksum of it says anything.
#[test]
fn a_malformed_packet_is_in_one_count() {
    let mut frame = tcp(C, "S", 1, 0, 0).frame();
    frame[14 + 20 + 12] = 6 << 4;
    let Capture { rows, summary } = read(&paced([frame]));
    assert_eq!(rows.len(), 0);
    assert_eq!(summary.skipped.get("tcp_header_beyond_ip_length"), Some(&1));
    assert_eq!((summary.checksums.tcp.bad, summary.checksums.tcp.not_checked, summary.ignored_packets), (0, 1, 0));
}

const C: bool = true;
const S: bool = false;

fn shake() -> [Tcp; 3] {
    [tcp(C, "S", 99, 0, 0), tcp(S, "SA", 499, 100, 0), tcp(C, "A", 100, 500, 0)]
}

fn after_handshake(rest: &[Tcp]) -> Vec<Tcp> {
    [&shake()[..], rest].concat()
}

fn row_of(segments: &[Tcp]) -> Row {
    let rows = read(&made::segments(segments)).rows;
    assert_eq!(rows.len(), 1, "{segments:?}");
    rows.into_iter().next().expect("a row")
}

/// Client 10.0.0.1:40000, server 10.0.0.2:80.
#[test]
fn every_state() {
    let s = tcp(C, "S", 99, 0, 0);
    let h = tcp(S, "SA", 499, 100, 0);
    let c_fin = tcp(C, "FA", 100, 500, 0);
    let s_fin = tcp(S, "FA", 500, 101, 0);
    let c_rst = tcp(C, "R", 100, 0, 0);
    let s_rst = tcp(S, "RA", 500, 100, 0);
    let table: Vec<(&str, &str, Vec<Tcp>)> = vec![
        ("S0", "S", vec![s]),
        ("S0", "S", vec![s, s]),
        ("S1", "ShA", shake().to_vec()),
        ("S1", "Ss", vec![s, tcp(S, "S", 99, 0, 0)]),
        ("SF", "ShAFf", after_handshake(&[c_fin, s_fin])),
        // The last ACK is the second of its kind: not written again.
        ("SF", "ShAFf", after_handshake(&[c_fin, s_fin, tcp(C, "A", 101, 501, 0)])),
        ("REJ", "Sr", vec![s, tcp(S, "RA", 0, 100, 0)]),
        ("S2", "ShAF", after_handshake(&[c_fin])),
        ("S3", "ShAf", after_handshake(&[tcp(S, "FA", 500, 100, 0)])),
        ("RSTO", "ShAR", after_handshake(&[c_rst])),
        ("RSTR", "ShAr", after_handshake(&[s_rst])),
        ("RSTOS0", "SR", vec![s, c_rst]),
        ("RSTOS0", "SaR", vec![s, tcp(S, "A", 7, 3, 0), c_rst]),
        ("OTH", "SaFR", vec![s, tcp(S, "A", 7, 3, 0), tcp(C, "F", 100, 0, 0), c_rst]),
        ("OTH", "R", vec![c_rst]),
        ("RSTRH", "^hr", vec![h, s_rst]),
        ("SH", "SF", vec![s, c_fin]),
        ("SHR", "^hf", vec![h, s_fin]),
        ("OTH", "^h", vec![h]),
        ("OTH", "D", vec![tcp(C, "A", 100, 500, 7)]),
        ("OTH", "DdA", vec![tcp(C, "A", 100, 500, 7), tcp(S, "A", 500, 107, 9), tcp(C, "A", 107, 509, 0)]),
        ("OTH", "^dA", vec![tcp(S, "A", 500, 100, 9), tcp(C, "A", 100, 509, 0)]),
    ];
    for (state, history, segments) in table {
        let row = row_of(&segments);
        assert_eq!((row.state.name(), row.history.as_str()), (state, history), "{segments:?}");
        assert_eq!((row.originator_port, row.responder_port), (40000, 80), "{segments:?}");
    }
}

#[test]
fn every_letter() {
    let data = |client, sequence, bytes| tcp(client, "A", sequence, if client { 500 } else { 100 }, bytes);
    let again: Vec<Tcp> = (0..101).map(|_| data(C, 100, 10)).collect();
    let closed: Vec<Tcp> = (0..10).map(|_| tcp(S, "A", 500, 100, 0).window(0)).collect();
    let gaps: Vec<Tcp> = (1..=10).map(|n| tcp(S, "A", 500, 100 + n * 10, 0)).collect();
    let table: Vec<(&str, Vec<Tcp>)> = vec![
        ("ShADad", after_handshake(&[data(C, 100, 5), tcp(S, "A", 500, 105, 0), data(S, 500, 5), data(S, 505, 5)])),
        // Again when the number is another.
        ("ShAFF", after_handshake(&[tcp(C, "FA", 100, 500, 0), tcp(C, "FA", 100, 500, 0), tcp(C, "FA", 100, 500, 5)])),
        ("ShARR", after_handshake(&[tcp(C, "R", 100, 0, 0), tcp(C, "R", 101, 0, 0), tcp(C, "R", 101, 0, 0)])),
        // Payload with a FIN is no letter of its own.
        ("ShAf", after_handshake(&[tcp(S, "FA", 500, 100, 30)])),
        // The 1st, 10th and 100th of a hundred repeats.
        ("ShADTTT", after_handshake(&again)),
        ("Q", vec![tcp(C, "SF", 99, 0, 0)]),
        ("Q", vec![tcp(C, "SR", 99, 0, 0)]),
        ("ShAI", after_handshake(&[tcp(C, "FR", 100, 0, 0)])),
    ];
    for (history, segments) in table {
        assert_eq!(row_of(&segments).history.as_str(), history, "{segments:?}");
    }
    assert_eq!(row_of(&after_handshake(&closed)).history.as_str(), "ShAaww");
    let row = row_of(&after_handshake(&[&[data(C, 200, 10)][..], &gaps].concat()));
    assert_eq!(row.history.as_str(), "ShADaGG");
    assert_eq!((row.missed_bytes, row.unseen_bytes, row.originator_bytes), (100, 100, Some(110)));
}

/// The last packet before which not both sides had closed ends the duration.
#[test]
fn the_last_ack_is_not_in_the_duration() {
    let mut segments = after_handshake(&[tcp(C, "FA", 100, 500, 0), tcp(S, "FA", 500, 101, 0)]);
    assert_eq!(row_of(&segments).duration_ns, Some(4_000_000));
    segments.push(tcp(C, "A", 101, 501, 0));
    let row = row_of(&segments);
    assert_eq!((row.duration_ns, row.originator.packets), (Some(4_000_000), 4));
}

/// (segment, nanoseconds since the first packet) to rows' histories.
fn timed(segments: &[(Tcp, i64)]) -> Vec<String> {
    let mut packets = made::segments(&segments.iter().map(|(segment, _)| *segment).collect::<Vec<_>>());
    for (packet, (_, after_ns)) in packets.iter_mut().zip(segments) {
        packet.time_us = 1_700_000_000_000_000 + (after_ns / 1000) as u64;
    }
    let mut rows = read(&packets).rows;
    rows.sort_by_key(|row| row.number);
    rows.iter().map(|row| row.history.as_str().to_owned()).collect()
}

/// At the very microsecond a timer has run out; one before it has not.
#[test]
fn timers_at_their_edges() {
    const US: i64 = 1000;
    let s = tcp(C, "S", 99, 0, 0);
    let attempt = timers::TCP_ATTEMPT_DELAY;
    assert_eq!(timed(&[(s, 0), (s, attempt - US)]), ["S"]);
    assert_eq!(timed(&[(s, 0), (s, attempt)]), ["S", "S"]);
    // The first SYN's timer counts, not the last's.
    assert_eq!(timed(&[(s, 0), (s, attempt - US), (s, attempt)]), ["S", "S"]);
    // Answered: no attempt any more.
    assert_eq!(timed(&[(s, 0), (tcp(S, "SA", 499, 100, 0), US), (tcp(C, "A", 100, 500, 0), 2 * attempt)]), ["ShA"]);

    let data = tcp(C, "A", 100, 500, 9);
    let idle = timers::TCP_INACTIVITY_TIMEOUT;
    assert_eq!(timed(&[(data, 0), (data, idle - US)]), ["DT"]);
    assert_eq!(timed(&[(data, 0), (data, idle)]), ["D", "D"]);

    let fins = [(tcp(C, "FA", 100, 500, 0), 0), (tcp(S, "FA", 500, 101, 0), 0)];
    let last = tcp(C, "A", 101, 501, 0);
    let close = timers::TCP_CLOSE_DELAY;
    let closed = |at| timed(&[&fins[..], &[(last, at)]].concat());
    assert_eq!(closed(close - US), ["FfA"]);
    assert_eq!(closed(close), ["Ff", "A"]);
    // A packet in between does not put it off.
    assert_eq!(timed(&[&fins[..], &[(last, close - US), (last, close)]].concat()), ["FfA", "A"]);

    let reset = timers::TCP_RESET_DELAY;
    let rst = (tcp(S, "R", 500, 0, 0), US);
    assert_eq!(timed(&[(data, 0), rst, (data, reset)]), ["DrT"]);
    assert_eq!(timed(&[(data, 0), rst, (data, reset + US)]), ["Dr", "D"]);
}

#[test]
fn ports_used_again() {
    let histories = |segments: &[Tcp]| -> Vec<String> {
        let mut rows = read(&made::segments(segments)).rows;
        rows.sort_by_key(|row| row.number);
        rows.iter().map(|row| row.history.as_str().to_owned()).collect()
    };
    let new = tcp(C, "S", 70_000, 0, 0);
    let again = tcp(C, "S", 99, 0, 0);
    // Another number is another connection, the same is the same, unless all was closed.
    assert_eq!(histories(&after_handshake(&[new])), ["ShA", "S"]);
    assert_eq!(histories(&after_handshake(&[again])), ["ShA"]);
    let close = [tcp(C, "FA", 100, 500, 0), tcp(S, "FA", 500, 101, 0)];
    assert_eq!(histories(&after_handshake(&[close[0], close[1], again])), ["ShAFf", "S"]);
    // A SYN captured after its answer; and after what follows it.
    assert_eq!(histories(&[tcp(S, "SA", 499, 100, 0), again]), ["^hS"]);
    assert_eq!(histories(&[tcp(C, "A", 100, 500, 3), again]), ["DS"]);
    // Rows of one start time and endpoints have identifiers of their own.
    let mut packets = made::segments(&[new, again]);
    packets[1].time_us = packets[0].time_us;
    let rows = read(&packets).rows;
    assert_ne!(rows[0].uid(), rows[1].uid());
    assert!(rows.iter().all(|row| row.uid().len() == 17 && row.uid().starts_with('C')));
}

/// A SYN+ACK between unlikely ports is taken for the originator's, until the SYN that it answers comes.
#[test]
fn a_handshake_in_the_wrong_order() {
    let unlikely = |mut packets: Vec<Packet>| {
        for packet in &mut packets {
            // Port 80 becomes 30080; the checksum is not looked at.
            for at in [34, 36] {
                if packet.data[at..at + 2] == [0, 80] {
                    packet.data[at..at + 2].copy_from_slice(&30080u16.to_be_bytes());
                }
            }
        }
        let options = Options { ignore_checksums: true, ..Options::default() };
        whole(Log::new(options), &pcap(&packets, false, false, ETHERNET)).rows
    };
    let [s, h, a] = shake();
    let alone = unlikely(made::segments(&[h]));
    assert_eq!((alone[0].originator_port, alone[0].history.as_str(), alone[0].state.name()), (30080, "H", "OTH"));
    let rows = unlikely(made::segments(&[h, s, a]));
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].originator_port, rows[0].history.as_str(), rows[0].state.name()), (40000, "H^SA", "S1"));
}

#[test]
fn sequence_numbers_wrap() {
    let start = u32::MAX - 5;
    let sent = start.wrapping_add(1);
    let mut segments = vec![tcp(C, "S", start, 0, 0), tcp(S, "SA", 499, sent, 0), tcp(C, "A", sent, 500, 0)];
    for part in 0..5 {
        segments.push(tcp(C, "A", sent.wrapping_add(part * 1000), 500, 1000));
    }
    segments.push(tcp(S, "A", 500, sent.wrapping_add(5000), 0));
    let row = row_of(&segments);
    assert_eq!((row.originator_bytes, row.missed_bytes, row.history.as_str()), (Some(5000), 0, "ShADa"));
    // Acknowledgments alone lead over more than one turn.
    let steps = (1..=6u64).map(|n| tcp(S, "A", 500, 100u64.wrapping_add(n << 30) as u32, 0));
    let row = row_of(&after_handshake(&steps.collect::<Vec<_>>()));
    assert_eq!((row.originator_bytes, row.missed_bytes), (Some(6 << 30), 6 << 30));
}

/// A RST's number far away, its acknowledgment, and an acknowledgment of 0 change no size.
#[test]
fn numbers_that_are_not_believed() {
    for odd in [tcp(C, "R", 2_000_000, 0, 0), tcp(S, "RA", 500, 2_000_000, 0), tcp(S, "R", 9_000_000, 0, 50)] {
        let row = row_of(&after_handshake(&[tcp(C, "A", 100, 500, 7), odd]));
        assert_eq!((row.originator_bytes, row.responder_bytes), (Some(7), Some(0)), "{odd:?}");
    }
}

#[test]
fn udp_by_who_sent() {
    let of = |clients: &[bool]| {
        let row = read(&paced(clients.iter().map(|client| made::udp(*client, 12)))).rows.remove(0);
        (row.state.name(), row.history.as_str().to_owned(), row.originator_port, row.originator_bytes)
    };
    assert_eq!(of(&[C]), ("S0", "D".into(), 5000, None));
    assert_eq!(of(&[C, C]), ("S0", "D".into(), 5000, Some(24)));
    assert_eq!(of(&[C, S, S]), ("SF", "Dd".into(), 5000, Some(12)));
    // From port 53: an answer.
    assert_eq!(of(&[S]), ("SHR", "^d".into(), 5000, None));
}

#[test]
fn connections_at_once_are_bounded() {
    let options = Options { max_connections: 64, ..Options::default() };
    let syn = tcp(C, "S", 99, 0, 0).frame();
    let mut packets = Vec::new();
    for port in 0..1000u16 {
        let mut data = syn.clone();
        data[34..36].copy_from_slice(&(1024 + port).to_be_bytes());
        data.truncate(54);
        packets.push(Packet { time_us: 1_700_000_000_000_000 + u64::from(port), original_bytes: 60, data });
    }
    let file = pcap(&packets, false, false, ETHERNET);
    let options = Options { ignore_checksums: true, ..options };
    let Capture { rows, summary } = whole(Log::new(options), &file);
    assert_eq!((rows.len(), summary.connections), (1000, 1000));
    // Those silent the longest go first, four at a time.
    assert_eq!(summary.evicted_connections, 936);
    assert!(rows.iter().zip(0..).all(|(row, number)| row.number == number && row.state == ConnectionState::S0));
}

/// An inner packet counts instead of its carrier, if asked for (RFC 2003); the carrier has no ports.
#[test]
fn inside_a_tunnel() {
    let inner = tcp(C, "S", 99, 0, 0).frame();
    let mut outer = inner[..34].to_vec();
    outer.extend(&inner[14..]);
    let ip_bytes = (outer.len() - 14) as u16;
    outer[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
    outer[23] = 4;
    let file = pcap(&paced([outer]), false, false, ETHERNET);
    let options = |tunnels| Options { tunnels, ignore_checksums: true, ..Options::default() };
    let Capture { rows, summary } = whole(Log::new(options(false)), &file);
    assert_eq!((rows.len(), summary.skipped.get("no_transport_with_connections")), (0, Some(&1)));
    let Capture { rows, summary } = whole(Log::new(options(true)), &file);
    assert!(rows[0].is_tunnelled && rows[0].state == ConnectionState::S0);
    assert_eq!(summary.checksums.tcp.good, 1);
}
