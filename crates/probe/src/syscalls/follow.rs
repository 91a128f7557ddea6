//! Turns events of many threads into the finished calls of each, as the BPF programs do in the kernel.

use std::collections::{HashMap, HashSet};

use super::call::{number, Call, Exit, History, Part, Stream, StreamNumber};
use crate::failure::Outcome;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub time_ns: u64,
    /// Whose it is.
    pub tid: u32,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Entry {
        id: i64,
    },
    Exit {
        id: i64,
        value: i64,
    },
    /// A thread began, with the name of the one that made it.
    Began {
        child: u32,
        same_group: bool,
        name: Vec<u8>,
    },
    Renamed {
        thread: u32,
        name: Vec<u8>,
    },
    Ended,
    /// A thread that executes a program took over the id of its group's leader.
    Renumbered {
        old: u32,
    },
    /// Events of any threads are missing before this one.
    Lost {
        events: u64,
    },
}

/// Where finished calls go.
pub trait Sink {
    fn stream(&mut self, number: StreamNumber, stream: &Stream) -> Outcome<()>;
    /// `now_ns`: when it was finished.
    fn call(&mut self, stream: StreamNumber, part: Part, history: History, call: Call, now_ns: u64) -> Outcome<()>;
    fn ended(&mut self, stream: StreamNumber) -> Outcome<()>;
    fn lost(&mut self, time_ns: u64, events: u64) -> Outcome<()>;
    /// A pass over what the kernel held is over.
    fn pass_over(&mut self) -> Outcome<()>;
}

#[derive(Default)]
pub struct Thread {
    /// `None`: not known.
    tgid: Option<u32>,
    /// Empty: not known.
    name: Vec<u8>,
    stream: Option<StreamNumber>,
    history: History,
    calls: u64,
    pending: Option<Pending>,
}

struct Pending {
    stream: StreamNumber,
    part: Part,
    history: History,
    number: u16,
    entry_ns: u64,
}

/// Thread groups that are followed.
impl Thread {
    pub fn new(tgid: Option<u32>, name: Vec<u8>) -> Self {
        Thread { tgid, name, ..Thread::default() }
    }
}

#[derive(Default)]
pub struct Groups {
    pub excluded: HashSet<u32>,
    /// `None`: all others.
    pub only: Option<HashSet<u32>>,
}

impl Groups {
    fn contain(&self, tgid: Option<u32>) -> bool {
        match (tgid, &self.only) {
            (Some(tgid), only) => {
                !self.excluded.contains(&tgid) && only.as_ref().is_none_or(|only| only.contains(&tgid))
            }
            (None, only) => only.is_none(),
        }
    }
}

pub struct Follower {
    threads: HashMap<u32, Thread>,
    groups: Groups,
    skip: u64,
    next_number: StreamNumber,
}

impl Follower {
    pub fn new(threads: HashMap<u32, Thread>, groups: Groups, skip: u64) -> Self {
        Follower { threads, groups, skip, next_number: 1 }
    }

    pub fn take(&mut self, event: &Event, sink: &mut impl Sink) -> Outcome<()> {
        match &event.kind {
            Kind::Entry { id } => self.entry(event, *id, sink),
            Kind::Exit { id, value } => self.exit(event, *id, *value, sink),
            Kind::Began { child, same_group, name } => {
                let tgid = match same_group {
                    true => self.threads.get(&event.tid).and_then(|thread| thread.tgid),
                    false => Some(*child),
                };
                self.threads.insert(*child, Thread::new(tgid, name.clone()));
                Ok(())
            }
            Kind::Renamed { thread, name } => {
                let thread = self.threads.entry(*thread).or_default();
                if thread.name != *name {
                    thread.name.clone_from(name);
                    thread.history = History::EMPTY;
                    if let Some(stream) = thread.stream.take() {
                        // A call that the old stream is in is written when it is finished.
                        if thread.pending.is_none() {
                            return sink.ended(stream);
                        }
                    }
                }
                Ok(())
            }
            Kind::Ended => self.end(event.tid, event.time_ns, sink),
            Kind::Renumbered { old } if *old != event.tid => {
                let tgid = event.tid;
                self.threads.entry(event.tid).or_default().tgid = Some(tgid);
                self.end(*old, event.time_ns, sink)
            }
            Kind::Renumbered { .. } => Ok(()),
            Kind::Lost { events } => {
                // Whether an exit yet to come is that of the call now in progress cannot be known.
                for thread in self.threads.values_mut() {
                    finish(thread, None, event.time_ns, sink)?;
                    thread.history = History::EMPTY;
                }
                sink.lost(event.time_ns, *events)
            }
        }
    }

