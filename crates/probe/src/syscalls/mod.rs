//! `syscalls`: what programs ask of the kernel, counted or traced at the source. SYSCALLS.md has the formats.
//!
//! The methods, in the order in which they are tried: eBPF programs on raw tracepoints (Linux 5.8), which count
//! in the kernel; a private tracefs instance, whose events this process reads and counts.

mod bpf;
mod call;
mod count_file;
mod follow;
mod header;
mod options;
mod scope;
mod trace_file;
mod tracefs;
mod waiting;

use std::io::{self, Write};

use crate::arguments::Arguments;
use crate::failure::{Failure, Outcome, Tried};
use header::{Header, Method};
use options::Options;
use waiting::Stop;

/// How often what the kernel holds is looked after, at least.
const TICK_NS: u64 = 250_000_000;

/// A way of seeing calls, attached.
trait Attached {
    /// Writes the file until told to stop, and to its end.
    fn record(self: Box<Self>, header: &Header, stop: &Stop) -> Outcome<()>;
}

pub fn main(arguments: Arguments) -> Outcome<()> {
    let options = Options::take(arguments)?;
    // Blocked before anything else, so that a signal at any time is an orderly end.
    let stop = Stop::block().tried(|| "block signals")?;
    let mut refused = Vec::new();
    for method in Method::IN_ORDER {
        if options.method.is_some_and(|wanted| wanted != method) {
            continue;
        }
        let attached = match method {
            Method::Bpf => bpf::attach(&options),
            Method::Tracefs => tracefs::attach(&options),
        };
        match attached {
            Ok(attached) => {
                let header = Header::now(&options, method, &refused);
                return attached.record(&header, &stop);
            }
            Err(failure) => refused.push(format!("{}: {failure}", method.name())),
        }
    }
    Err(Failure::new(format!("no way to see system calls here; tried {}", refused.join("; "))))
}

fn say_ready() -> Outcome<()> {
    io::stderr().write_all(b"ready\n").tried(|| "write to standard error")
}
