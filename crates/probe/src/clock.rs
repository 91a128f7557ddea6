//! `clock`: which kernel's clock a host has, and whether that kernel says it is synchronised.
//!
//! It writes one JSON object a line: one when it starts, and one when it is told to end. The boot id is the kernel's: hosts
//! with the same boot id share their clocks. The rest is what adjtimex(2) reads, which changes nothing and needs no
//! privilege.

use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;

use serde::Serialize;

use crate::arguments::Arguments;
use crate::failure::{Outcome, Tried};
use crate::stop::Stop;
use crate::sys;

const US_PER_S: f64 = 1e6;
/// adjtimex(2): "ppm with a 16-bit fractional part".
const FREQUENCY_STEPS: f64 = 65536.0;

#[derive(Serialize)]
struct Reading {
    boot_id: Option<String>,
    monotonic_s: f64,
    realtime_s: f64,
    /// STA_UNSYNC is clear.
    synchronised: bool,
    status: i32,
    max_error_s: f64,
    estimated_error_s: f64,
    frequency_ppm: f64,
}

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let path = arguments.required("--out")?;
    arguments.finish()?;
    let stop = Stop::block().tried(|| "block signals")?;
    let mut out = File::create(&path).tried(|| format!("create {path}"))?;
    write(&mut out, &path)?;
    let mut stdout = io::stdout();
    stdout.write_all(b"ready\n").and_then(|()| stdout.flush()).tried(|| "write to standard output")?;
    stop.wait().tried(|| "wait for a signal")?;
    write(&mut out, &path)
}

fn write(out: &mut File, path: &str) -> Outcome<()> {
    let reading = read().tried(|| "read the clock by adjtimex")?;
    let mut line = serde_json::to_vec(&reading).map_err(io::Error::from).tried(|| "write JSON")?;
    line.push(b'\n');
    out.write_all(&line).tried(|| format!("write {path}"))
}

fn read() -> io::Result<Reading> {
    let mut clock = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: all zeros is a valid timex; modes 0 reads only.
    let clock = unsafe {
        sys::check(libc::adjtimex(clock.as_mut_ptr()))?;
        clock.assume_init()
    };
    Ok(Reading {
        boot_id: sys::boot_id().ok(),
        monotonic_s: sys::monotonic_s(),
        realtime_s: sys::realtime_s(),
        synchronised: clock.status & libc::STA_UNSYNC == 0,
        status: clock.status,
        max_error_s: clock.maxerror as f64 / US_PER_S,
        estimated_error_s: clock.esterror as f64 / US_PER_S,
        frequency_ppm: clock.freq as f64 / FREQUENCY_STEPS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_kernel_s_clock() {
        let reading = read().unwrap();
        assert_eq!(reading.boot_id.unwrap().len(), 36, "a UUID");
        assert!(reading.realtime_s > 1.6e9 && reading.max_error_s >= 0.0);
        assert_eq!(reading.synchronised, reading.status & libc::STA_UNSYNC == 0);
    }
}
