//! What `strace` prints, from its manual and from runs of strace 6.1.
//!
//! A line is `[pid N] ` or `N ` (with `-f`; `N<comm>` with `-Y`), a time (`-t`, `-tt`, `-ttt`), and then a call
//! `name(arguments) = value`, its start `name(arguments <unfinished ...>`, its end `<... name resumed>) = value`, a signal
//! `--- SIGCHLD {...} ---`, an exit `+++ exited with 0 +++`, or a word of strace's own. Durations (`-T`) are `<seconds>` at
//! the end of the line.
//!
//! The program of a thread is what it has last executed, or else its parent's. A program that strace was attached to has no
//! name without `-Y`. Times of day (`-t`) count from midnight. strace prints errors as -1 and a name.

use std::collections::{HashMap, HashSet};

use super::event::{Sink, Slot};
use super::lines::{LineReader, EMPTY_LINE};
use super::names::{Call, CallNames, Program};
use super::state::{State, TOO_MANY_NAMES};
use super::strace_line::{attached, ending, executed, name_length, prefix, Ending, Prefix, UNFINISHED};
use super::threads::Entered;

/// Lines without a process id are this thread's, as long as no id is known for it.
const UNNAMED: u64 = 0;

pub struct Reader {
    execute: [Option<Call>; 2],
    make_thread: [Option<Call>; 4],
    /// Programs that threads are about to become.
    becoming: HashMap<Slot, Program>,
    /// Threads that were announced before their first line.
    announced: HashSet<u64>,
    /// A thread whose line strace has interrupted with a message of its own; the rest comes on the next line.
    interrupted: Option<Slot>,
}

impl Reader {
    pub fn new(calls: &mut CallNames) -> Self {
        let mut of = |name: &str| calls.name(name.as_bytes());
        Reader {
            execute: [of("execve"), of("execveat")],
            make_thread: [of("clone"), of("fork"), of("vfork"), of("clone3")],
            becoming: HashMap::new(),
            announced: HashSet::new(),
            interrupted: None,
        }
    }

    /// Whether a line is strace's.
    pub fn recognises(line: &[u8]) -> bool {
        let Some((_, rest)) = prefix(line) else { return false };
        let name = name_length(rest);
        name > 0 && rest.get(name) == Some(&b'(') && (ending(rest).is_some() || rest.ends_with(UNFINISHED))
            || rest.starts_with(b"+++ ") && rest.ends_with(b" +++")
    }

    /// The slot of a line's thread.
    fn thread(&mut self, prefix: &Prefix, state: &mut State) -> Slot {
        let id = match prefix.pid {
            // strace leaves the id away while there is one process only.
            None => state.threads.only().unwrap_or(UNNAMED),
            Some(pid) if state.threads.is_known(pid) => pid,
            Some(pid) => {
                if !self.announced.remove(&pid) && state.threads.is_known(UNNAMED) {
                    state.threads.rename(UNNAMED, pid);
                } else {
                    let parent = self.parents_program(state);
                    let slot = state.threads.slot(pid);
                    state.threads.set_program(slot, parent);
                }
                pid
            }
        };
        let slot = state.threads.slot(id);
        if let Some(name) = prefix.name {
            let program = state.programs.of(name);
            state.threads.set_program(slot, program);
        }
        slot
    }

    /// A thread that appears before its parent's call has returned has the program of those that are in such a call.
    fn parents_program(&self, state: &State) -> Program {
        let mut making = state.threads.inside().filter(|(call, _)| self.make_thread.contains(&Some(*call)));
        let Some((_, first)) = making.next() else { return Program::UNKNOWN };
        if making.all(|(_, program)| program == first) {
            first
        } else {
            Program::UNKNOWN
        }
    }

    /// What a call that returned changes.
    fn returned(&mut self, slot: Slot, call: Call, value: Option<i64>, state: &mut State) {
        let Some(value) = value.filter(|value| *value >= 0) else {
            self.becoming.remove(&slot);
            return;
        };
        if self.execute.contains(&Some(call)) {
            if let Some(program) = self.becoming.remove(&slot) {
                state.threads.set_program(slot, program);
            }
        } else if self.make_thread.contains(&Some(call)) && value > 0 {
            let child = value.cast_unsigned();
            let parent = state.threads.program(slot);
            if !state.threads.is_known(child) {
                self.announced.remove(&child);
            }
            let child = state.threads.slot(child);
            if state.threads.program(child) == Program::UNKNOWN {
                state.threads.set_program(child, parent);
            }
        }
    }

