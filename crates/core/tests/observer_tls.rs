//! JA3, JA3S and JA4 of hellos that are made here. tshark is the oracle of JA3 and JA3S of real ones
//! (tests/unit/core/test_observer_peers.py); the known answers are those that the specifications print.

mod made;
mod whole;

use etherparse::PacketBuilder;
use made::{pcap, Packet};
use proptest::prelude::*;
use twinbed_core::readers::observer::tls::hello;
use twinbed_core::readers::observer::{Host, Observed, Observer, Role};
use whole::whole;

fn short(content: &[u8]) -> Vec<u8> {
    [&[content.len() as u8], content].concat()
}

fn long(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u16).to_be_bytes(), content].concat()
}

fn numbers(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [numbers(&[kind]), long(content)].concat()
}

/// A client's hello without its header. `None`: it ends before extensions.
fn client_hello(version: u16, ciphers: &[u16], extensions: Option<&[Vec<u8>]>) -> Vec<u8> {
    let mut hello = [numbers(&[version]), vec![7; 32], short(&[9; 32]), long(&numbers(ciphers)), short(&[0])].concat();
    hello.extend(extensions.map(|all| long(&all.concat())).unwrap_or_default());
    hello
}

fn server_hello(version: u16, cipher: u16, kinds: &[u16]) -> Vec<u8> {
    let extensions: Vec<Vec<u8>> = kinds.iter().map(|kind| extension(*kind, &[])).collect();
    [numbers(&[version]), vec![7; 32], short(&[]), numbers(&[cipher]), vec![0], long(&extensions.concat())].concat()
}

const CIPHERS: [u16; 15] = [
    0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d, 0x002f,
    0x0035,
];
const KINDS: [u16; 16] = [
    0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002d, 0x000d, 0x0005, 0x0023, 0x0012, 0x002b, 0xff01, 0x000b,
    0x000a, 0x0015,
];
const ALGORITHMS: [u16; 8] = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];

/// The client of the example in FoxIO's technical details of JA4, with `algorithms`, a first protocol and `grease` added.
fn example(algorithms: &[u16], protocol: &[u8], grease: bool) -> Vec<u8> {
    let odd = |numbers: &[u16]| [if grease { &[0x0a0a][..] } else { &[] }, numbers].concat();
    let content = |kind: u16| match kind {
        0x000d => long(&numbers(&odd(algorithms))),
        0x0010 => long(&[short(protocol), short(b"http/1.1")].concat()),
        0x002b => short(&numbers(&odd(&[0x0304, 0x0303]))),
        0x000a => long(&numbers(&odd(&[0x001d, 0x0017]))),
        0x000b => short(&[0]),
        _ => Vec::new(),
    };
    let mut extensions: Vec<Vec<u8>> = KINDS.into_iter().map(|kind| extension(kind, &content(kind))).collect();
    if grease {
        extensions.insert(0, extension(0xfafa, &[]));
        extensions.push(extension(0x1a1a, &[0]));
    }
    client_hello(0x0303, &odd(&CIPHERS), Some(&extensions))
}

fn ja4(hello: &[u8]) -> String {
    hello::client(hello).expect("a hello").ja4
}

#[test]
fn ja4_is_that_of_the_specification_s_example() {
    for grease in [false, true] {
        assert_eq!(ja4(&example(&ALGORITHMS, b"h2", grease)), "t13d1516h2_8daaf6152771_e5627efa2ab1");
        assert_eq!(ja4(&example(&[], b"h2", grease)), "t13d1516h2_8daaf6152771_6d807ffa2a79");
    }
}

/// First and last characters of the first protocol, as the specification lists them.
#[test]
fn ja4_of_odd_protocols() {
    let protocols: [(&[u8], &str); 9] = [
        (b"h2", "h2"),
        (b"http/1.1", "h1"),
        (b"", "00"),
        (b"x", "xx"),
        (&[0xab], "ab"),
        (&[0xab, 0xcd], "ad"),
        (&[0x30, 0xab], "3b"),
        (&[0x30, 0x31, 0xab, 0xcd], "3d"),
        (&[0x30, 0xab, 0xcd, 0x31], "01"),
    ];
    for (protocol, shown) in protocols {
        assert_eq!(&ja4(&example(&ALGORITHMS, protocol, false))[..10], format!("t13d1516{shown}"));
    }
}

#[test]
fn ja4_of_what_is_not_offered() {
    assert_eq!(ja4(&client_hello(0x0301, &[], None)), "t10i000000_000000000000_000000000000");
    assert_eq!(&ja4(&client_hello(0x0300, &[5], Some(&[])))[..10], "ts3i010000");
    assert_eq!(&ja4(&client_hello(0x0305, &[0x0a0a; 3], Some(&[])))[..10], "t00i000000");
    let many: Vec<u16> = (1..=120).collect();
    assert_eq!(&ja4(&client_hello(0x0302, &many, None))[..10], "t11i990000");
    let name = extension(0, &long(&[&[0], &long(b"a.b")[..]].concat()));
    assert_eq!(ja4(&client_hello(0x0303, &[5], Some(&[name])))[..10], *"t12d010100");
}

