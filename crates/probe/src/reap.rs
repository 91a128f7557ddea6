//! The one place that waits for processes. As PID 1 the agent gets every orphan. A wait for some processes only would leave
//! the others as zombies, and several waits would steal each other's exit statuses.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use libc::pid_t;

use crate::request::{Exit, Usage};
use crate::sys;

/// Where the end of one child is announced.
pub struct Ended {
    /// When the program began, in seconds of the monotonic clock, as bits.
    started_s: AtomicU64,
    exit: Mutex<Option<Exit>>,
    /// Becomes readable when `exit` is there.
    pub event: File,
}

impl Ended {
    /// A held program is let go now. To be said before it is: a short one may have been reaped a moment later.
    pub fn starts(&self, now_s: f64) {
        self.started_s.store(now_s.to_bits(), Ordering::Release);
    }

    pub fn take(&self) -> Option<Exit> {
        lock(&self.exit).take()
    }
}

#[derive(Default)]
pub struct Children {
    table: Mutex<Table>,
    spawned: Condvar,
}

#[derive(Default)]
struct Table {
    living: HashMap<pid_t, Arc<Ended>>,
    /// How many were ever started. The reaper sleeps until this changes when it has nothing to wait for.
    started: u64,
}

impl Children {
    /// Starts a child. The table stays locked meanwhile, so the reaper can take neither a child that ends before it is
    /// entered nor one that std itself reaps because the exec failed.
    pub fn spawn(&self, command: &mut Command) -> io::Result<(Child, Arc<Ended>)> {
        let event = sys::event()?;
        let mut table = lock(&self.table);
        let child = command.spawn()?;
        // std gives back a child once it has become the program.
        let started_s = AtomicU64::new(sys::monotonic_s().to_bits());
        let ended = Arc::new(Ended { started_s, exit: Mutex::new(None), event });
        table.living.insert(child.id() as pid_t, Arc::clone(&ended));
        table.started += 1;
        self.spawned.notify_all();
        Ok((child, ended))
    }

    /// Signals a child or its process group. One that has already ended is left alone, since its number may belong to another
    /// process by now.
    pub fn signal(&self, pid: pid_t, signal: i32, group: bool) -> io::Result<()> {
        let table = lock(&self.table);
        if !table.living.contains_key(&pid) {
            return Ok(());
        }
        sys::kill(if group { -pid } else { pid }, signal)
    }

    pub fn is_living(&self, pid: pid_t) -> bool {
        lock(&self.table).living.contains_key(&pid)
    }

    pub fn reap_forever(&self) -> ! {
        loop {
            let started = lock(&self.table).started;
            match next_ended() {
                Ok(Some(pid)) => self.reap(pid, sys::monotonic_s()),
                // A held child has just stopped: the thread that holds it takes that.
                Ok(None) => std::thread::yield_now(),
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
                    let table = lock(&self.table);
                    drop(self.spawned.wait_while(table, |table| table.started == started));
                }
                Err(_) => {}
            }
        }
    }

    fn reap(&self, pid: pid_t, ended_s: f64) {
        let mut table = lock(&self.table);
        let mut status = 0;
        // SAFETY: rusage is plain numbers, and both out pointers are valid.
        let (reaped, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let reaped = libc::wait4(pid, &mut status, libc::WNOHANG, &mut usage);
            (reaped, usage)
        };
        if reaped != pid {
            return;
        }
        let Some(ended) = table.living.remove(&pid) else {
            return;
        };
        *lock(&ended.exit) = Some(Exit {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            usage: Usage::of_ended(&usage),
            max_rss_bytes: usage.ru_maxrss as u64 * 1024,
            started_monotonic_s: f64::from_bits(ended.started_s.load(Ordering::Acquire)),
            ended_monotonic_s: ended_s,
        });
        // An eventfd takes eight bytes at any time before its counter is full.
        let _ = (&ended.event).write_all(&1u64.to_ne_bytes());
    }
}

/// Waits until any child has ended, and leaves it to be reaped. None where one has stopped: that is told of traced children,
/// asked or not.
fn next_ended() -> io::Result<Option<pid_t>> {
    // SAFETY: siginfo_t is plain data which waitid fills; si_pid is valid after success.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        sys::check(libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOWAIT))?;
        let ended = matches!(info.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED);
        Ok(ended.then(|| info.si_pid()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every descendant of this process. This is for an agent that is not PID 1; for PID 1 the kernel does it. As a
/// subreaper the agent finds all descendants below itself in /proc.
pub fn kill_descendants() {
    // A process may fork between the look and the kill: look again until nothing is left.
    for _ in 0..100 {
        let victims = descendants(std::process::id() as pid_t);
        if victims.is_empty() {
            return;
        }
        for pid in victims {
            let _ = sys::kill(pid, libc::SIGKILL);
        }
    }
}

/// Those of a process that live.
pub fn descendants(root: pid_t) -> Vec<pid_t> {
    let mut children: HashMap<pid_t, Vec<pid_t>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else {
            continue;
        };
        if let Some((parent, state)) = parent_and_state(&stat) {
            if !matches!(state, b'Z' | b'X') {
                children.entry(parent).or_default().push(pid);
            }
        }
    }
    let mut descendants = Vec::new();
    let mut ahead = vec![root];
    while let Some(parent) = ahead.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        descendants.extend(&below);
        ahead.extend(below);
    }
    descendants
}

/// The letter of a process's state; `None` where there is none of that number.
pub fn state(pid: pid_t) -> Option<u8> {
    Some(parent_and_state(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?.1)
}

/// From /proc/PID/stat: `PID (any name) S PPID ...`.
fn parent_and_state(stat: &[u8]) -> Option<(pid_t, u8)> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((fields.next()?.parse().ok()?, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_parent_past_any_name() {
        assert_eq!(parent_and_state(b"7 (a) b) S 3 7 7"), Some((3, b'S')));
        assert_eq!(parent_and_state(b"7 (a"), None);
        assert_eq!(parent_and_state(b"7 (a) Z x"), None);
    }
}
