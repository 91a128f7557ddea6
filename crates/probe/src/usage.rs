//! What a program and all below it have used of the machine so far: CPU time and context switches.
//!
//! A process that has ended leaves what it used to the parent that waits for it: its CPU time is seen while the parent lives,
//! its context switches only when the parent ends. The same holds of a thread's switches and its process.

use std::fs;
use std::io;

use libc::pid_t;

use crate::failure::{Failure, Outcome, Tried};
use crate::reap::descendants;
use crate::request::Usage;
use crate::sys::NS_PER_S;

impl Usage {
    /// Of a process that has been waited for, and of those that it waited for.
    pub fn of_ended(usage: &libc::rusage) -> Usage {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Usage {
            cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}

/// The usage of a living process and all its descendants.
pub fn of_tree(root: pid_t) -> Outcome<Usage> {
    let mut sum = Usage::default();
    add(&mut sum, root).tried(|| format!("read what process {root} has used"))?;
    for pid in descendants(root) {
        // It may have ended since: its parent has its time then.
        let _ = add(&mut sum, pid);
    }
    Ok(sum)
}

fn add(sum: &mut Usage, pid: pid_t) -> io::Result<()> {
    let own_s = cpu_seconds(pid)?;
    let waited_for_s = of_children(&fs::read(format!("/proc/{pid}/stat"))?)?;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may have ended since.
        let Ok(status) = fs::read_to_string(task?.path().join("status")) else { continue };
        let (voluntary, involuntary) = switches(&status)?;
        sum.voluntary_switches += voluntary;
        sum.involuntary_switches += involuntary;
    }
    sum.cpu_s += own_s + waited_for_s;
    Ok(())
}

/// Of all threads of a process, also those that have ended. /proc has it in hundredths of a second only.
fn cpu_seconds(pid: pid_t) -> io::Result<f64> {
    // SAFETY: both out pointers are valid.
    let time = unsafe {
        let mut clock: libc::clockid_t = 0;
        match libc::clock_getcpuclockid(pid, &mut clock) {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        let mut time: libc::timespec = std::mem::zeroed();
        match libc::clock_gettime(clock, &mut time) {
            0 => time,
            _ => return Err(io::Error::last_os_error()),
        }
    };
    Ok(time.tv_sec as f64 + time.tv_nsec as f64 / NS_PER_S as f64)
}

/// CPU time of children that were waited for: fields 16 and 17 of /proc/PID/stat (proc_pid_stat(5)), in clock ticks.
fn of_children(stat: &[u8]) -> io::Result<f64> {
    const AFTER_NAME: usize = 3;
    let malformed = || io::Error::other("/proc/PID/stat has no times of children");
    let end_of_name = stat.iter().rposition(|byte| *byte == b')').ok_or_else(malformed)?;
    let rest = std::str::from_utf8(&stat[end_of_name + 1..]).map_err(|_| malformed())?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let ticks = |field: usize| fields.get(field - AFTER_NAME).and_then(|word| word.parse::<f64>().ok());
    // SAFETY: no memory is involved.
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    match (ticks(16), ticks(17)) {
        (Some(user), Some(system)) => Ok((user + system) / ticks_a_second),
        _ => Err(malformed()),
    }
}

/// From /proc/PID/task/TID/status.
fn switches(status: &str) -> io::Result<(u64, u64)> {
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok())
            .ok_or_else(|| io::Error::other(format!("/proc/PID/status has no {name}")))
    };
    Ok((of("voluntary_ctxt_switches:")?, of("nonvoluntary_ctxt_switches:")?))
}

/// The answer to USAGE. A process that has ended is not asked about: its number may belong to another.
pub fn answer(is_living: bool, pid: pid_t) -> Outcome<Usage> {
    if is_living {
        of_tree(pid)
    } else {
        Err(Failure::new(format!("process {pid} was not started here, or has ended")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_children_are_found_past_any_name() {
        let stat = b"7 (a) b c) S 1 7 7 0 -1 4194560 100 200 0 0 11 22 300 450 20 0 1 0 5 6 7";
        assert_eq!(of_children(stat).unwrap(), 7.5);
        assert!(of_children(b"7 (a) S 1 7").is_err());
    }

    #[test]
    fn switches_are_those_of_a_task() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(switches(status).unwrap(), (150, 545));
        assert!(switches("Name:\ta\n").is_err());
    }
}
