//! A program that the controller started: what may be sent to it.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::pid_t;

use crate::failure::{Failure, Outcome, Tried};
use crate::inbox::Inbox;
use crate::reap::Children;
use crate::request::{Release, Signal};
use crate::sys;

const STDIN_INBOX_BYTES: usize = 32 << 20;

/// What the controller may send to: exists from the EXEC on, before the child does.
pub struct Program {
    pub stdin: Inbox,
    state: Mutex<State>,
    /// Of a held program, an event that becomes readable with the moment of its start, in nanoseconds of the monotonic clock.
    pub moment: OnceLock<File>,
}

enum State {
    Starting(Vec<Signal>),
    Running(pid_t),
}

impl Default for Program {
    fn default() -> Self {
        Program {
            stdin: Inbox::new(STDIN_INBOX_BYTES),
            state: Mutex::new(State::Starting(Vec::new())),
            moment: OnceLock::new(),
        }
    }
}

impl Program {
    /// Signals the child, or keeps the signal until there is one.
    pub fn signal(&self, children: &Children, signal: Signal) -> Outcome<()> {
        match &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Starting(waiting) => {
                waiting.push(signal);
                Ok(())
            }
            State::Running(pid) => send_signal(children, *pid, &signal),
        }
    }

    pub fn release(&self, request: &Release) -> Outcome<()> {
        let Some(mut moment) = self.moment.get() else {
            return Err(Failure::new("a program that is not held cannot be released"));
        };
        // An event cannot bring 0. A number that is none, or negative, becomes 0 by `as`.
        let nanoseconds = ((request.at_monotonic_s * sys::NS_PER_S as f64) as u64).clamp(1, i64::MAX as u64);
        moment.write_all(&nanoseconds.to_ne_bytes()).tried(|| "release a held program")
    }

    pub fn running(&self, children: &Children, pid: pid_t) -> Outcome<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Running(pid)) {
            State::Starting(waiting) => waiting.iter().try_for_each(|signal| send_signal(children, pid, signal)),
            State::Running(_) => Ok(()),
        }
    }
}

fn send_signal(children: &Children, pid: pid_t, signal: &Signal) -> Outcome<()> {
    children
        .signal(pid, signal.signal, signal.group)
        .tried(|| format!("send signal {} to process {pid}", signal.signal))
}
