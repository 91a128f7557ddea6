//! Reads a capture as often as asked and prints what was found and how fast:
//! `cargo run --release -p twinbed-core --example connections -- FILE [TIMES]`.

use std::time::Instant;

use twinbed_core::flow::{connections, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("a capture file is needed")?;
    let times: u32 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let bytes = std::fs::read(path)?;
    for _ in 0..times {
        let started = Instant::now();
        let capture = connections(&bytes, &Options::default())?;
        let elapsed_s = started.elapsed().as_secs_f64();
        let packets = capture.summary.packets;
        println!(
            "{} connections, {packets} packets, {:.2} million packets/s, {:.2} GB/s",
            capture.connections.len(),
            packets as f64 / elapsed_s / 1e6,
            bytes.len() as f64 / elapsed_s / 1e9,
        );
        if times == 1 {
            println!("{:#?}\n{:#?}", capture.summary, capture.connections);
        }
    }
    Ok(())
}
