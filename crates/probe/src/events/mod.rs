//! `events`: how often the kernel's tracepoints of networking were hit, by device, and how long guests were left. EVENTS.md has
//! the format.
//!
//! A program on a tracepoint costs 45 ns a hit, and a packet hits ten on its way through a switch. So the programs are attached
//! for a share of the time alone: one window in each period, at a time in it that is drawn at random.

mod kvm;
mod net;
mod output;

use std::io::{self, Write};

use crate::arguments::{number, Arguments};
use crate::bpf::kernel;
use crate::failure::{Failure, Outcome, Tried};
use crate::stop::Stop;
use crate::sys;
use output::Time;

const PERIOD_NS: i64 = sys::NS_PER_S;

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
    let window_ns = (PERIOD_NS as f64 * share) as i64;
    let mut time = Time { start_ns: sys::monotonic_ns(), ..Time::default() };
    let mut attached_at = if always { Some(attach(&mut net, &mut kvm)?) } else { None };
    let mut stdout = io::stdout();
    let written = stdout.write_all(b"ready\n").and_then(|()| stdout.flush());
    written.tried(|| "write to standard output")?;
    if always {
        stop.wait().tried(|| "wait for a signal")?;
    } else {
        let mut period = time.start_ns;
        loop {
            let begin = period + random_below(PERIOD_NS - window_ns)?;
            if stop.wait_until(begin) {
                break;
            }
            attached_at = Some(attach(&mut net, &mut kvm)?);
            if stop.wait_until(begin + window_ns) {
                break;
            }
            detach(&mut net, &mut kvm, &mut time, &mut attached_at)?;
            // A period that was missed is left out, not made up for.
            let late = sys::monotonic_ns() - period;
            period += PERIOD_NS * (late / PERIOD_NS).max(1);
        }
    }
    detach(&mut net, &mut kvm, &mut time, &mut attached_at)?;
    time.end_ns = sys::monotonic_ns();
    let text = output::text(&time, &net, &kvm)?;
    std::fs::write(&out, text).tried(|| format!("write {out}"))
}

/// The middle of the time that it takes.
fn attach(net: &mut net::Counting, kvm: &mut Outcome<kvm::Timing>) -> Outcome<i64> {
    let begun = sys::monotonic_ns();
    net.attach()?;
    if let Ok(kvm) = kvm {
        kvm.attach()?;
    }
    Ok(i64::midpoint(begun, sys::monotonic_ns()))
}

fn detach(
    net: &mut net::Counting,
    kvm: &mut Outcome<kvm::Timing>,
    time: &mut Time,
    attached_at: &mut Option<i64>,
) -> Outcome<()> {
    let Some(since) = attached_at.take() else { return Ok(()) };
    let begun = sys::monotonic_ns();
    net.detach();
    if let Ok(kvm) = kvm {
        kvm.detach();
    }
    time.attached_ns += i64::midpoint(begun, sys::monotonic_ns()) - since;
    time.windows += 1;
    kernel::settle()
}

fn random_below(limit: i64) -> Outcome<i64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer has that many bytes.
    let length = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    sys::check(length as i32).tried(|| "draw a number")?;
    Ok((u64::from_ne_bytes(bytes) % limit.max(1) as u64) as i64)
}
