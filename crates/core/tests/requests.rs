//! HTTP exchanges against what nginx logged, ab and curl reported, and tshark timed (tests/golden/packetisation/README.md).

mod made;
mod whole;

use std::path::{Path, PathBuf};

use made::{pcap, segments, tcp, Packet, Pieces, Tcp};
use proptest::prelude::*;
use twinbed_core::readers::http::{Analyzer, Delimited, Exchange, Options, Requests};
use twinbed_core::readers::{read_slice, read_stream};
use whole::whole;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/packetisation")
}

fn read(bytes: &[u8]) -> Requests {
    whole(Analyzer::new(Options::default()), bytes)
}

fn read_golden(capture: &str) -> Requests {
    read(&std::fs::read(folder().join(format!("{capture}.pcap"))).expect("a golden capture"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect("a golden text")
}

/// Lines of nginx's log, by connection in the order of their numbers.
fn access(capture: &str) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> =
        text(&format!("{capture}.access")).lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    rows.sort_by_key(|row| row[0].parse::<u64>().expect("a connection"));
    rows
}

/// nginx's request time, to its millisecond; the capture is the client's, so a little longer.
fn assert_nginx_agrees(capture: &str, rows: &[Exchange], with_head: bool) {
    let log = access(capture);
    assert_eq!(rows.len(), log.len(), "{capture}");
    for (row, line) in rows.iter().zip(&log) {
        let number = |at: usize| -> f64 { line[at].parse().expect("a number") };
        assert!(row.complete, "{capture} {line:?}");
        assert_eq!(row.server.payload_bytes as f64, number(2), "{capture} {line:?}: bytes sent");
        if with_head {
            assert_eq!(row.method, Some(line[4].as_str()), "{capture} {line:?}");
            assert_eq!(row.status, line[5].parse().ok(), "{capture} {line:?}");
        }
        let off_s = row.duration_s().expect("a duration") - number(1);
        assert!((-0.0011..0.005).contains(&off_s), "{capture} {line:?}: {off_s} s");
    }
}

#[test]
fn heads_delimit_every_kind_of_response() {
    let rows = read_golden("curl-full");
    assert_nginx_agrees("curl-full", &rows.exchanges, true);
    assert!(rows.exchanges.iter().all(|row| row.delimited == Delimited::Headers));
    for (row, line) in rows.exchanges.iter().zip(text("curl-full.curl.txt").lines()) {
        let cells: Vec<f64> = line.split(' ').skip(1).map(|cell| cell.parse().expect("a number")).collect();
        let [_, _, first_byte_s, total_s, header, download, request, upload] = cells[..] else { panic!("{line}") };
        // curl counts the interim response's head among the headers, and chunks without their framing.
        assert!(row.server.payload_bytes as f64 >= header + download, "{line}");
        assert_eq!(row.client.payload_bytes as f64, request + upload, "{line}");
        assert!(row.duration_s().expect("a duration") <= total_s, "{line}");
        if upload == 0.0 {
            assert!(row.time_to_first_byte_s().expect("a time") <= first_byte_s.max(total_s), "{line}");
        }
    }
}

#[test]
fn tshark_times_the_first_byte_alike() {
    let mut compared = 0;
    for capture in ["curl-full", "close"] {
        let rows = read_golden(capture).exchanges;
        let responses: Vec<(String, String)> = text(&format!("{capture}.http.tsv"))
            .lines()
            .map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>())
            .filter(|cells| cells[2] != "100")
            .map(|cells| (cells[1].clone(), cells[2].clone()))
            .collect();
        assert_eq!(rows.len(), responses.len(), "{capture}");
        for (row, (time, status)) in rows.iter().zip(&responses) {
            assert_eq!(row.status, status.parse().ok());
            // tshark has no time for a response that an interim one came before.
            if let Ok(time) = time.parse::<f64>() {
                let own = row.time_to_first_byte_s().expect("a time");
                assert!((own - time).abs() < 1e-9, "{capture}: {own} and {time}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 25, "{compared}");
}

#[test]
fn cut_heads_leave_request_lines_and_the_change_of_direction() {
    let rows = read_golden("curl-cut");
    assert_nginx_agrees("curl-cut", &rows.exchanges, true);
    assert!(rows.exchanges.iter().all(|row| row.delimited == Delimited::Direction));
    // HTTP/1.0, a connection a request.
    let rows = read_golden("close");
    assert_eq!((rows.connections.len(), rows.exchanges.len()), (20, 20));
    assert!(text("close.ab.txt").contains("Complete requests:      20\n"));
    assert_nginx_agrees("close", &rows.exchanges, true);
    // Each packet is in one exchange.
    let packets: u64 = rows.exchanges.iter().map(|row| row.client.packets + row.server.packets).sum();
    assert_eq!(packets, rows.summary.packets);
}

#[test]
fn without_any_payload_the_change_of_direction_alone() {
    let rows = read_golden("keep-bare");
    assert!(text("keep-bare.ab.txt").contains("Complete requests:      40\n"));
    assert_eq!((rows.connections.len(), rows.exchanges.len()), (2, 40));
    assert!(rows.exchanges.iter().all(|row| row.method.is_none() && row.delimited == Delimited::Direction));
    let packets: u64 = rows.exchanges.iter().map(|row| row.client.packets + row.server.packets).sum();
    assert_eq!(packets, rows.summary.packets);
    let sent: u64 = rows.exchanges.iter().map(|row| row.server.payload_bytes).sum();
    let logged: u64 = access("keep-bare").iter().map(|line| line[2].parse::<u64>().expect("bytes")).sum();
    assert_eq!(sent, logged);
    // An upload that waits for "100 Continue" looks like two exchanges then.
    assert_eq!(read_golden("curl-bare").exchanges.len(), access("curl-bare").len() + 1);
}

#[test]
fn pipelined_requests_are_told_apart_by_their_heads() {
    let rows = read_golden("pipeline-full").exchanges;
    let log = access("pipeline-full");
    assert_eq!(rows.len(), 7);
    for (row, line) in rows.iter().zip(&log) {
        assert_eq!((row.method, row.status), (Some("GET"), line[5].parse().ok()));
        assert_eq!((row.delimited, row.complete), (Delimited::Headers, true));
    }
    // Cut heads: only requests that begin a segment are seen, and none more than there were.
    let cut = read_golden("pipeline-cut").exchanges;
    assert!((2..=7).contains(&cut.len()), "{}", cut.len());
}

#[test]
fn offloads_change_neither_requests_nor_their_wire_packets() {
    let (on, off) = (read_golden("small-on"), read_golden("small-off"));
    let server = |rows: &Requests| rows.exchanges.iter().map(|row| row.server.wire_packets).collect::<Vec<_>>();
    assert_eq!(on.exchanges.len(), 30);
    let (on, off) = (server(&on), server(&off));
    assert_eq!(on.iter().sum::<u64>(), off.iter().sum::<u64>());
}

/// A segment with these bytes.
fn with_text(segment: Tcp, text: &str) -> Vec<u8> {
    let segment = Tcp { payload_bytes: text.len(), ..segment };
    let mut frame = segment.frame();
    let at = frame.len() - text.len();
    frame[at..].copy_from_slice(text.as_bytes());
    frame
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";

/// Two exchanges on one connection; the responses in two segments each.
fn two_exchanges() -> Vec<Vec<u8>> {
    let (get, ok) = (GET.len() as u32, OK.len() as u32);
    let (head, body) = OK.split_at(20);
    let mut list = vec![tcp(true, "S", 0, 0, 0).frame(), tcp(false, "SA", 0, 1, 0).frame()];
    for turn in 0..2 {
        let (client, server) = (1 + turn * get, 1 + turn * ok);
        list.push(with_text(tcp(true, "A", client, server, 0), GET));
        list.push(with_text(tcp(false, "A", server, client + get, 0), head));
        list.push(with_text(tcp(false, "A", server + 20, client + get, 0), body));
    }
    list.push(tcp(true, "FA", 1 + 2 * get, 1 + 2 * ok, 0).frame());
    list.push(tcp(false, "FA", 1 + 2 * ok, 2 + 2 * get, 0).frame());
    list
}

fn times(rows: &Requests) -> Vec<(Option<f64>, Option<f64>)> {
    rows.exchanges.iter().map(|row| (row.time_to_first_byte_s(), row.duration_s())).collect()
}

#[test]
fn repeated_and_reordered_segments_make_no_exchange() {
    let plain = two_exchanges();
    // A packet a millisecond.
    let rows = read(&pcap(&made::paced(plain.clone()), false, false, 1));
    assert_eq!(times(&rows), [(Some(0.001), Some(0.002)); 2]);
    // The first request again after its response, and the response's halves the other way round.
    let mut disturbed = plain.clone();
    disturbed.insert(5, plain[2].clone());
    disturbed.swap(3, 4);
    for snap in [0, 54] {
        let mut packets = made::paced(disturbed.clone());
        if snap > 0 {
            packets.iter_mut().for_each(|packet| packet.data.truncate(snap));
        }
        let rows = read(&pcap(&packets, false, false, 1));
        assert_eq!(times(&rows), [(Some(0.002), Some(0.002)), (Some(0.001), Some(0.002))], "snap length {snap}");
        let packets: u64 = rows.exchanges.iter().map(|row| row.client.packets + row.server.packets).sum();
        assert_eq!(packets, rows.summary.packets);
    }
}

#[test]
fn a_response_that_ends_with_its_connection() {
    let answer = "HTTP/1.0 200 OK\r\n\r\nuntil the end";
    let (get, length) = (GET.len() as u32, answer.len() as u32);
    let mut list = vec![
        tcp(true, "S", 0, 0, 0).frame(),
        tcp(false, "SA", 0, 1, 0).frame(),
        with_text(tcp(true, "A", 1, 1, 0), GET),
        with_text(tcp(false, "A", 1, 1 + get, 0), answer),
    ];
    let cut = read(&pcap(&made::paced(list.clone()), false, false, 1));
    assert_eq!((cut.exchanges[0].complete, cut.exchanges[0].duration_s()), (false, None));
    list.push(tcp(false, "FA", 1 + length, 1 + get, 0).frame());
    let rows = read(&pcap(&made::paced(list), false, false, 1));
    assert_eq!((rows.exchanges[0].complete, rows.exchanges[0].delimited), (true, Delimited::Headers));
    assert_eq!(rows.exchanges[0].duration_s(), Some(0.001));
}

#[test]
fn what_is_not_http_has_no_row() {
    let list =
        [tcp(true, "S", 0, 0, 0), tcp(false, "SA", 0, 1, 0), tcp(true, "A", 1, 1, 40), tcp(false, "A", 1, 41, 9)];
    let rows = read(&pcap(&segments(&list), false, false, 1));
    assert_eq!((rows.exchanges.len(), rows.summary.other_connections), (0, 1));
}

/// Read with turns on the server's port.
fn read_turns(list: Vec<Vec<u8>>) -> Requests {
    let options = Options { turns: vec![80], ..Options::default() };
    whole(Analyzer::new(options), &pcap(&made::paced(list), false, false, 1))
}

#[test]
fn turns_of_another_protocol_have_the_times_of_http() {
    let http = two_exchanges();
    let other: Vec<Vec<u8>> = http
        .iter()
        .map(|frame| {
            let at = frame.windows(4).position(|bytes| matches!(bytes, b"GET " | b"HTTP"));
            let text = at.unwrap_or(frame.len());
            [&frame[..text], &vec![0xee; frame.len() - text]].concat()
        })
        .collect();
    let (as_http, turns) = (read_turns(http.clone()), read_turns(other.clone()));
    assert_eq!(times(&as_http), times(&turns));
    assert_eq!(turns.exchanges.len(), 2);
    assert!(as_http.exchanges.iter().all(|row| row.delimited == Delimited::Headers));
    for (row, known) in turns.exchanges.iter().zip(&as_http.exchanges) {
        assert_eq!((row.delimited, row.method, row.complete), (Delimited::Direction, None, true));
        assert_eq!((row.client, row.server), (known.client, known.server));
    }
    let none = read(&pcap(&made::paced(other), false, false, 1));
    assert_eq!((none.exchanges.len(), none.summary.other_connections), (0, 1), "only on ports that are asked for");
}

#[test]
fn a_greeting_of_the_server_is_no_answer() {
    let list = [
        tcp(true, "S", 0, 0, 0),
        tcp(false, "SA", 0, 1, 0),
        tcp(false, "A", 1, 1, 20),
        tcp(true, "A", 1, 21, 40),
        tcp(false, "A", 21, 41, 9),
        tcp(false, "FA", 30, 41, 0),
    ];
    let rows = read_turns(list.iter().map(|segment| segment.frame()).collect());
    assert_eq!(times(&rows), [(Some(0.001), Some(0.001))]);
    assert_eq!((rows.exchanges[0].client.payload_bytes, rows.exchanges[0].server.payload_bytes), (40, 29));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn however_segments_are_cut_the_exchanges_are_the_same(
        cuts in prop::collection::vec(1usize..40, 1..30), turns in 1u32..6,
    ) {
        // All requests in one stream, all responses in another, each cut anywhere; one direction after the other.
        let (asked, answered) = (GET.repeat(turns as usize), OK.repeat(turns as usize));
        let mut list = vec![tcp(true, "S", 0, 0, 0).frame(), tcp(false, "SA", 0, 1, 0).frame()];
        let mut cut = cuts.into_iter().cycle();
        for (client, text) in [(true, &asked), (false, &answered)] {
            let mut at = 0;
            while at < text.len() {
                let end = (at + cut.next().unwrap_or(1)).min(text.len());
                list.push(with_text(tcp(client, "A", 1 + at as u32, 1, 0), &text[at..end]));
                at = end;
            }
        }
        let rows = read(&pcap(&made::paced(list), false, false, 1));
        prop_assert_eq!(rows.exchanges.len(), turns as usize);
        for row in &rows.exchanges {
            prop_assert_eq!((row.method, row.status, row.complete), (Some("GET"), Some(200), true));
            prop_assert_eq!(row.delimited, Delimited::Headers);
        }
        let payload: u64 = rows.exchanges.iter().map(|row| row.client.payload_bytes + row.server.payload_bytes).sum();
        prop_assert_eq!(payload, (asked.len() + answered.len()) as u64);
    }

    #[test]
    fn any_bytes_in_any_chunks(
        pick in 0usize..3, cuts in prop::collection::vec((0usize..40_000, any::<u8>()), 0..12), chunk in 1usize..3000,
    ) {
        let name = ["pipeline-cut.pcap", "pipeline-full.pcap", "keep-bare.pcap"][pick];
        let mut bytes = std::fs::read(folder().join(name)).expect("a capture");
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

    #[test]
    fn every_packet_is_in_one_exchange_or_none(list in prop::collection::vec(
        (any::<bool>(), 0u32..200, 0u32..200, prop::sample::select(vec!["", GET, OK, "x", "HTTP/1.1 100 Go\r\n\r\n"])), 0..30,
    )) {
        let mut frames = vec![tcp(true, "S", 0, 0, 0).frame()];
        frames.extend(list.into_iter().map(|(client, sequence, acknowledgment, text)| {
            with_text(tcp(client, "A", sequence, acknowledgment, 0), text)
        }));
        let packets: Vec<Packet> = made::paced(frames);
        let rows = read(&pcap(&packets, false, false, 1));
        let counted: u64 = rows.exchanges.iter().map(|row| row.client.packets + row.server.packets).sum();
        prop_assert!(counted == 0 || counted == packets.len() as u64, "{} of {}", counted, packets.len());
    }
}
