//! The events that are wanted, read from their bytes.

use super::format::{Field, Format};
use super::instance::Instance;
use crate::failure::Outcome;
use crate::syscalls::follow::{Event, Kind};

pub const WANTED: [&str; 6] = [
    "task/task_newtask",
    "task/task_rename",
    "sched/sched_process_exit",
    "sched/sched_process_exec",
    "raw_syscalls/sys_exit",
    "raw_syscalls/sys_enter",
];
const CLONE_THREAD: i64 = libc::CLONE_THREAD as i64;

/// The number of each kind of event, and where its fields are.
pub struct Events {
    thread: Field,
    entry: u16,
    entry_id: Field,
    exit: u16,
    exit_id: Field,
    exit_value: Field,
    began: u16,
    child: Field,
    child_name: Field,
    clone_flags: Field,
    renamed: u16,
    renamed_thread: Field,
    new_name: Field,
    ended: u16,
    executed: u16,
    old_thread: Field,
}

impl Events {
    pub fn new(instance: &Instance) -> Outcome<Events> {
        let formats = WANTED.iter().map(|event| instance.format(event)).collect::<Outcome<Vec<_>>>()?;
        let [began, renamed, ended, executed, exit, entry] = [0, 1, 2, 3, 4, 5].map(|at| Format::new(&formats[at]));
        Ok(Events {
            thread: entry.field("common_pid")?,
            entry: entry.id()?,
            entry_id: entry.field("id")?,
            exit: exit.id()?,
            exit_id: exit.field("id")?,
            exit_value: exit.field("ret")?,
            began: began.id()?,
            child: began.field("pid")?,
            child_name: began.field("comm")?,
            clone_flags: began.field("clone_flags")?,
            renamed: renamed.id()?,
            renamed_thread: renamed.field("pid")?,
            new_name: renamed.field("newcomm")?,
            ended: ended.id()?,
            executed: executed.id()?,
            old_thread: executed.field("old_pid")?,
        })
    }

    /// `None`: not wanted.
    pub fn read(&self, time_ns: u64, content: &[u8]) -> Option<Event> {
        let number = u16::from_ne_bytes(content.get(..2)?.try_into().ok()?);
        let tid = self.thread.thread(content)?;
        let kind = if number == self.entry {
            Kind::Entry { id: self.entry_id.signed(content)? }
        } else if number == self.exit {
            Kind::Exit { id: self.exit_id.signed(content)?, value: self.exit_value.signed(content)? }
        } else if number == self.began {
            Kind::Began {
                child: self.child.thread(content)?,
                same_group: self.clone_flags.signed(content)? & CLONE_THREAD != 0,
                name: self.child_name.text(content)?,
            }
        } else if number == self.renamed {
            Kind::Renamed { thread: self.renamed_thread.thread(content)?, name: self.new_name.text(content)? }
        } else if number == self.ended {
            Kind::Ended
        } else if number == self.executed {
            Kind::Renumbered { old: self.old_thread.thread(content)? }
        } else {
            return None;
        };
        Some(Event { time_ns, tid, kind })
    }
}
