//! What every method of seeing calls is, once it is attached.

use std::io::{self, Write};

use super::header::Header;
use crate::failure::{Outcome, Tried};
use crate::waiting::StopDescriptor;

/// The longest time between two looks at what the kernel holds.
pub const TICK_NS: u64 = 250_000_000;

/// Records the calls that it sees.
pub trait Recorder {
    /// Writes the file until it is told to stop, and completes it.
    fn record(self: Box<Self>, header: &Header, stop: &StopDescriptor) -> Outcome<()>;
}

pub fn say_ready() -> Outcome<()> {
    io::stderr().write_all(b"ready\n").tried(|| "write to standard error")
}