    fn left(&mut self, slot: Slot, entered: Entered, end: &Ending, state: &mut State, sink: &mut impl Sink) {
        if end.value.is_none() {
            state.note("no_value");
        }
        state.threads.report(slot, entered, end.duration_ns, end.value, sink);
        let call = Some(entered.call);
        if self.execute.contains(&call) || self.make_thread.contains(&call) {
            self.returned(slot, entered.call, end.value, state);
        }
    }

    /// The end of a call whose start is on an earlier line.
    fn resumed(
        &mut self,
        prefix: &Prefix,
        text: &[u8],
        state: &mut State,
        sink: &mut impl Sink,
    ) -> Result<(), &'static str> {
        let length = name_length(text);
        if !text[length..].starts_with(b" resumed>") {
            return Err("not_a_call");
        }
        let Some(end) = ending(text) else { return Err("no_return_value") };
        let slot = self.thread(prefix, state);
        let call = state.calls.known(&text[..length]);
        let Some(entered) = state.threads.entered(slot) else { return Err("resumed_without_start") };
        if Some(entered.call) != call {
            state.note("resumed_another_call");
        }
        let between = prefix.time_ns.zip(entered.time_ns).and_then(|(end, start)| end.checked_sub(start));
        let duration_ns = end.duration_ns.or(between.and_then(|ns| u64::try_from(ns).ok()));
        self.left(slot, entered, &Ending { duration_ns, ..end }, state, sink);
        Ok(())
    }
}

impl LineReader for Reader {
    const LAYER: &'static str = "strace";

    #[inline]
    fn line(&mut self, line: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), &'static str> {
        if line.is_empty() {
            return Err(EMPTY_LINE);
        }
        let Some((prefix, text)) = prefix(line) else {
            if let Some(pid) = attached(line) {
                self.announced.insert(pid);
            }
            return Err("strace_message");
        };
        let length = name_length(text);
        if length > 0 && text.get(length) == Some(&b'(') {
            let Some(call) = state.calls.name(&text[..length]) else { return Err(TOO_MANY_NAMES) };
            let end = ending(text);
            if end.is_none() && !text.ends_with(UNFINISHED) {
                let at = memchr::memmem::rfind(text, b"strace: Process ");
                let Some(pid) = at.and_then(|at| attached(&text[at..])) else { return Err("no_return_value") };
                self.announced.insert(pid);
                self.interrupted = Some(self.thread(&prefix, state));
            }
            let slot = self.thread(&prefix, state);
            if self.execute.contains(&Some(call)) {
                if let Some(program) = executed(&text[length..]) {
                    let program = state.programs.of(program);
                    self.becoming.insert(slot, program);
                }
            }
            if let Some(left) = state.threads.entered(slot) {
                state.note("never_resumed");
                state.threads.report(slot, left, None, None, sink);
            }
            let entered = Entered { call, program: state.threads.program(slot), time_ns: prefix.time_ns };
            match end {
                Some(end) => self.left(slot, entered, &end, state, sink),
                None => state.threads.enter(slot, call, prefix.time_ns, sink),
            }
            return Ok(());
        }
        if let Some(rest) = text.strip_prefix(b"<... ") {
            return self.resumed(&prefix, rest, state, sink);
        }
        if text.starts_with(b"+++ ") {
            let slot = self.thread(&prefix, state);
            self.becoming.remove(&slot);
            let only = state.threads.only();
            if let Some(id) = prefix.pid.or(only) {
                state.threads.end(id, sink);
            }
            return Err("exit");
        }
        if text.starts_with(b"--- ") {
            return Err("signal");
        }
        if let Some(slot) = self.interrupted.take() {
            if text == UNFINISHED {
                return Ok(());
            }
            if let Some((entered, end)) = ending(text).and_then(|end| Some((state.threads.entered(slot)?, end))) {
                self.left(slot, entered, &end, state, sink);
                return Ok(());
            }
        }
        Err("not_a_call")
    }
}
