//! Idle CPUs: how long it takes to wake one, and keeping them from being idle.
//!
//! A CPU that has nothing to run stops. Whoever then wakes a program on it has to start the CPU first: on a virtual machine
//! through the hypervisor, on hardware out of a sleep state. `wake-up` measures that between two threads that wake each other
//! in turn, each on CPUs of its own. `spin` keeps CPUs from stopping: a thread of the idle scheduling class on each runs while
//! nothing else wants to.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::arguments::{number, Arguments};
use crate::command::cpu_set;
use crate::failure::{Failure, Outcome, Tried};
use crate::stop::Stop;
use crate::sys;

/// Of two threads that wake each other, before any is counted.
const WARM_UP_ROUNDS: usize = 20;
const MOST_ROUNDS: usize = 10_000;
const NICEST: libc::c_int = 19;
/// A thread's name in /proc/PID/task/TID/comm: fifteen bytes at most.
pub const SPINNER: &str = "keeps CPU awake";

#[derive(Debug, PartialEq, Serialize)]
struct WakeUp {
    /// Times that each thread woke the other.
    rounds: usize,
    /// Half of the median round: the time from waking a thread until it runs.
    median_s: f64,
    p90_s: f64,
}

/// `wake-up --from 0 --to 1 --seconds 0.1`; CPUs are listed as `0,1`.
pub fn measure_main(mut arguments: Arguments) -> Outcome<()> {
    let from = cpus("--from", &arguments.required("--from")?)?;
    let to = cpus("--to", &arguments.required("--to")?)?;
    let text = arguments.required("--seconds")?;
    arguments.finish()?;
    let limit = Duration::try_from_secs_f64(number("--seconds", &text)?)
        .map_err(|_| Failure::new(format!("--seconds takes seconds, not {text}")))?;
    let result = measure(&from, &to, limit)?;
    let line = serde_json::to_string(&result).map_err(io::Error::from).tried(|| "write JSON")?;
    writeln!(io::stdout(), "{line}").tried(|| "write to standard output")
}

/// `spin --cpu 0 --cpu 1 [--cgroup FOLDER]`: says `ready` once every thread has its class and its CPU; ends by SIGTERM.
pub fn spin_main(mut arguments: Arguments) -> Outcome<()> {
    let every = arguments.values("--cpu")?;
    let cgroup = arguments.value("--cgroup")?;
    arguments.finish()?;
    if every.is_empty() {
        return Err(Failure::new("--cpu is missing"));
    }
    let stop = Stop::block().tried(|| "block signals")?;
    if let Some(folder) = cgroup {
        let path = format!("{folder}/cgroup.procs");
        fs::write(&path, "0").tried(|| format!("join cgroup {folder}"))?;
    }
    for text in &every {
        let (set, (ready, is_ready)) = (cpus("--cpu", text)?, sys::pipe().tried(|| "make a pipe").map(ends)?);
        let spin = move || {
            let prepared = be_idle(&set).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)).err().unwrap_or(0);
            let told = File::from(ready).write_all(&prepared.to_ne_bytes());
            while prepared == 0 && told.is_ok() {
                std::hint::spin_loop();
            }
        };
        Builder::new().name(SPINNER.to_owned()).spawn(spin).tried(|| "start a thread")?;
        let mut answer = [0; 4];
        File::from(is_ready).read_exact(&mut answer).tried(|| "start a thread")?;
        match i32::from_ne_bytes(answer) {
            0 => {}
            error => {
                return Err(io::Error::from_raw_os_error(error)).tried(|| format!("run at idle priority on CPU {text}"))
            }
        }
    }
    let mut stdout = io::stdout();
    stdout.write_all(b"ready\n").and_then(|()| stdout.flush()).tried(|| "write to standard output")?;
    stop.wait().tried(|| "wait for a signal")
}

/// The write end, then the read end.
fn ends((read, write): (std::os::fd::OwnedFd, std::os::fd::OwnedFd)) -> (std::os::fd::OwnedFd, std::os::fd::OwnedFd) {
    (write, read)
}

/// Puts the calling thread on a CPU, in the idle class, as nice as can be: its time counts as `nice` in /proc/stat.
fn be_idle(set: &libc::cpu_set_t) -> io::Result<()> {
    pin(set)?;
    // SAFETY: the parameters outlive the call; 0 is the calling thread in all of them.
    unsafe {
        sys::check(libc::setpriority(libc::PRIO_PROCESS, 0, NICEST))?;
        let parameters: libc::sched_param = std::mem::zeroed();
        sys::check(libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters)).map(drop)
    }
}

