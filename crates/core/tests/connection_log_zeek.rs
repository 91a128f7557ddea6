//! The connection log against rules of Zeek that no published log of a capture here shows. Each test names the place in
//! Zeek's source from which its rows follow, or the log that its project has published.

mod made;
mod whole;

use etherparse::PacketBuilder;
use made::{paced, pcap, tcp, Packet, Tcp};
use twinbed_core::readers::zeek::{timers, Log, Options, Row};
use whole::whole;

const ETHERNET: u32 = 1;
const SECOND: i64 = 1_000_000_000;
const C: bool = true;
const S: bool = false;

fn read(packets: &[Packet]) -> Vec<Row> {
    let mut rows = whole(Log::new(Options::default()), &pcap(packets, false, false, ETHERNET)).rows;
    rows.sort_by_key(|row| row.number);
    rows
}

/// Packets at these times after the first.
fn timed(frames: impl IntoIterator<Item = (Vec<u8>, i64)>) -> Vec<Packet> {
    let (frames, times): (Vec<_>, Vec<_>) = frames.into_iter().unzip();
    let mut packets = paced(frames);
    let start_us = packets[0].time_us;
    for (packet, after_ns) in packets.iter_mut().zip(times) {
        packet.time_us = start_us + (after_ns / 1000) as u64;
    }
    packets
}

fn histories(segments: &[Tcp]) -> Vec<String> {
    read(&made::segments(segments)).iter().map(|row| row.history.as_str().to_owned()).collect()
}

fn states(rows: &[Row]) -> Vec<(&'static str, &str)> {
    rows.iter().map(|row| (row.state.name(), row.history.as_str())).collect()
}

fn after_handshake(rest: &[Tcp]) -> Vec<Tcp> {
    let handshake = [tcp(C, "S", 99, 0, 0), tcp(S, "SA", 499, 100, 0), tcp(C, "A", 100, 500, 0)];
    [&handshake[..], rest].concat()
}

fn between(from: [u8; 4], to: [u8; 4]) -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv4(from, to, 64)
}

fn datagram(from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
    let mut frame = Vec::new();
    between(from.0, to.0).udp(from.1, to.1).write(&mut frame, b"payload").expect("a packet");
    frame
}

/// A segment between ports that [`tcp`] does not have.
fn segment(from: ([u8; 4], u16), to: ([u8; 4], u16), flags: &str, payload: &[u8]) -> Vec<u8> {
    let mut step = between(from.0, to.0).tcp(from.1, to.1, 499, 1000);
    for flag in flags.chars() {
        step = match flag {
            'S' => step.syn(),
            'A' => step.ack(100),
            'F' => step.fin(),
            'R' => step.rst(),
            other => panic!("flag {other}"),
        };
    }
    let mut frame = Vec::new();
    step.write(&mut frame, payload).expect("a packet");
    frame
}

const ONE: [u8; 4] = [10, 0, 0, 1];
const OTHER: [u8; 4] = [10, 0, 0, 2];

/// `TCPSessionAdapter::IsReuse`: any SYN, where `IsClosed`, which is `orig->did_close || resp->did_close`.
#[test]
fn a_syn_after_either_side_has_closed_begins_a_connection() {
    // One port is tried six times within the 5 s for which Zeek remembers a rejected connection.
    let tries = (0..6u32).flat_map(|n| [tcp(C, "S", 99 + n * 1000, 0, 0), tcp(S, "RA", 0, 100 + n * 1000, 0)]);
    assert_eq!(states(&read(&made::segments(&tries.collect::<Vec<_>>()))), [("REJ", "Sr"); 6]);
    // With the number that the closed connection had, too.
    let refused = [tcp(C, "S", 99, 0, 0), tcp(S, "RA", 0, 100, 0)];
    assert_eq!(histories(&[refused, refused].concat()), ["Sr", "Sr"]);
    let again = tcp(C, "S", 99, 0, 0);
    for (close, history) in [
        (tcp(C, "FA", 100, 500, 0), "ShAF"),
        (tcp(S, "FA", 500, 100, 0), "ShAf"),
        (tcp(C, "R", 100, 0, 0), "ShAR"),
        (tcp(S, "R", 500, 0, 0), "ShAr"),
    ] {
        assert_eq!(histories(&after_handshake(&[close, again])), [history, "S"]);
    }
    assert_eq!(histories(&[tcp(C, "SR", 99, 0, 0), tcp(C, "SR", 99, 0, 0)]), ["Q", "Q"]);
    // The other side's SYN begins one of its own.
    let rows = read(&made::segments(&after_handshake(&[tcp(S, "FA", 500, 100, 0), tcp(S, "S", 7000, 0, 0)])));
    assert_eq!(states(&rows), [("S3", "ShAf"), ("S0", "S")]);
    assert_eq!((rows[0].originator_port, rows[1].originator_port), (40000, 80));
}

