//! The fuzz targets on stable Rust: mutations of real inputs, a bounded number, the same each time.

#[path = "../fuzz/targets.rs"]
mod targets;

use std::io::Write;
use std::path::Path;

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }
}

fn mutated(seed: &[u8], random: &mut Random) -> Vec<u8> {
    const ODD: [u8; 12] = [0, 1, 0xff, 0x7f, 0x80, b'-', b'%', b':', b'\n', b' ', b'9', b'('];
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] = ODD[random.below(ODD.len())],
            2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            3 => bytes.insert(at, ODD[random.below(ODD.len())]),
            4 => {
                let end = (at + random.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let end = (at + random.below(60)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copy);
            }
        }
    }
    bytes
}

fn seeds(folder: &str, keep: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    const SEED_BYTES: usize = 6000;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("a golden folder")
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&keep))
        .collect();
    paths.sort();
    let read = |path| {
        let mut bytes = std::fs::read(path).expect("a golden file");
        bytes.truncate(SEED_BYTES);
        bytes
    };
    let seeds: Vec<Vec<u8>> = paths.into_iter().map(read).collect();
    assert!(!seeds.is_empty());
    seeds
}

fn run(seeds: &[Vec<u8>], rounds: usize, target: fn(&[u8])) {
    let mut random = Random(0x7477_696e_6265_6421);
    for round in 0..rounds {
        let seed = &seeds[round % seeds.len()];
        target(&mutated(seed, &mut random));
    }
}

const CAPTURES: &str = "../../tests/golden/captures";

const KINDS: &str = "../../tests/golden/tcp";

/// Captures, and their records without the file header: targets put one in front.
fn capture_seeds(folder: &str) -> Vec<Vec<u8>> {
    let whole = seeds(folder, |name| name.ends_with(".pcap"));
    let bodies = whole.iter().map(|seed| seed[24..].to_vec()).collect::<Vec<_>>();
    [whole, bodies].concat()
}

#[test]
fn pcap() {
    run(&capture_seeds(CAPTURES), 3000, targets::pcap);
}

#[test]
fn compressed() {
    let plain = seeds(CAPTURES, |name| name.ends_with(".pcap"));
    let gzip = |seed: &Vec<u8>| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(seed).and_then(|()| encoder.finish()).expect("memory to compress into")
    };
    let zstandard = |seed: &Vec<u8>| zstd::encode_all(&seed[..], 1).expect("memory to compress into");
    let seeds: Vec<Vec<u8>> = plain.iter().map(gzip).chain(plain.iter().map(zstandard)).collect();
    run(&seeds, 1000, targets::compressed);
}

#[test]
fn statistics() {
    run(&capture_seeds(KINDS), 2000, targets::statistics);
}

#[test]
fn connections() {
    run(&capture_seeds(KINDS), 2000, targets::connections);
}

#[test]
fn packets() {
    run(&capture_seeds(KINDS), 2000, targets::packets);
}

#[test]
fn packets_of_tls() {
    run(&capture_seeds("../../tests/golden/tls"), 1000, targets::packets);
}

/// Any bytes, and real hellos: each begins after its record's header and its own.
#[test]
fn hello() {
    let captures = seeds("../../tests/golden/tls", |name| name.ends_with(".pcap"));
    let hellos: Vec<Vec<u8>> = captures
        .iter()
        .flat_map(|capture| {
            let begins = |at: &usize| matches!(capture[*at..], [22, 3, _, _, _, 1 | 2, 0, ..]);
            let places: Vec<usize> = (0..capture.len()).filter(begins).collect();
            places.into_iter().map(|at| {
                let hello = &capture[(at + 9).min(capture.len())..];
                let bytes = usize::from(u16::from_be_bytes([capture[at + 7], capture[at + 8]]));
                hello[..bytes.min(hello.len())].to_vec()
            })
        })
        .collect();
    assert!(hellos.len() > 2);
    run(&hellos, 4000, targets::hello);
}

#[test]
fn pcapng() {
    run(&seeds(CAPTURES, |name| name.ends_with(".pcapng")), 3000, targets::pcapng);
}

#[test]
fn udp() {
    run(&seeds("../../tests/golden/udp", |name| name.ends_with(".pcap")), 2000, targets::udp);
}

#[test]
fn pair() {
    let with_cut = |seed: Vec<u8>| [&[128], &seed[..]].concat();
    let tcp = seeds("../../tests/golden/pairs/relay-tcp", |name| name.ends_with(".pcap"));
    let split = seeds("../../tests/golden/pairs/router-tso", |name| name.ends_with(".pcap"));
    run(&tcp.into_iter().chain(split).map(with_cut).collect::<Vec<_>>(), 2000, targets::pair);
}

#[test]
fn ab() {
    run(&seeds("tests/golden/ab", |_| true), 4000, targets::ab);
}

#[test]
fn wrk() {
    run(&seeds("tests/golden/wrk", |_| true), 4000, targets::wrk);
}

#[test]
fn stations() {
    run(&seeds("../../tests/golden/stations", |name| name.ends_with(".stations")), 3000, targets::stations);
}

#[test]
fn counters() {
    run(&seeds("tests/golden/counters", |_| true), 3000, targets::counters);
}

#[test]
fn system_calls() {
    run(
        &seeds("tests/golden/syscall", |name| name.ends_with(".txt") || name.starts_with("probe")),
        3000,
        targets::system_calls,
    );
    // What the tracepoints are, and some hundred records.
    let mut perf = std::fs::read("tests/golden/syscall/perf-pipe.data").expect("a golden file");
    perf.truncate(20_000);
    run(&[perf], 1500, targets::system_calls);
    let whole = ["perf.data", "perf-z.data"]
        .map(|name| std::fs::read(format!("tests/golden/syscall/{name}")).expect("a golden file"));
    run(&whole, 400, targets::system_calls);
}