    fn entry(&mut self, event: &Event, id: i64, sink: &mut impl Sink) -> Outcome<()> {
        let thread = self.threads.entry(event.tid).or_default();
        if !self.groups.contain(thread.tgid) {
            return Ok(());
        }
        finish(thread, None, event.time_ns, sink)?;
        let stream = match thread.stream {
            Some(stream) => stream,
            None => {
                let stream = self.next_number;
                self.next_number += 1;
                thread.stream = Some(stream);
                thread.history = History::EMPTY;
                let about = Stream { tid: event.tid, tgid: thread.tgid, name: thread.name.clone() };
                sink.stream(stream, &about)?;
                stream
            }
        };
        let number = number(id);
        thread.history = thread.history.after(number);
        thread.calls += 1;
        let part = Part::of(thread.calls, self.skip);
        let history = thread.history;
        thread.pending = Some(Pending { stream, part, history, number, entry_ns: event.time_ns });
        Ok(())
    }

    fn exit(&mut self, event: &Event, id: i64, value: i64, sink: &mut impl Sink) -> Outcome<()> {
        let Some(thread) = self.threads.get_mut(&event.tid) else {
            return Ok(());
        };
        let Some(pending) = &thread.pending else {
            return Ok(());
        };
        // rt_sigreturn leaves with the number -1. Another number: the call's own exit was lost.
        let exit = (id == -1 || number(id) == pending.number)
            .then(|| Exit { duration_ns: event.time_ns.saturating_sub(pending.entry_ns), value });
        finish(thread, exit, event.time_ns, sink)
    }

    fn end(&mut self, tid: u32, time_ns: u64, sink: &mut impl Sink) -> Outcome<()> {
        let Some(mut thread) = self.threads.remove(&tid) else {
            return Ok(());
        };
        finish(&mut thread, None, time_ns, sink)?;
        thread.stream.map_or(Ok(()), |stream| sink.ended(stream))
    }

    /// Calls still in progress at the end.
    pub fn finish(&mut self, time_ns: u64, sink: &mut impl Sink) -> Outcome<()> {
        self.threads.values_mut().try_for_each(|thread| finish(thread, None, time_ns, sink))
    }
}

fn finish(thread: &mut Thread, exit: Option<Exit>, now_ns: u64, sink: &mut impl Sink) -> Outcome<()> {
    let Some(Pending { stream, part, history, number, entry_ns }) = thread.pending.take() else {
        return Ok(());
    };
    sink.call(stream, part, history, Call { number, entry_ns, exit }, now_ns)?;
    match thread.stream {
        Some(_) => Ok(()),
        None => sink.ended(stream),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (stream, calls before, number, exit value)
    #[derive(Default)]
    struct Seen {
        calls: Vec<(StreamNumber, Vec<u16>, u16, Option<i64>)>,
        ended: Vec<StreamNumber>,
    }

    impl Sink for Seen {
        fn stream(&mut self, _: StreamNumber, _: &Stream) -> Outcome<()> {
            Ok(())
        }

        fn call(&mut self, stream: StreamNumber, _: Part, history: History, call: Call, _: u64) -> Outcome<()> {
            let before = [3, 2, 1].into_iter().filter_map(|back| history.before(back)).collect();
            self.calls.push((stream, before, call.number, call.exit.map(|exit| exit.value)));
            Ok(())
        }

        fn ended(&mut self, stream: StreamNumber) -> Outcome<()> {
            self.ended.push(stream);
            Ok(())
        }

        fn lost(&mut self, _: u64, _: u64) -> Outcome<()> {
            Ok(())
        }

        fn pass_over(&mut self) -> Outcome<()> {
            Ok(())
        }
    }

    fn follow(kinds: impl IntoIterator<Item = Kind>) -> Seen {
        let mut follower = Follower::new(HashMap::new(), Groups::default(), 0);
        let mut seen = Seen::default();
        for (kind, time_ns) in kinds.into_iter().zip(1..) {
            follower.take(&Event { time_ns, tid: 7, kind }, &mut seen).unwrap();
        }
        follower.finish(1000, &mut seen).unwrap();
        seen
    }

    fn entry(id: i64) -> Kind {
        Kind::Entry { id }
    }

    fn exit(id: i64) -> Kind {
        Kind::Exit { id, value: 10 * id }
    }

    #[test]
    fn an_exit_without_an_entry_is_no_call() {
        assert_eq!(follow([exit(1), entry(2), exit(2), exit(3)]).calls, [(1, vec![], 2, Some(20))]);
    }

    #[test]
    fn a_call_in_progress_has_no_exit() {
        assert_eq!(follow([entry(1), exit(1), entry(2)]).calls, [(1, vec![], 1, Some(10)), (1, vec![1], 2, None)]);
    }

    #[test]
    fn nothing_is_known_before_a_loss() {
        let seen = follow([entry(1), exit(1), entry(2), Kind::Lost { events: 2 }, exit(3), entry(4), exit(4)]);
        assert_eq!(seen.calls, [(1, vec![], 1, Some(10)), (1, vec![1], 2, None), (1, vec![], 4, Some(40))]);
    }

    #[test]
    fn a_change_of_name_ends_the_stream_when_its_call_is_over() {
        let renamed = Kind::Renamed { thread: 7, name: b"new".to_vec() };
        let seen = follow([entry(59), renamed, exit(59), entry(1), exit(1), Kind::Ended]);
        assert_eq!(seen.calls, [(1, vec![], 59, Some(590)), (2, vec![], 1, Some(10))]);
        assert_eq!(seen.ended, [1, 2]);
    }
}