/// `IsReuse` of connections that are open: the number is held against the originator's first, whoever sends the SYN;
/// SYN+ACK counts only where nothing of the originator was seen.
#[test]
fn a_syn_with_another_number_than_the_originators_begins_a_connection() {
    assert_eq!(histories(&[tcp(C, "S", 99, 0, 0), tcp(S, "S", 499, 0, 0)]), ["S", "S"]);
    assert_eq!(histories(&[tcp(C, "S", 99, 0, 0), tcp(S, "S", 99, 0, 0)]), ["Ss"]);
    assert_eq!(histories(&[tcp(S, "SA", 499, 100, 0), tcp(S, "SA", 499, 100, 0)]), ["^h"]);
    assert_eq!(histories(&[tcp(S, "SA", 499, 100, 0), tcp(S, "SA", 700, 100, 0)]), ["^h", "^h"]);
    assert_eq!(histories(&after_handshake(&[tcp(S, "SA", 700, 100, 0)])), ["ShA"]);
}

/// `init_endpoint` puts the first number of a side anew at such a SYN, and `update_history` writes the letter again only
/// for another distance from it: never. `H` and `S` are one event (`HIST_SYN_PKT`).
#[test]
fn a_syn_is_written_once() {
    let other_number = [tcp(C, "S", 99, 0, 0), tcp(S, "SA", 499, 100, 0), tcp(S, "SA", 9_000_000, 100, 0)];
    assert_eq!(histories(&other_number), ["Sh"]);
    let row = &read(&made::segments(&[&other_number[..], &[tcp(S, "A", 9_000_001, 100, 30)]].concat()))[0];
    assert_eq!((row.responder_bytes, row.missed_bytes), (Some(30), 0));
    assert_eq!(histories(&[tcp(C, "S", 99, 0, 0), tcp(C, "SA", 99, 500, 0)]), ["S"]);
    // A side that has closed keeps its first number, so that a SYN+ACK with another is written.
    let closed = after_handshake(&[tcp(S, "FA", 500, 100, 0), tcp(S, "SA", 700, 100, 0)]);
    assert_eq!(histories(&closed), ["ShAfh"]);
}

/// `IPBasedAnalyzer::NewConn`: `flip && ! id->dst_addr.IsBroadcast()`; a group is no more a client than all hosts are.
#[test]
fn roles_are_not_turned_for_broadcast_and_multicast() {
    let row = |frame| read(&paced([frame])).remove(0);
    for group in [[255, 255, 255, 255], [224, 0, 1, 1], [239, 255, 255, 250]] {
        // An offer of DHCP, for one.
        let row = row(datagram((ONE, 67), (group, 68)));
        assert_eq!((row.state.name(), row.history.as_str(), row.originator_port), ("S0", "D", 67), "{group:?}");
    }
    let answer = row(datagram((ONE, 67), (OTHER, 68)));
    assert_eq!((answer.state.name(), answer.history.as_str(), answer.originator_port), ("SHR", "^d", 68));
    let mut frame = Vec::new();
    let (from, mut group) = ([0x20; 16], [0; 16]);
    (group[0], group[15]) = (0xff, 1);
    let step = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv6(from, group, 64);
    step.udp(53, 5000).write(&mut frame, b"payload").expect("a packet");
    let row = row(frame);
    assert_eq!((row.state.name(), row.history.as_str(), row.originator_port), ("S0", "D", 53));
}

