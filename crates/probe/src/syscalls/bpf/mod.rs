//! System calls by eBPF: programs assembled here, attached to raw tracepoints (Linux 5.8).

mod admission;
mod attached;
mod cells;
mod counting;
mod finishing;
mod layout;
mod plan;
mod programs;
mod sampling;
mod streams;
mod tracing;

use super::options::{Command, Options};
use super::recorder::Recorder;
use crate::failure::Outcome;

pub fn attach(options: &Options) -> Outcome<Box<dyn Recorder>> {
    crate::bpf::lift_memory_limit();
    match options.command {
        Command::Count { .. } => Ok(Box::new(counting::Counting::attach(options)?)),
        Command::Trace => Ok(Box::new(tracing::Tracing::attach(options)?)),
    }
}
