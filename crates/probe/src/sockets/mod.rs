//! `sockets`: the tcp_info of the workload's TCP sockets, sampled. SOCKETS.md has the format.
//!
//! Sockets that are known are asked for one by one at each point of the grid. New ones are searched for when the kernel's
//! counters say that a connection was opened, since a search walks the kernel's whole table of connections.

mod diag;
mod file;
mod known;
mod opened;
mod pace;
pub mod scope;

use std::io::{self, Write};

use serde::Serialize;

use crate::arguments::{number, Arguments};
use crate::failure::{Failure, Outcome, Tried};
use crate::stop::Stop;
use crate::sys::{self, NS_PER_S};
use diag::{Diag, IPV4, IPV6};
use file::Output;
use known::Sockets;
use opened::{Counters, Opened};
use pace::Pace;
use scope::Scope;

const FORMAT: &str = "twinbed-sockets 1";

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let out = arguments.required("--out")?;
    let interval_s: f64 = number("--interval", &arguments.required("--interval")?)?;
    let limit_bytes: u64 = number("--bytes", &arguments.required("--bytes")?)?;
    let limit_samples: u64 = number("--samples", &arguments.required("--samples")?)?;
    let peers = arguments.values("--peer")?;
    let without = arguments.values("--without")?;
    arguments.finish()?;
    if !(0.001..=3600.0).contains(&interval_s) {
        return Err(Failure::new(format!("--interval takes 0.001 to 3600 seconds, not {interval_s}")));
    }
    if limit_bytes == 0 || limit_samples == 0 {
        return Err(Failure::new("--bytes and --samples are at least 1"));
    }
    let scope = Scope::new(&peers, &without)?;
    // Signals are blocked before anything else, so that one at any time is an orderly end.
    let stop = Stop::block().tried(|| "block signals")?;
    let start = Moment::now();
    let interval_ns = (interval_s * NS_PER_S as f64) as i64;
    let mut counters = Counters::open()?;
    let opened = counters.opened()?;
    let head = Head { format: FORMAT, start, interval_ns, limit_bytes, limit_samples, opened, peers, without };
    let mut sampling = Sampling {
        diag: Diag::open().tried(|| "open a socket of sock_diag")?,
        counters,
        sockets: Sockets::new(Output::create(out, &json(&head)?, limit_bytes)?, scope, limit_samples),
        pace: Pace::new(start.monotonic_ns, interval_ns),
        opened,
        searches: 0,
        samples: 0,
    };
    sampling.search()?;
    let mut stdout = io::stdout();
    stdout.write_all(b"ready\n").and_then(|()| stdout.flush()).tried(|| "write to standard output")?;

    let mut used = cpu_ns();
    let mut next = sys::monotonic_ns();
    while !stop.wait_until(next) {
        let begun = sys::monotonic_ns();
        sampling.step()?;
        let before = std::mem::replace(&mut used, cpu_ns());
        next = sampling.pace.next(begun, sys::monotonic_ns(), used - before);
    }
    sampling.step()?;
    sampling.end()
}

/// Of this process, since it started.
fn cpu_ns() -> i64 {
    sys::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[derive(Clone, Copy, Serialize)]
struct Moment {
    monotonic_ns: i64,
    realtime_ns: i64,
}

impl Moment {
    fn now() -> Self {
        Moment { monotonic_ns: sys::monotonic_ns(), realtime_ns: sys::clock_ns(libc::CLOCK_REALTIME) }
    }
}

#[derive(Serialize)]
struct Head {
    format: &'static str,
    start: Moment,
    interval_ns: i64,
    limit_bytes: u64,
    limit_samples: u64,
    opened: Opened,
    peers: Vec<String>,
    without: Vec<String>,
}

#[derive(Serialize)]
struct End {
    end: Moment,
    opened: Opened,
    /// Of the workload, with a sample.
    sockets: u32,
    /// That were opened after the start, seen, and not the workload's.
    left_out: u64,
    searches: u64,
    samples: u64,
    /// Points of the grid that were left out.
    skipped: u64,
    /// Samples for which there was no room.
    dropped: u64,
    cpu_ns: i64,
}

fn json(value: &impl Serialize) -> Outcome<String> {
    serde_json::to_string(value).map_err(io::Error::from).tried(|| "write JSON")
}

struct Sampling {
    diag: Diag,
    counters: Counters,
    sockets: Sockets,
    pace: Pace,
    /// Connections when the last search began.
    opened: Opened,
    searches: u64,
    /// Points of the grid at which sockets were asked for.
    samples: u64,
}

impl Sampling {
    /// One point of the grid.
    fn step(&mut self) -> Outcome<()> {
        let opened = self.counters.opened()?;
        if opened == self.opened {
            self.look_up()?;
        } else {
            self.opened = opened;
            self.search()?;
        }
        self.samples += 1;
        self.sockets.output.flush()?;
        if self.pace.stretch(self.sockets.fill()) {
            self.sockets.output.interval(sys::monotonic_ns(), self.pace.interval_ns());
        }
        Ok(())
    }

    /// All sockets of the network namespace, with a sample of each of the workload's.
    fn search(&mut self) -> Outcome<()> {
        self.searches += 1;
        let families = if self.counters.has_ipv6() { &[IPV4, IPV6][..] } else { &[IPV4] };
        self.sockets.begin_search();
        for family in families {
            let listed = self.diag.dump(*family, |asked, found| self.sockets.take(asked, found));
            listed.tried(|| "list TCP sockets by sock_diag (kernel module tcp_diag)")?;
        }
        self.sockets.end_search();
        Ok(())
    }

    /// A sample of each socket that is known.
    fn look_up(&mut self) -> Outcome<()> {
        let wanted = self.sockets.of_workload();
        let answered = self.diag.lookup(&wanted, |asked, at, found| match found {
            Some(found) if found.info.is_some() => self.sockets.take(asked, found),
            _ => self.sockets.gone(&wanted[at].1),
        });
        answered.tried(|| "ask for TCP sockets by sock_diag")
    }

    fn end(mut self) -> Outcome<()> {
        let end = End {
            end: Moment::now(),
            opened: self.counters.opened()?,
            sockets: self.sockets.written,
            left_out: self.sockets.left_out,
            searches: self.searches,
            samples: self.samples,
            skipped: self.pace.skipped,
            dropped: self.sockets.output.dropped,
            cpu_ns: cpu_ns(),
        };
        self.sockets.output.end(&json(&end)?)
    }
}