fn pin(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the set outlives the call.
    sys::check(unsafe { libc::sched_setaffinity(0, size_of_val(set), set) }).map(drop)
}

fn measure(from: &libc::cpu_set_t, to: &libc::cpu_set_t, limit: Duration) -> Outcome<WakeUp> {
    let there = sys::event().tried(|| "make an event")?;
    let back = sys::event().tried(|| "make an event")?;
    let (mut asked, mut answer) =
        (there.try_clone().tried(|| "share an event")?, back.try_clone().tried(|| "share an event")?);
    let to = *to;
    let echo = move || -> io::Result<()> {
        if let Err(error) = pin(&to) {
            give(&mut answer, END)?;
            return Err(error);
        }
        while take(&mut asked)? < END {
            give(&mut answer, 1)?;
        }
        Ok(())
    };
    let answering = Builder::new().spawn(echo).tried(|| "start a thread")?;
    let rounds = thread::scope(|scope| scope.spawn(|| rounds(from, there, back, limit)).join());
    let rounds = rounds.map_err(|_| Failure::new("a thread that measures has ended"))?.tried(|| "measure a wake-up")?;
    answering.join().map_err(|_| Failure::new("a thread that answers has ended"))?.tried(|| "answer a wake-up")?;
    summary(rounds)
}

/// What an event holds that ends the thread at its other end; 1 is a wake-up.
const END: u64 = 2;

/// Nanoseconds of each round there and back.
fn rounds(set: &libc::cpu_set_t, mut there: File, mut back: File, limit: Duration) -> io::Result<Vec<u64>> {
    pin(set)?;
    let began = Instant::now();
    let mut taken = Vec::with_capacity(MOST_ROUNDS);
    for round in 0..WARM_UP_ROUNDS + MOST_ROUNDS {
        let start = Instant::now();
        give(&mut there, 1)?;
        if take(&mut back)? >= END {
            break;
        }
        if round >= WARM_UP_ROUNDS {
            taken.push(start.elapsed().as_nanos() as u64);
        }
        if !taken.is_empty() && began.elapsed() >= limit {
            break;
        }
    }
    give(&mut there, END)?;
    Ok(taken)
}

fn give(event: &mut File, value: u64) -> io::Result<()> {
    event.write_all(&value.to_ne_bytes())
}

fn take(event: &mut File) -> io::Result<u64> {
    let mut value = [0; 8];
    event.read_exact(&mut value)?;
    Ok(u64::from_ne_bytes(value))
}

fn summary(mut rounds: Vec<u64>) -> Outcome<WakeUp> {
    rounds.sort_unstable();
    let at = |share: f64| rounds.get(((rounds.len() as f64 - 1.0) * share) as usize).map(|ns| *ns as f64 / 2e9);
    match (at(0.5), at(0.9)) {
        (Some(median_s), Some(p90_s)) => Ok(WakeUp { rounds: rounds.len(), median_s, p90_s }),
        _ => Err(Failure::new("no wake-up was measured")),
    }
}

fn cpus(option: &str, text: &str) -> Outcome<libc::cpu_set_t> {
    let each = text.split(',').map(|cpu| number(option, cpu)).collect::<Outcome<Vec<usize>>>()?;
    cpu_set(&each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_is_half_of_a_round() {
        let rounds = vec![10_000, 2_000, 4_000, 6_000, 8_000];
        assert_eq!(summary(rounds).unwrap(), WakeUp { rounds: 5, median_s: 3e-6, p90_s: 4e-6 });
        assert!(summary(Vec::new()).is_err());
    }

    #[test]
    fn threads_wake_each_other_until_the_limit() {
        let first = cpu_set(&[0]).unwrap();
        let result = measure(&first, &first, Duration::from_millis(5)).unwrap();
        assert!(result.rounds >= 1 && result.median_s > 0.0 && result.p90_s >= result.median_s);
    }

    #[test]
    fn a_cpu_that_there_is_not_is_an_error_and_no_wait_without_end() {
        let (first, none) = (cpu_set(&[0]).unwrap(), cpu_set(&[1023]).unwrap());
        assert!(measure(&first, &none, Duration::from_secs(1)).is_err());
        assert!(measure(&none, &first, Duration::from_secs(1)).is_err());
    }

    #[test]
    fn cpus_are_numbers() {
        assert!(cpus("--cpu", "0,1").is_ok());
        assert_eq!(cpus("--cpu", "x").err().unwrap().message, "--cpu takes a number, not \"x\"");
    }
}
