//! `events`: how often the kernel's tracepoints of networking were hit, by device, and how long guests were left. EVENTS.md has
//! the format.
//!
//! A program on a tracepoint costs 45 ns a hit, and a packet hits ten on its way through a switch. So the programs are attached
//! for a share of the time alone: one window in each period, at a time in it that is drawn at random.

mod kvm;
mod moment;
mod net;
mod output;

use std::io::{self, Write};

use crate::arguments::{number, Arguments};
use crate::bpf::kernel;
use crate::failure::{Failure, Outcome, Tried};
use crate::stop::Stop;
use crate::sys;
use moment::Moment;
use output::Time;

const LONGEST_PERIOD_NS: i64 = sys::NS_PER_S;
/// Each is twice as long as the one before until they have their length, so that short runs have windows too.
const FIRST_PERIOD_NS: i64 = LONGEST_PERIOD_NS / 8;

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let out = arguments.required("--out")?;
    let share: f64 = number("--share", &arguments.required("--share")?)?;
    arguments.finish()?;
    if !(0.001..=1.0).contains(&share) {
        return Err(Failure::new(format!("--share takes 0.001 to 1, not {share}")));
    }
    // Signals are blocked before anything else, so that one at any time is an orderly end.
    let stop = Stop::block().tried(|| "block signals")?;
    crate::bpf::lift_memory_limit();
    let mut net = net::Counting::load();
    let mut kvm = kvm::Timing::load();
    let always = share == 1.0;
    let mut time = Time { start: Moment::now(), end: Moment::default(), share, windows: 0 };
    if always {
        attach(&mut net, &mut kvm, &mut time)?;
    }
    let mut stdout = io::stdout();
    let written = stdout.write_all(b"ready\n").and_then(|()| stdout.flush());
    written.tried(|| "write to standard output")?;
    if always {
        stop.wait().tried(|| "wait for a signal")?;
        detach(&mut net, &mut kvm)?;
    } else {
        in_windows(&stop, &mut net, &mut kvm, &mut time)?;
    }
    time.end = Moment::now();
    let text = output::text(&time, &net, &kvm)?;
    std::fs::write(&out, text).tried(|| format!("write {out}"))
}

/// Until told to stop.
fn in_windows(stop: &Stop, net: &mut net::Counting, kvm: &mut Outcome<kvm::Timing>, time: &mut Time) -> Outcome<()> {
    let mut period = time.start.ns;
    let mut period_ns = FIRST_PERIOD_NS;
    loop {
        let window_ns = (period_ns as f64 * time.share) as i64;
        let begin = period + random_below(period_ns - window_ns)?;
        if stop.wait_until(begin) {
            return Ok(());
        }
        attach(net, kvm, time)?;
        let stopped = stop.wait_until(begin + window_ns);
        detach(net, kvm)?;
        if stopped {
            return Ok(());
        }
        // A period that was missed is left out, not made up for.
        period = sys::monotonic_ns().max(period + period_ns);
        period_ns = LONGEST_PERIOD_NS.min(2 * period_ns);
    }
}

fn attach(net: &mut net::Counting, kvm: &mut Outcome<kvm::Timing>, time: &mut Time) -> Outcome<()> {
    time.windows += 1;
    net.attach()?;
    kvm.as_mut().map_or(Ok(()), kvm::Timing::attach)
}

fn detach(net: &mut net::Counting, kvm: &mut Outcome<kvm::Timing>) -> Outcome<()> {
    net.detach();
    if let Ok(kvm) = kvm {
        kvm.detach();
    }
    kernel::settle()
}

fn random_below(limit: i64) -> Outcome<i64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer has that many bytes.
    let length = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    sys::check(length as i32).tried(|| "draw a number")?;
    Ok((u64::from_ne_bytes(bytes) % limit.max(1) as u64) as i64)
}
