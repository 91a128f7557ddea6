//! System calls by eBPF: programs assembled here, loaded by bpf(), attached to raw tracepoints (Linux 5.8).

mod admission;
mod assembler;
mod attached;
mod cells;
mod counting;
mod finishing;
mod instruction;
#[cfg(test)]
mod interpreter;
mod kernel;
mod layout;
mod plan;
mod programs;
mod ring;
mod sampling;
mod streams;
mod tracing;

use super::options::{Command, Options};
use super::recorder::Recorder;
use crate::failure::Outcome;

pub fn attach(options: &Options) -> Outcome<Box<dyn Recorder>> {
    lift_memory_limit();
    match options.command {
        Command::Count { .. } => Ok(Box::new(counting::Counting::attach(options)?)),
        Command::Trace => Ok(Box::new(tracing::Tracing::attach(options)?)),
    }
}

/// Until Linux 5.11 maps count as locked memory. Where this is refused, making them tells.
fn lift_memory_limit() {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is a valid one.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &unlimited) };
}
