//! `syscalls`: what programs ask of the kernel, counted or traced at the source. SYSCALLS.md has the formats.
//!
//! Two methods are tried, in this order: eBPF programs on raw tracepoints (Linux 5.8), which count in the kernel, and a
//! private tracefs instance, whose events this process reads and counts.

mod bpf;
mod call;
mod count_file;
mod follow;
mod header;
mod options;
#[path = "../../../core/src/syscall/probe_files.rs"]
mod probe_files;
mod recorder;
mod scope;
mod trace_file;
mod tracefs;

use crate::arguments::Arguments;
use crate::failure::{Failure, Outcome, Tried};
use crate::waiting::StopDescriptor;
use header::Header;
use options::{Method, Options};

pub fn main(arguments: Arguments) -> Outcome<()> {
    let options = Options::take(arguments)?;
    // Signals are blocked before anything else, so that one at any time is an orderly end.
    let stop = StopDescriptor::block().tried(|| "block signals")?;
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
            Ok(recorder) => {
                let header = Header::now(&options, method, &refused);
                return recorder.record(&header, &stop);
            }
            Err(failure) => refused.push(format!("{}: {failure}", method.name())),
        }
    }
    Err(Failure::new(format!("no way to see system calls here; tried {}", refused.join("; "))))
}
