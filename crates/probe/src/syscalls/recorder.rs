//! What every method of seeing calls is, once it is attached.

use std::io::{self, Write};

use super::header::Header;
use super::waiting::StopDescriptor;
use crate::failure::{Outcome, Tried};

/// How often what the kernel holds is looked after, at least.
pub const TICK_NS: u64 = 250_000_000;

/// Records the calls that it sees.
pub trait Recorder {
    /// Writes the file until told to stop, and to its end.
    fn record(self: Box<Self>, header: &Header, stop: &StopDescriptor) -> Outcome<()>;
}

pub fn say_ready() -> Outcome<()> {
    io::stderr().write_all(b"ready\n").tried(|| "write to standard error")
}
