//! System calls: a program that makes known ones, seen by every method at once.
//!
//! Needs root, the unified control-group hierarchy, cc and strace.

#[path = "../common/mod.rs"]
mod common;
mod crowds;
mod edges;
mod formats;
mod probe;
mod program;
mod times;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use common::*;
use formats::*;
use probe::*;
use program::*;

const METHODS: [&str; 2] = ["bpf", "tracefs"];

/// Every method counts and traces the same run; gives (pid, counts, traces) once they agree.
fn everything(what: &str, count_arguments: &[&str]) -> (u32, Vec<Count>, Vec<Trace>) {
    let (folder, group) = (Folder::new(what), Group::new(what));
    let mut program = Program::start(&group, &folder, what);
    let mut counting = Vec::new();
    let mut tracing = Vec::new();
    for method in METHODS {
        let scope = ["--cgroup", group.text(), "--method", method];
        let arguments = [&["count"], &scope[..], count_arguments].concat();
        counting.push(Probe::start(&folder, &format!("count-{method}"), &arguments));
        tracing.push(Probe::start(&folder, &format!("trace-{method}"), &[&["trace"], &scope[..]].concat()));
    }
    program.go();
    let pid = program.finish();
    let counts: Vec<_> = counting.into_iter().map(|probe| Count::parse(&probe.stop())).collect();
    let traces: Vec<_> = tracing.into_iter().map(|probe| Trace::parse(&probe.stop())).collect();
    let moves_bytes = |number: u16| [0, 1, 17, 18, 44, 45].contains(&number);
    let lost = counts.iter().map(|count| count.end).chain(traces.iter().map(|trace| trace.end));
    assert!(lost.into_iter().all(|end| end.unwrap().2 == 0), "nothing is lost");
    for (count, trace) in counts.iter().zip(&traces) {
        assert_eq!(count.header["method"], trace.header["method"]);
        for other in &traces {
            assert_eq!(count.whole(), other.transitions());
            assert_eq!(count.sums(), other.sums(moves_bytes));
        }
    }
    (pid, counts, traces)
}

fn number(call: libc::c_long) -> u16 {
    call as u16
}

/// The calls of `plain` after its read.
fn plain_calls() -> Vec<u16> {
    let mut calls = Vec::new();
    for round in 0..500 {
        calls.extend([number(libc::SYS_getppid), number(libc::SYS_write)]);
        if round % 10 == 0 {
            calls.push(number(libc::SYS_close));
        }
    }
    calls
}

fn order_3(calls: &[u16]) -> Vec<Order3> {
    let at = |place: Option<usize>| place.map(|place| calls[place]);
    (0..calls.len()).map(|n| [3, 2, 1, 0].map(|back| at(n.checked_sub(back)))).collect()
}

#[test]
fn counts_and_traces_are_what_the_program_did() {
    let (pid, counts, traces) = everything("plain", &["--skip", "7", "--times", "all"]);
    let mut calls = plain_calls();
    calls.push(number(libc::SYS_exit_group));
    let stream: Stream = (pid, Some(pid), "program".into());
    let mut expected = BTreeMap::new();
    for (index, history) in order_3(&calls).into_iter().enumerate() {
        let part = ['a', '0', '1', '2', 'b'][(index + 1).saturating_sub(7).min(4)];
        *expected.entry((0, stream.clone(), part, history)).or_insert(0) += 1;
    }
    for count in &counts {
        assert_eq!(count.transitions, expected);
        let sums = count.sums();
        let sum = |call| sums[&(stream.clone(), number(call))];
        assert_eq!(sum(libc::SYS_getppid), (500, 500, 0, None));
        assert_eq!(sum(libc::SYS_write), (500, 500, 0, Some(5000)));
        assert_eq!(sum(libc::SYS_close), (50, 50, 50, None));
        assert_eq!(sum(libc::SYS_exit_group), (1, 0, 0, None));
        for totals in count.totals.values() {
            assert_eq!((totals.timed, totals.time_ns > Some(0)), (totals.returned, totals.returned > 0));
        }
        assert_eq!(count.ended, std::slice::from_ref(&stream));
        assert_eq!(count.header["skip"], "7");
    }
    for trace in &traces {
        let [(actual, made)] = &trace.streams[..] else { panic!("{:?}", trace.streams) };
        assert_eq!(*actual, stream);
        assert!(made.iter().map(|call| call.number).eq(calls.iter().copied()));
        for pair in made.windows(2) {
            assert!(pair[0].entry_ns + pair[0].exit.unwrap().0 <= pair[1].entry_ns, "times go on");
        }
        let start_ns: u64 = trace.header["start_ns"].parse().unwrap();
        assert!(made[0].entry_ns > start_ns && made[made.len() - 1].entry_ns < trace.end.unwrap().0);
        assert_eq!(made[1].exit.unwrap().1, 10);
        assert_eq!(made[2].exit.unwrap().1, -i64::from(libc::EBADF));
        assert!(trace.bytes < 1000 + 16 * calls.len(), "{} bytes", trace.bytes);
    }
}