/// `TCPAnalyzer::WantConnection`: of two ports of servers the lower one is the responder's, but not for a SYN+ACK. Of
/// UDP, `UDPAnalyzer::WantConnection` leaves two such ports as they are.
#[test]
fn of_two_server_ports_the_lower_is_the_responders() {
    let of = |frame| {
        let row = read(&paced([frame])).remove(0);
        (row.originator_port, row.responder_port, row.history.as_str().to_owned())
    };
    let (low, high) = ((ONE, 80), (OTHER, 443));
    assert_eq!(of(segment(low, high, "A", b"data")), (443, 80, "^d".into()));
    assert_eq!(of(segment(high, low, "A", b"data")), (443, 80, "D".into()));
    assert_eq!(of(segment(low, high, "SA", b"")), (80, 443, "H".into()));
    assert_eq!(of(segment(low, high, "S", b"")), (80, 443, "S".into()));
    assert_eq!(of(segment((ONE, 443), (OTHER, 443), "A", b"data")), (443, 443, "D".into()));
    assert_eq!(of(datagram((ONE, 53), (OTHER, 123))), (53, 123, "D".into()));
}

/// The script reference of `base/init-bare.zeek` names the scripts that add to `likely_server_ports`. Those of MySQL, POP3,
/// Telnet and TFTP do not, that of DHCP adds 67 alone, and that of RDP adds UDP.
#[test]
fn ports_of_servers_are_those_of_zeeks_scripts() {
    let is_turned = |frame| read(&paced([frame])).remove(0).history.as_str().starts_with('^');
    let client = (ONE, 50_000);
    let of_tcp = |port| is_turned(segment((OTHER, port), client, "A", b"data"));
    let of_udp = |port| is_turned(datagram((OTHER, port), client));
    assert!([21, 22, 25, 79, 80, 88, 443, 1080, 1883, 3389, 5432, 6379, 6666, 6669, 8888].into_iter().all(of_tcp));
    assert!(![20, 23, 43, 110, 111, 1434, 3306, 5060, 6665, 6670].into_iter().any(of_tcp));
    assert!([53, 67, 88, 123, 137, 389, 443, 514, 1812, 3389, 4789, 5060, 5353, 6081].into_iter().all(of_udp));
    assert!(![68, 69, 111, 4011].into_iter().any(of_udp));
}

/// Zeek's pull request 2191: a connection that begins with a SYN+ACK between other ports is turned when an ACK or data
/// follow, from either side, since no scan sends such. Zeek 8.0 prints `^haf` of `one-sided-2745.pcap`, in which only the
/// responder sends (pull request 5047, which gives it the packets that 8.0 gave the originator).
#[test]
fn a_syn_ack_that_goes_on_is_turned() {
    let (server, client) = ((ONE, 2745), (OTHER, 1433 + 20_000));
    let alone =
        [segment(server, client, "SA", b""), segment(server, client, "A", b""), segment(server, client, "FA", b"")];
    let row = read(&paced(alone)).remove(0);
    assert_eq!((row.originator_port, row.history.as_str()), (client.1, "^haf"));
    assert_eq!((row.originator.packets, row.responder.packets, row.responder.ip_bytes), (0, 3, 120));
    let answered = read(&paced([segment(server, client, "SA", b""), segment(client, server, "A", b"")])).remove(0);
    assert_eq!((answered.originator_port, answered.history.as_str(), answered.state.name()), (client.1, "^hA", "S1"));
    let damaged = {
        let mut damaged = segment(server, client, "A", b"");
        damaged[50] ^= 1;
        read(&paced([segment(server, client, "SA", b""), damaged, segment(client, server, "A", b"")])).remove(0)
    };
    assert_eq!((damaged.originator_port, damaged.history.as_str()), (client.1, "HC^A"));
    let scan = read(&paced([segment(server, client, "SA", b""), segment(client, server, "R", b"")])).remove(0);
    assert_eq!((scan.originator_port, scan.history.as_str()), (server.1, "Hr"));
}

