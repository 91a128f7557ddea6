//! Compressed captures, PPP, tunnels, fragments: by etherparse's packets in headers written by hand from the RFCs.

mod engines;
mod made;

use std::io::{Cursor, Read, Write};

use engines::{read, read_within, try_read, Capture};
use made::{paced, pcap, segments, tcp, udp, Packet, Pieces};
use twinbed_core::capture::{read_until_stop, Compression, Decompressed};
use twinbed_core::readers::udp::streams;

const ETHERNET: u32 = 1;

fn frames() -> Vec<Packet> {
    segments(&[tcp(true, "S", 1, 0, 0).mss(1460), tcp(false, "SA", 1, 2, 0), tcp(true, "A", 2, 2, 9)])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory")
}

fn from_stream(bytes: Vec<u8>) -> Capture {
    let reader = Decompressed::new(Cursor::new(bytes)).expect("a stream");
    engines::read_stream(reader).expect("a capture")
}

#[test]
fn compression_changes_nothing() {
    let file = pcap(&frames(), false, false, ETHERNET);
    let expected = read(&file);
    let (first, second) = file.split_at(file.len() / 2);
    let in_two = |packed: fn(&[u8]) -> Vec<u8>| [packed(first), packed(second)].concat();
    for packed in [file.clone(), gzip(&file), zstandard(&file), in_two(gzip), in_two(zstandard)] {
        assert_eq!(from_stream(packed), expected);
    }
    assert_eq!(Compression::of(&gzip(&file)), Compression::Gzip);
    assert_eq!(Compression::of(&zstandard(&file)), Compression::Zstandard);
    assert_eq!(Compression::of(&file), Compression::None);
}

#[test]
fn a_cut_compressed_stream_is_an_error_and_no_panic() {
    let file = pcap(&frames(), false, false, ETHERNET);
    for packed in [gzip(&file), zstandard(&file)] {
        for length in 0..packed.len() {
            let mut whole = Vec::new();
            match Decompressed::new(&packed[..length]) {
                Ok(mut reader) if length >= 4 => assert!(reader.read_to_end(&mut whole).is_err(), "{length}"),
                _ => {}
            }
        }
    }
}

fn one(data: Vec<u8>, link: u32, tunnels: bool) -> Capture {
    let packet = Packet { time_us: 1, original_bytes: data.len() as u32, data };
    read_within(&pcap(&[packet], false, false, link), tunnels).expect("a capture")
}

/// The payload of the one TCP packet, on which both engines agree.
fn payload_bytes(capture: &Capture) -> u64 {
    let counted = capture.counted();
    assert_eq!(counted, capture.logged());
    let sums: Vec<_> = counted.into_values().collect();
    assert_eq!((sums.len(), sums[0][0]), (1, 1));
    sums[0][3]
}

/// The IP packet in an Ethernet frame.
fn ip(frame: &[u8]) -> &[u8] {
    &frame[14..]
}

#[test]
fn ppp_in_all_its_forms() {
    let frame = tcp(true, "A", 5, 5, 9).frame();
    let headers: [(&[u8], u32); 6] = [
        (&[0xff, 3, 0, 0x21], 9),
        (&[0, 0x21], 9),
        (&[0x21], 9),
        (&[0xff, 3, 0, 0x21], 50),
        (&[0xff, 3, 0x21], 50),
        (&[1, 0xff, 3, 0, 0x21], 204),
    ];
    for (header, link) in headers {
        let capture = one([header, ip(&frame)].concat(), link, false);
        assert_eq!(payload_bytes(&capture), 9, "{header:?}");
    }
    // PPPoE: version and type, code, session, length; LCP is no IP.
    let mut pppoe = frame[..12].to_vec();
    pppoe.extend([0x88, 0x64, 0x11, 0, 0, 1, 0, 51, 0, 0x21]);
    assert_eq!(payload_bytes(&one([&pppoe, ip(&frame)].concat(), ETHERNET, false)), 9);
    let lcp = one(vec![0xff, 3, 0xc0, 0x21, 1], 9, false);
    assert_eq!(
        (lcp.summary.not_ip.get("ppp_control"), lcp.log_summary.not_ip.get("ppp_control")),
        (Some(&1), Some(&1))
    );
    for cut in 0..3 {
        let capture = one(vec![0xff, 3, 0][..cut].to_vec(), 9, false);
        assert_eq!(capture.summary.skipped.values().sum::<u64>() + capture.summary.not_ip.values().sum::<u64>(), 1);
    }
}