#[test]
fn threads_do_not_mix() {
    let (pid, counts, _) = everything("threads", &[]);
    let sums = counts[0].sums();
    let made = |first: bool, call| -> u64 {
        let of = sums.iter().filter(|((stream, n), _)| (stream.0 == pid) == first && *n == number(call));
        of.map(|(_, sum)| sum.0).sum()
    };
    assert_eq!((made(true, libc::SYS_getuid), made(false, libc::SYS_getgid)), (60, 60));
    assert_eq!((made(true, libc::SYS_getgid), made(false, libc::SYS_getuid)), (0, 0));
    assert!(sums.keys().all(|((_, tgid, _), _)| *tgid == Some(pid)));
}

#[test]
fn names_begin_streams() {
    let (pid, counts, _) = everything("names", &[]);
    let getgid = number(libc::SYS_getgid);
    for count in &counts {
        let whole = count.whole();
        let names: std::collections::BTreeSet<_> =
            whole.keys().map(|((tid, _, name), _)| (*tid == pid, &name[..])).collect();
        let renamed = "renamed \\x5c";
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            [(false, "program"), (false, "second"), (true, "program"), (true, renamed)]
        );
        // Neither under the new name nor back under the old one there is anything before.
        let starts = |name: &str| -> Vec<u64> {
            let first = [None, None, None, Some(getgid)];
            whole.iter().filter(|((stream, h), _)| stream.2 == name && *h == first).map(|(_, calls)| *calls).collect()
        };
        assert_eq!((starts("program"), starts(renamed)), (vec![1], vec![1]));
        let execve = number(libc::SYS_execve);
        let sums = count.sums();
        let executed: Vec<_> = sums.iter().filter(|((_, n), _)| *n == execve).collect();
        assert_eq!(executed.len(), 1);
        assert_eq!((&executed[0].0 .0 .2[..], *executed[0].1), ("program", (1, 1, 0, None)));
    }
}

#[test]
fn a_thread_that_takes_over_the_first_one_s_id_is_another_stream() {
    let (pid, counts, _) = everything("renumber", &[]);
    for count in &counts {
        let sums = count.sums();
        let of = |name: &str, call| -> Vec<_> {
            let entries = sums.iter().filter(|((stream, n), _)| stream.2 == name && *n == number(call));
            entries.map(|((stream, _), sum)| (stream.0 == pid, sum.0, sum.1)).collect()
        };
        assert_eq!(of("program", libc::SYS_execve), [(false, 1, 0)]);
        assert_eq!(of("second", libc::SYS_getegid), [(true, 1, 1)]);
    }
}

#[test]
fn slices_add_up() {
    for method in METHODS {
        let name = format!("slices-{method}");
        let (folder, group) = (Folder::new(&name), Group::new(&name));
        let mut program = Program::start(&group, &folder, "rounds");
        let scope = ["--cgroup", group.text(), "--method", method];
        let probe = Probe::start(&folder, "count", &[&["count", "--slice", "0.02"], &scope[..]].concat());
        let trace = Probe::start(&folder, "trace", &[&["trace"], &scope[..]].concat());
        for _ in 0..3 {
            program.go();
            program.until_it_reads();
            // tracefs's slices are those of the events' own times; the kernel's sums are taken when one is over.
            let over_ns = monotonic_ns() + 20_000_000;
            until("the end of the slice", || match method {
                "bpf" => probe.last_slice_ns() > over_ns,
                _ => monotonic_ns() > over_ns,
            });
        }
        program.go();
        program.finish();
        let (count, trace) = (Count::parse(&probe.stop()), Trace::parse(&trace.stop()));
        let busy: std::collections::BTreeSet<u64> = count.transitions.keys().map(|key| key.0).collect();
        assert!(busy.len() >= 3, "{busy:?}");
        assert_eq!(count.whole(), trace.transitions());
        for (index, start_ns) in &count.slices {
            assert_eq!(*start_ns, count.header["start_ns"].parse::<u64>().unwrap() + index * 20_000_000);
        }
    }
}

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