/// `TCP_Reassembler::Gap` and `established_or_cleanly_closing`: a side that has sent its FIN is still clean, so that a gap
/// that the last acknowledgment shows is written, where it is acknowledged (`Process`: after the flags' letter).
#[test]
fn missed_bytes_at_the_end_are_written() {
    let data = tcp(C, "A", 100, 500, 20);
    let answer = tcp(S, "A", 500, 120, 0);
    // 100 bytes before the FIN are not in the capture.
    let fin = tcp(S, "FA", 600, 120, 0);
    let last = tcp(C, "A", 120, 601, 0);
    let row = &read(&made::segments(&after_handshake(&[data, answer, fin, last, tcp(C, "FA", 120, 601, 0)])))[0];
    assert_eq!((row.state.name(), row.history.as_str(), row.missed_bytes), ("SF", "ShADafgF", 100));
    let row = &read(&made::segments(&after_handshake(&[data, answer, fin, tcp(C, "FA", 120, 601, 0)])))[0];
    assert_eq!((row.state.name(), row.history.as_str(), row.missed_bytes), ("SF", "ShADafFg", 100));
    // A RST is not a clean end.
    let row = &read(&made::segments(&after_handshake(&[data, answer, fin, tcp(C, "RA", 120, 601, 0)])))[0];
    assert_eq!((row.state.name(), row.history.as_str(), row.missed_bytes), ("RSTO", "ShADafR", 0));
}

/// Zeek's log of `tcp/miss_end_data.pcap` (baseline `core.tcp.miss-end-data/conn.log`): 538 bytes, and 2902 that are not in
/// the capture; 5 and 4 packets; SF, `ShADafgF`. The packets here are those that give these counts.
#[test]
fn zeeks_log_of_data_missed_at_the_end() {
    let rest = [
        tcp(C, "A", 100, 500, 538),
        tcp(S, "A", 500, 638, 0),
        tcp(S, "FA", 500 + 2902, 638, 0),
        tcp(C, "A", 638, 500 + 2903, 0),
        tcp(C, "FA", 638, 500 + 2903, 0),
        tcp(S, "A", 500 + 2903, 639, 0),
    ];
    let row = read(&made::segments(&after_handshake(&rest))).remove(0);
    assert_eq!((row.state.name(), row.history.as_str(), row.missed_bytes), ("SF", "ShADafgF", 2902));
    assert_eq!((row.originator_bytes, row.responder_bytes), (Some(538), Some(2902)));
    assert_eq!((row.originator.packets, row.responder.packets), (5, 4));
}

/// Zeek's log of `tcp/http-on-irc-port-missing-syn.pcap` (baseline `core.tcp.flip-without-syn/conn.log`): the connection of
/// `zeek-get.pcap` without its SYN and with the client's port 6669, also a port of servers. Lengths of headers are not
/// compared, as that trace was written anew without some options.
#[test]
fn zeeks_log_of_a_connection_turned_without_a_syn() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/captures/zeek-get.pcap");
    let bytes = std::fs::read(golden).expect("a golden capture");
    let mut packets = Vec::new();
    twinbed_core::capture::read_slice(&bytes, |frame| {
        let mut data = frame.data.to_vec();
        for at in [34, 36] {
            if data[at..at + 2] == 59856u16.to_be_bytes() {
                data[at..at + 2].copy_from_slice(&6669u16.to_be_bytes());
            }
        }
        let time_us = (frame.time_ns.expect("a time") / 1000) as u64;
        packets.push(Packet { time_us, data, original_bytes: frame.original_bytes });
    })
    .expect("a capture");
    let file = pcap(&packets[1..], false, false, ETHERNET);
    let options = Options { ignore_checksums: true, ..Options::default() };
    let row = whole(Log::new(options), &file).rows.remove(0);
    assert_eq!((row.originator_address.to_string().as_str(), row.originator_port), ("141.142.228.5", 6669));
    assert_eq!((row.state.name(), row.history.as_str(), row.duration_ns), ("SF", "^hADadFf", Some(141_744_000)));
    assert_eq!((row.originator_bytes, row.responder_bytes, row.missed_bytes), (Some(136), Some(5007), 0));
    assert_eq!((row.originator.packets, row.responder.packets), (6, 7));
}

