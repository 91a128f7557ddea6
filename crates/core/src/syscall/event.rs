//! What a reader of a trace hands out: the calls of threads, and where some are missing.

use super::names::{Call, Program};

/// A thread's number while it lives: small, for tables. A later thread may have the same.
pub type Slot = u32;

/// One call of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub thread: Slot,
    pub program: Program,
    /// Of the entry, on the trace's own clock.
    pub time_ns: Option<i64>,
    pub call: Call,
    pub duration_ns: Option<u64>,
    /// What the call gave back; -4095 to -1 are errors (of which strace's text gives only -1).
    pub value: Option<i64>,
}

/// What takes a trace's calls.
pub trait Sink {
    fn call(&mut self, event: &Event);
    /// The thread has ended; its number may be used again.
    fn end(&mut self, thread: Slot);
    /// Calls of this thread are missing here.
    fn thread_gap(&mut self, thread: Slot);
    /// Calls of any thread may be missing here.
    fn gap(&mut self);
}
