//! The threads of a trace: each has a slot, a program, and at most one call that it is in.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::event::{Event, Sink, Slot};
use super::names::{Call, Program};

/// A call that was entered and has not returned.
#[derive(Debug, Clone, Copy)]
pub struct Entered {
    pub call: Call,
    /// The thread's at that time: execve changes it.
    pub program: Program,
    pub time_ns: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    id: u64,
    program: Program,
    entered: Option<Entered>,
}

/// Threads by their id, each in a slot that is used again once the thread has ended.
pub struct Threads {
    slots: Vec<Thread>,
    free: Vec<u32>,
    by_id: HashMap<u64, u32, RandomState>,
    last: Option<(u64, u32)>,
}

impl Threads {
    pub fn new() -> Self {
        Threads { slots: Vec::new(), free: Vec::new(), by_id: HashMap::default(), last: None }
    }

    #[inline]
    pub fn slot(&mut self, id: u64) -> Slot {
        match self.last {
            Some((last, slot)) if last == id => slot,
            _ => self.find(id),
        }
    }

    fn find(&mut self, id: u64) -> Slot {
        let slot = match self.by_id.get(&id) {
            Some(slot) => *slot,
            None => {
                let thread = Thread { id, program: Program::UNKNOWN, entered: None };
                let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
                match self.slots.get_mut(slot as usize) {
                    Some(free) => *free = thread,
                    None => self.slots.push(thread),
                }
                self.by_id.insert(id, slot);
                slot
            }
        };
        self.last = Some((id, slot));
        slot
    }

    pub fn is_known(&self, id: u64) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The one thread that there is.
    pub fn only(&self) -> Option<u64> {
        match self.by_id.len() {
            1 => self.by_id.keys().next().copied(),
            _ => None,
        }
    }

    /// Threads that are in a call.
    pub fn inside(&self) -> impl Iterator<Item = (Call, Program)> + '_ {
        self.by_id.values().filter_map(|slot| {
            let thread = &self.slots[*slot as usize];
            Some((thread.entered?.call, thread.program))
        })
    }

    pub fn rename(&mut self, from: u64, to: u64) {
        if let Some(slot) = self.by_id.remove(&from) {
            self.slots[slot as usize].id = to;
            self.by_id.insert(to, slot);
            self.last = None;
        }
    }

    #[inline]
    pub fn program(&self, slot: Slot) -> Program {
        self.slots[slot as usize].program
    }

    #[inline]
    pub fn set_program(&mut self, slot: Slot, program: Program) {
        self.slots[slot as usize].program = program;
    }

    /// A call begins. One that the thread was still in has no known end.
    #[inline]
    pub fn enter(&mut self, slot: Slot, call: Call, time_ns: Option<i64>, sink: &mut impl Sink) {
        let thread = &mut self.slots[slot as usize];
        let entered = Entered { call, program: thread.program, time_ns };
        if let Some(left) = thread.entered.replace(entered) {
            self.report(slot, left, None, None, sink);
        }
    }

    /// Takes the call that the thread is in.
    #[inline]
    pub fn entered(&mut self, slot: Slot) -> Option<Entered> {
        self.slots[slot as usize].entered.take()
    }

    /// The call that the thread is in has returned; false if it was in none.
    #[inline]
    pub fn leave(&mut self, slot: Slot, time_ns: Option<i64>, value: Option<i64>, sink: &mut impl Sink) -> bool {
        let Some(entered) = self.slots[slot as usize].entered.take() else { return false };
        let duration = time_ns.zip(entered.time_ns).and_then(|(end, start)| end.checked_sub(start));
        self.report(slot, entered, duration.and_then(|ns| u64::try_from(ns).ok()), value, sink);
        true
    }

    #[inline]
    pub fn report(&self, slot: Slot, of: Entered, duration_ns: Option<u64>, value: Option<i64>, sink: &mut impl Sink) {
        sink.call(&Event { thread: slot, program: of.program, call: of.call, time_ns: of.time_ns, duration_ns, value });
    }

    /// The thread has ended. Its slot and id may come back as another's.
    pub fn end(&mut self, id: u64, sink: &mut impl Sink) {
        let Some(slot) = self.by_id.remove(&id) else { return };
        self.flush(slot, sink);
        sink.end(slot);
        self.free.push(slot);
        self.last = None;
    }

    /// Events are missing: the calls that threads were in have no known end, and no call follows on them.
    pub fn gap(&mut self, sink: &mut impl Sink) {
        for slot in 0..self.slots.len() as u32 {
            self.flush(slot, sink);
        }
        sink.gap();
    }

    /// The trace has ended.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        for slot in 0..self.slots.len() as u32 {
            self.flush(slot, sink);
        }
    }

    fn flush(&mut self, slot: Slot, sink: &mut impl Sink) {
        if let Some(entered) = self.entered(slot) {
            self.report(slot, entered, None, None, sink);
        }
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self::new()
    }
}
