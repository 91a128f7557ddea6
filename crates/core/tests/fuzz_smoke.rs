//! The fuzz targets on stable Rust: mutations of real inputs, a bounded number, the same each time.

#[path = "../fuzz/targets.rs"]
mod targets;

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

#[test]
fn pcap() {
    let seeds = seeds(CAPTURES, |name| name.ends_with(".pcap"));
    run(&seeds, 3000, targets::pcap);
    // Without the file header: the target puts one in front, of a link type that the first byte chooses.
    let bodies: Vec<Vec<u8>> = seeds.iter().map(|seed| seed[24..].to_vec()).collect();
    run(&bodies, 3000, targets::pcap);
}

#[test]
fn pcapng() {
    run(&seeds(CAPTURES, |name| name.ends_with(".pcapng")), 3000, targets::pcapng);
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