/// The end of baseline `core.tcp.fin-rst-timeout/conn.log`, `FRfr`: SF, since the peer's FIN makes the RST a normal end.
#[test]
fn a_fin_after_fin_and_rst_is_a_normal_end() {
    let end = [tcp(C, "FA", 100, 500, 0), tcp(C, "R", 101, 0, 0), tcp(S, "FA", 500, 101, 0), tcp(S, "R", 501, 0, 0)];
    assert_eq!(states(&read(&made::segments(&after_handshake(&end)))), [("SF", "ShAFRfr")]);
}

/// `TCP_Reassembler::Undelivered` reports each hole, so that one acknowledgment of ten holes is the 1st to the 10th gap.
#[test]
fn each_hole_is_a_gap() {
    let parts = |count: u32| {
        let mut parts: Vec<Tcp> = (0..count).map(|n| tcp(C, "A", 110 + n * 20, 500, 10)).collect();
        parts.push(tcp(S, "A", 500, 100 + count * 20, 0));
        let row = read(&made::segments(&after_handshake(&parts))).remove(0);
        (row.history.as_str().to_owned(), row.missed_bytes)
    };
    assert_eq!(parts(1), ("ShADaG".into(), 10));
    assert_eq!(parts(9), ("ShADaG".into(), 90));
    assert_eq!(parts(10), ("ShADaGG".into(), 100));
}

/// `DNS_Analyzer::ExpireTimer`: each `dns_session_timeout` (10 s) after the first packet, a connection that has been
/// silent for 9 s by then ends. The ports are those of `scripts/base/protocols/dns/main.zeek`, of the responder.
#[test]
fn dns_ends_at_its_own_timer() {
    let rows = |port: u16, times: &[i64]| {
        read(&timed(times.iter().map(|time| (datagram((ONE, 5000), (OTHER, port)), *time)))).len()
    };
    const US: i64 = 1000;
    for port in [53, 137, 5353, 5355] {
        assert_eq!(rows(port, &[0, 10 * SECOND - US]), 1);
        assert_eq!(rows(port, &[0, 10 * SECOND]), 2);
        // Silent for 9 s at the first look, and for less.
        assert_eq!(rows(port, &[0, SECOND, 10 * SECOND]), 2);
        assert_eq!(rows(port, &[0, SECOND + US, 20 * SECOND - US]), 1);
        assert_eq!(rows(port, &[0, SECOND + US, 20 * SECOND]), 2);
    }
    // NTP, as all else over UDP: 60 s.
    assert_eq!(rows(123, &[0, timers::UDP_INACTIVITY_TIMEOUT - US]), 1);
    assert_eq!(rows(123, &[0, timers::UDP_INACTIVITY_TIMEOUT]), 2);
    // From the server's port to a client's: the roles are turned first.
    let answers = [0, 10 * SECOND].map(|time| (datagram((OTHER, 53), (ONE, 5000)), time));
    assert_eq!(read(&timed(answers)).len(), 2);
}

/// `TCPSessionAdapter::ConnectionClosed`: a close is complete, too, where the peer is inactive; `tcp_close_delay` (5 s)
/// follows.
#[test]
fn a_close_without_a_peer_is_complete() {
    let fin = tcp(C, "FA", 100, 500, 0).frame();
    let data = tcp(C, "A", 101, 500, 5).frame();
    let rows = |after| read(&timed([(fin.clone(), 0), (data.clone(), after)])).len();
    assert_eq!((rows(5 * SECOND - 1000), rows(5 * SECOND)), (1, 2));
}
