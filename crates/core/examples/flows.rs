//! Reads captures and prints their connections' statistics, or with `--quiet` only how long that took.
//!
//! `cargo run --release --example flows -- [--quiet] FILE...`, and `-- --flood COUNT` for as many half-open connections.
//! `-- --records FILE` only reads the records, `-- --headers FILE` their headers too: to count what each step costs.

use std::time::Instant;

use twinbed_core::capture::{self, Decompressed, Frame, LinkType, Origin};
use twinbed_core::readers::tcptrace::{Engine, Options, Row};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let quiet = arguments.first().is_some_and(|first| first == "--quiet");
    if quiet {
        arguments.remove(0);
    }
    if let [flag, count] = arguments.as_slice() {
        if flag == "--flood" {
            return flood(count.parse().expect("a number"));
        }
    }
    if let [step @ ("--records" | "--headers"), path] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return part(path, step == "--headers");
    }
    for path in arguments {
        let start = Instant::now();
        let mut rows = 0u64;
        let mut sink = |row: Row| {
            rows += 1;
            if quiet {
                std::hint::black_box(&row);
            } else {
                println!("{row:?}");
            }
        };
        let mut engine = Engine::new(Options::default());
        let file = std::fs::File::open(&path).expect("a readable file");
        let stream = Decompressed::new(file).expect("a capture");
        let origin = capture::read_stream(stream, |frame| engine.frame(frame, &mut sink)).expect("a whole capture");
        let summary = engine.finish(origin, &mut sink);
        let elapsed = start.elapsed();
        let per_packet = elapsed.as_nanos() as f64 / summary.packets.max(1) as f64;
        eprintln!("{path}: {} packets, {rows} connections, {elapsed:?}, {per_packet:.1} ns/packet", summary.packets);
        if quiet {
            eprintln!("notes {:?}, skipped {:?}", summary.notes, summary.skipped);
        }
    }
}

/// The first steps alone.
fn part(path: &str, with_headers: bool) {
    let options = Options::default();
    let mut bytes = 0;
    let file = std::fs::File::open(path).expect("a readable file");
    let sink = |frame: &Frame| {
        bytes += frame.data.len();
        if with_headers {
            std::hint::black_box(options.dissect(frame));
        }
    };
    capture::read_until_stop(file, sink).expect("a whole capture");
    eprintln!("{path}: {bytes} bytes captured");
}

/// SYNs of as many connections.
fn flood(count: u32) {
    let mut engine = Engine::new(Options::default());
    let mut rows = 0u64;
    let mut sink = |row: Row| {
        std::hint::black_box(&row);
        rows += 1;
    };
    let start = Instant::now();
    let mut data = [0u8; 40];
    data[0] = 0x45;
    data[3] = 40;
    data[9] = 6;
    data[32] = 0x50;
    data[33] = 2;
    for number in 0..count {
        data[12..16].copy_from_slice(&number.to_be_bytes());
        let frame = Frame { time_ns: Some(number.into()), original_bytes: 40, link: LinkType::RAW, data: &data };
        engine.frame(&frame, &mut sink);
    }
    let summary = engine.finish(Origin::default(), &mut sink);
    eprintln!("{count} SYNs, {rows} rows, {:?}, notes {:?}", start.elapsed(), summary.notes);
}
