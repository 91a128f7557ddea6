//! Records of perf.data in the order of their times.

use super::event::Sink;
use super::names::{Call, Program};
use super::state::State;

/// What a record says.
#[derive(Debug, Clone, Copy)]
pub enum What {
    Enter { thread: u32, call: Call },
    Exit { thread: u32, value: i64 },
    Program { thread: u32, program: Program },
    Fork { thread: u32, parent: u32 },
    End { thread: u32 },
    Lost(u64),
}

/// Records that may still be preceded by others.
#[derive(Default)]
pub struct Queue {
    waiting: Vec<(u64, What)>,
    latest_ns: u64,
    /// Once this round has ended, nothing can precede the records that came before the end of the last one.
    previous_ns: u64,
}

impl Queue {
    /// More than this wait only where the file has no rounds.
    const MOST: usize = 1 << 21;

    pub fn push(&mut self, time_ns: Option<u64>, what: What) {
        let time_ns = time_ns.unwrap_or(self.latest_ns);
        self.latest_ns = self.latest_ns.max(time_ns);
        self.waiting.push((time_ns, what));
    }

    /// A round has ended.
    pub fn round(&mut self, state: &mut State, sink: &mut impl Sink) {
        self.waiting.sort_by_key(|(time, _)| *time);
        let ready = self.waiting.partition_point(|(time, _)| *time <= self.previous_ns);
        self.previous_ns = self.latest_ns;
        self.release(ready, state, sink);
    }

    pub fn keep_small(&mut self, state: &mut State, sink: &mut impl Sink) {
        if self.waiting.len() >= Self::MOST {
            state.note("without_rounds");
            self.waiting.sort_by_key(|(time, _)| *time);
            self.release(Self::MOST / 2, state, sink);
        }
    }

    pub fn finish(mut self, state: &mut State, sink: &mut impl Sink) {
        self.waiting.sort_by_key(|(time, _)| *time);
        self.release(self.waiting.len(), state, sink);
    }

    fn release(&mut self, count: usize, state: &mut State, sink: &mut impl Sink) {
        for (time, what) in self.waiting.drain(..count) {
            let time_ns = i64::try_from(time).ok();
            match what {
                What::Enter { thread, call } => {
                    let slot = state.threads.slot(thread.into());
                    state.threads.enter(slot, call, time_ns, sink);
                }
                What::Exit { thread, value } => {
                    let slot = state.threads.slot(thread.into());
                    if !state.threads.leave(slot, time_ns, Some(value), sink) {
                        state.skip("exit_without_entry");
                    }
                }
                What::Program { thread, program } => {
                    let slot = state.threads.slot(thread.into());
                    state.threads.set_program(slot, program);
                }
                What::Fork { thread, parent } => {
                    let parent = state.threads.slot(parent.into());
                    let program = state.threads.program(parent);
                    let slot = state.threads.slot(thread.into());
                    state.threads.set_program(slot, program);
                }
                What::End { thread } => state.threads.end(thread.into(), sink),
                What::Lost(count) => state.lost(count, sink),
            }
        }
    }
}
