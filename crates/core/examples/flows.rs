//! Reads captures and prints their connections' statistics, or with `--quiet` only how long that took.
//!
//! `cargo run --release --example flows -- [--quiet] FILE...`

use std::time::Instant;

use twinbed_core::capture::{self, Decompressed};
use twinbed_core::statistics::{Engine, Options, Row};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let quiet = arguments.first().is_some_and(|first| first == "--quiet");
    if quiet {
        arguments.remove(0);
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