/// An outer IPv4 packet in Ethernet that carries `payload`.
fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((20 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend(payload);
    frame
}

fn vxlan(inner: &[u8]) -> Vec<u8> {
    let mut payload = vec![0xc0, 0, 0x12, 0xb5];
    payload.extend((8 + 8 + inner.len() as u16).to_be_bytes());
    payload.extend([0, 0, 8, 0, 0, 0, 0, 0, 42, 0]);
    payload.extend(inner);
    outer(17, &payload)
}

#[test]
fn tunnels_are_looked_into_when_asked() {
    let frame = tcp(true, "A", 5, 5, 9).frame();
    let gre = |flags: [u8; 2], kind: [u8; 2], options: usize, inner: &[u8]| {
        outer(47, &[&flags[..], &kind, &vec![7; options], inner].concat())
    };
    let carried = [
        outer(4, ip(&frame)),
        gre([0, 0], [8, 0], 0, ip(&frame)),
        gre([0xb0, 0], [8, 0], 12, ip(&frame)),
        gre([0x20, 0], [0x65, 0x58], 4, &frame),
        vxlan(&frame),
        vxlan(&outer(4, ip(&outer(47, &[&[0, 0, 8, 0][..], ip(&frame)].concat())))),
    ];
    for data in carried {
        let inside = one(data.clone(), ETHERNET, true);
        assert_eq!((payload_bytes(&inside), inside.flows[0].a.port), (9, 40000));
        assert!(inside.log[0].is_tunnelled);
        assert_eq!(inside.summary.protocols.get(&6), Some(&1));
        let outside = one(data.clone(), ETHERNET, false);
        assert!(!outside.summary.protocols.contains_key(&6));
        for cut in 14..data.len() {
            one(data[..cut].to_vec(), ETHERNET, true);
        }
    }
    // GRE version 1 (PPTP) and a UDP port that is not VXLAN's stay closed.
    assert!(one(gre([0, 1], [8, 0], 0, ip(&frame)), ETHERNET, true).flows.is_empty());
}

/// A datagram of `bytes` payload in fragments of 16.
fn fragments(id: u16) -> Vec<Vec<u8>> {
    let datagram = ip(&udp(true, 40))[20..].to_vec();
    let parts: Vec<&[u8]> = datagram.chunks(16).collect();
    parts
        .iter()
        .enumerate()
        .map(|(at, part)| {
            let mut frame = outer(17, part);
            frame[18..20].copy_from_slice(&id.to_be_bytes());
            let more = if at + 1 < parts.len() { 0x2000 } else { 0 };
            frame[20..22].copy_from_slice(&(more | (at * 2) as u16).to_be_bytes());
            frame
        })
        .collect()
}

/// For the log a datagram is one packet, for the streams each fragment is.
#[test]
fn fragments_are_joined_to_their_first() {
    let file = |frames: Vec<Vec<u8>>| pcap(&paced(frames), false, false, ETHERNET);
    let whole = file(fragments(7));
    let capture = read(&whole);
    assert_eq!(capture.log.len(), 1);
    let counts = &capture.log[0].originator;
    assert_eq!((counts.packets, counts.ip_bytes, counts.payload_bytes), (1, 20 + 48, 40));
    assert_eq!(capture.log_summary.notes.get("ip_fragment_joined"), Some(&2));
    let flows = streams(&whole[..], &Default::default()).expect("a capture");
    let carried = &flows.rows[0].carried;
    assert_eq!((flows.rows.len(), carried.packets, carried.bytes, carried.payload_bytes), (1, 3, 60 + 48, 40));
    assert_eq!(flows.notes.get("ip_fragment_joined"), Some(&2));
    // The first one not seen, and another datagram's fragments.
    let mixed = file([&fragments(7)[..1], &fragments(8)[1..]].concat());
    let capture = read(&mixed);
    assert_eq!(capture.log[0].originator.payload_bytes, 8);
    let flows = streams(&mixed[..], &Default::default()).expect("a capture");
    assert_eq!(flows.rows[0].carried.packets, 1);
    for skipped in [&capture.log_summary.skipped, &flows.skipped] {
        assert_eq!(skipped.get("ip_fragment_without_transport_header"), Some(&2));
    }
}

/// Captures that editcap wrote from one of ours (tests/golden/other-captures/how.md): the message is the same whether
/// they are compressed or not, and however few bytes a read gives.
#[test]
fn other_programs_captures_are_named() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/other-captures");
    for (name, what) in [
        ("snoop", "a snoop capture"),
        ("netmon1", "a Network Monitor capture"),
        ("netmon2", "a Network Monitor capture"),
        ("ngsniffer", "a Sniffer capture"),
        ("ngwsniffer_2_0", "a NetXray capture"),
        ("visual", "a Visual Networks capture"),
        ("5views", "a 5Views capture"),
        ("lanalyzer", "a LANalyzer capture"),
        ("observer", "an Observer capture"),
        ("nettl", "a capture of HP-UX's nettl; `editcap -F pcap -T ether`"),
        ("k12text", "a K12 text capture; `editcap -F pcap -T ether`"),
        ("erf", "an ERF capture; `editcap -F pcap -T ether`"),
    ] {
        let remedy = if what.contains("editcap") { " converts it" } else { "; editcap converts it" };
        let bytes = std::fs::read(folder.join(format!("get.{name}"))).expect("a capture");
        let whole = try_read(&bytes).expect_err("no pcap").to_string();
        assert!(whole.contains(&format!("which looks like {what}{remedy}, expected that of pcap")), "{whole}");
        let packed = gzip(&bytes);
        for file in [&bytes, &packed] {
            let reader = Decompressed::new(&file[..]).expect("memory");
            let error = engines::read_stream(reader).expect_err("no pcap");
            assert_eq!(error.to_string(), whole);
            let stop = read_until_stop(Decompressed::new(&file[..]).expect("memory"), |_| {}).expect_err("no pcap");
            assert_eq!(stop.to_string(), whole);
        }
        let error = engines::read_stream(Pieces::new(&bytes, [3])).expect_err("no pcap");
        assert_eq!(error.to_string(), whole);
    }
}

#[test]
fn what_is_no_capture_is_told_by_what_it_looks_like() {
    let message = |bytes: &[u8]| try_read(bytes).expect_err("no capture").to_string();
    for (bytes, what) in [
        (&b"PK\x03\x04rest"[..], "a ZIP archive"),
        (b"hello, world, how are you", "text"),
        (b"{\"a\": 1}", "JSON text"),
        (b"\x7fELF\x02\x01", "a program (ELF)"),
        (&[0; 40], "zeros"),
        (&[1, 2, 3, 250, 251], "unknown binary data"),
    ] {
        assert!(
            message(bytes).contains(&format!("which looks like {what}, expected that of pcap")),
            "{}",
            message(bytes)
        );
    }
}