/// The two examples of salesforce/ja3's README. Of JA3S: `printf 769,47,65281-0-11-35-5-16 | md5sum`.
#[test]
fn ja3_is_that_of_the_specification_s_examples() {
    let ja3 = |hello: &[u8]| hello::client(hello).expect("a hello").ja3;
    let groups = extension(10, &long(&numbers(&[23, 24, 25])));
    let formats = extension(11, &short(&[0]));
    let first = [47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4];
    let all = [extension(0, &[]), groups, formats];
    assert_eq!(ja3(&client_hello(769, &first, Some(&all))), "ada70206e40642a3e4461f35503241d5");
    let second = [4, 5, 10, 9, 100, 98, 3, 6, 19, 18, 99];
    assert_eq!(ja3(&client_hello(769, &second, None)), "de350869b8c85de67a350c8d186f11e6");
    let greased = [&[extension(0xdada, &[1])], &all[..]].concat();
    let ciphers = [&[0x5a5a], &first[..]].concat();
    assert_eq!(ja3(&client_hello(769, &ciphers, Some(&greased))), "ada70206e40642a3e4461f35503241d5");
    let server = server_hello(769, 47, &[65281, 0, 11, 35, 5, 16]);
    assert_eq!(hello::server(&server).as_deref(), Some("836ce314215654b5b1f85f97c73e506f"));
}

/// Handshake messages in records of at most so many bytes.
fn records(kind: u8, hello: &[u8], record_bytes: usize) -> Vec<u8> {
    let header = [&[kind], &(hello.len() as u32).to_be_bytes()[1..]].concat();
    let message = [&header[..], hello].concat();
    message.chunks(record_bytes).flat_map(|part| [&[22, 3, 1], &long(part)[..]].concat()).collect()
}

const FIRST: u32 = u32::MAX - 100;

fn frame(client: bool, flags: &str, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let (from, to, ports) = match client {
        true => ([10, 0, 0, 1], [10, 0, 0, 2], (40000, 443)),
        false => ([10, 0, 0, 2], [10, 0, 0, 1], (443, 40000)),
    };
    let mut tcp = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4(from, to, 64)
        .tcp(ports.0, ports.1, sequence, 500);
    for flag in flags.chars() {
        tcp = if flag == 'S' { tcp.syn() } else { tcp.ack(1) };
    }
    let mut data = Vec::new();
    tcp.write(&mut data, payload).expect("a packet");
    data
}

/// A connection in which the client sends `parts` (place in its stream, bytes) after both SYNs.
fn observe(parts: &[(usize, &[u8])], answer: &[u8], snap_length: usize) -> Observed {
    let mut frames = vec![frame(true, "S", FIRST, &[]), frame(false, "SA", 50, &[])];
    for (place, part) in parts {
        frames.push(frame(true, "A", FIRST.wrapping_add(1 + *place as u32), part));
    }
    frames.push(frame(false, "A", 51, answer));
    let packets: Vec<Packet> = frames
        .into_iter()
        .enumerate()
        .map(|(at, mut data)| {
            let original_bytes = data.len() as u32;
            data.truncate(snap_length);
            Packet { time_us: 1_700_000_000_000_000 + at as u64 * 1000, data, original_bytes }
        })
        .collect();
    whole(Observer::default(), &pcap(&packets, false, false, 1))
}

const ALL: usize = 65535;

/// Text and `seen` of a feature; `None` where there is no such row.
fn found(seen: &Observed, role: Role, name: &str) -> Option<(Option<String>, u64)> {
    let host: &Host = seen.hosts.iter().find(|host| host.role == role).expect("a host");
    host.features.iter().find(|feature| feature.name == name).map(|feature| (feature.text.clone(), feature.seen))
}

const JA4: &str = "t13d1516h2_8daaf6152771_e5627efa2ab1";

#[test]
fn both_sides_hellos_are_features_of_their_hosts() {
    let client = records(1, &example(&ALGORITHMS, b"h2", true), 16384);
    // The certificate follows in the same record.
    let server = [records(2, &server_hello(769, 47, &[65281, 0, 11, 35, 5, 16]), 16384), vec![11; 50]].concat();
    let seen = observe(&[(0, &client)], &server, ALL);
    assert_eq!(found(&seen, Role::Originator, "ja4"), Some((Some(JA4.to_owned()), 1)));
    assert!(matches!(found(&seen, Role::Originator, "ja3"), Some((Some(_), 1))));
    let ja3s = "836ce314215654b5b1f85f97c73e506f".to_owned();
    assert_eq!(found(&seen, Role::Responder, "ja3s"), Some((Some(ja3s), 1)));
    assert_eq!(found(&seen, Role::Responder, "ja4"), None);
    assert_eq!(found(&seen, Role::Originator, "ja3s"), None);
}

/// Whatever the snap length leaves, a hash is that of the whole or missing.
#[test]
fn a_hello_that_is_cut_is_missing() {
    let client = records(1, &example(&ALGORITHMS, b"h2", false), 16384);
    let server = records(2, &server_hello(769, 47, &[0]), 16384);
    let headers = 14 + 20 + 20;
    for snap_length in headers..headers + client.len() {
        let seen = observe(&[(0, &client)], &server, snap_length);
        let begun = snap_length - headers > 5;
        assert_eq!(found(&seen, Role::Originator, "ja4"), begun.then_some((None, 0)), "{snap_length}");
        assert_eq!(found(&seen, Role::Originator, "ja3"), begun.then_some((None, 0)), "{snap_length}");
    }
    assert_eq!(found(&observe(&[(0, &client)], &server, 96), Role::Responder, "ja3s"), Some((None, 0)));
    // A part in the middle that was not captured, or its end.
    for parts in [&[(0, &client[..80]), (100, &client[100..])][..], &[(0, &client[..80])]] {
        assert_eq!(found(&observe(parts, b"", ALL), Role::Originator, "ja4"), Some((None, 0)));
    }
    // The beginning: it may have been anything.
    assert_eq!(found(&observe(&[(1, &client[1..])], b"", ALL), Role::Originator, "ja4"), None);
}

#[test]
fn what_is_no_hello_has_no_row() {
    let hello = example(&ALGORITHMS, b"h2", false);
    let plain = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let alert = vec![21, 3, 1, 0, 2, 2, 40];
    let other = [&[22, 2, 1][..], &records(1, &hello, 16384)[3..]].concat();
    let empty = vec![22, 3, 1, 0, 0, 1, 0, 0, 4];
    for bytes in [plain, alert, other, empty, records(2, &hello, 16384)] {
        assert_eq!(found(&observe(&[(0, &bytes)], b"", ALL), Role::Originator, "ja4"), None, "{bytes:?}");
    }
}

/// A length that does not fit is no other hello.
#[test]
fn a_malformed_hello_is_missing() {
    let hello = example(&ALGORITHMS, b"h2", false);
    for cut in 0..hello.len() {
        // The extensions' length is the last that may be absent.
        let at_extensions = 2 + 32 + 33 + 2 + 2 * CIPHERS.len() + 2;
        assert_eq!(hello::client(&hello[..cut]).is_some(), cut == at_extensions, "{cut}");
        let seen = observe(&[(0, &records(1, &hello[..cut], 16384))], b"", ALL);
        let missing = found(&seen, Role::Originator, "ja4").is_none_or(|(text, _)| text.is_none());
        assert_eq!(missing, cut != at_extensions, "{cut}");
    }
    assert_eq!(hello::client(&[&hello[..], &[0]].concat()), None);
    let odd_list = client_hello(0x0303, &[5], Some(&[extension(10, &long(&[0, 1, 2]))]));
    assert_eq!(hello::client(&odd_list), None);
}

#[test]
fn the_most_frequent_hello_counts() {
    let common = records(1, &example(&ALGORITHMS, b"h2", false), 16384);
    let rare = records(1, &example(&[], b"h2", false), 16384);
    let mut packets = Vec::new();
    for (at, hello) in [&rare, &common, &common].into_iter().enumerate() {
        let first = 1000 * at as u32;
        for data in [frame(true, "S", first, &[]), frame(true, "A", first + 1, hello)] {
            packets.push(Packet { time_us: 1 + packets.len() as u64, original_bytes: data.len() as u32, data });
        }
    }
    let seen = whole(Observer::default(), &pcap(&packets, false, false, 1));
    assert_eq!(found(&seen, Role::Originator, "ja4"), Some((Some(JA4.to_owned()), 3)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Records of any length, segments of any length in any order, with repeats: the same hello.
    #[test]
    fn however_it_is_split(
        record_bytes in 1usize..400,
        cuts in prop::collection::btree_set(1usize..200, 0..6),
        order in prop::collection::vec(0usize..8, 0..8),
    ) {
        let bytes = records(1, &example(&ALGORITHMS, b"h2", true), record_bytes);
        let mut places: Vec<usize> = cuts.into_iter().collect();
        places.insert(0, 0);
        places.push(bytes.len());
        let pieces: Vec<(usize, &[u8])> = places.windows(2).map(|ends| (ends[0], &bytes[ends[0]..ends[1]])).collect();
        let shuffled = order.iter().map(|at| pieces[at % pieces.len()]);
        let parts: Vec<(usize, &[u8])> = shuffled.chain(pieces.iter().copied()).collect();
        let seen = observe(&parts, b"", ALL);
        prop_assert_eq!(found(&seen, Role::Originator, "ja4"), Some((Some(JA4.to_owned()), 1)));
        // Without one of the pieces it is not there.
        let lost = order.len() % pieces.len();
        let rest: Vec<(usize, &[u8])> =
            pieces.iter().enumerate().filter(|(at, _)| *at != lost).map(|(_, piece)| *piece).collect();
        let missing = found(&observe(&rest, b"", ALL), Role::Originator, "ja4").is_none_or(|(text, _)| text.is_none());
        prop_assert!(missing);
    }
}
