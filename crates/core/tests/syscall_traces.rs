//! Traces of real tracers (golden/syscall/README.md).

mod traces;

use std::path::Path;

use traces::*;

use twinbed_core::chain::{tally, Cut, Tallied, Transitions};
use twinbed_core::error::ReadError;
use twinbed_core::syscall::Architecture;

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("tests/golden/syscall").join(name)).expect("a golden file")
}

/// Hands out few bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl std::io::Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.1.min(buffer.len()).min(self.0.len());
        let (now, later) = self.0.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

const STREAMS: [&str; 10] = [
    "strace-f-ttt-T.txt",
    "strace-stderr.txt",
    "strace-f-Y.txt",
    "strace-f-tt.txt",
    "strace-f-y-n-r.txt",
    "strace.txt",
    "perf-script.txt",
    "trace-cmd.txt",
    "tracefs.txt",
    "sysdig.txt",
];

#[test]
fn kinds_are_recognised_and_chunking_changes_nothing() {
    let kinds = [("strace", 6), ("perf_script", 1), ("trace_cmd", 2), ("sysdig", 1)];
    let kinds = kinds.into_iter().flat_map(|(kind, count)| std::iter::repeat_n(kind, count));
    for (name, kind) in STREAMS.into_iter().zip(kinds).chain([("perf-pipe.data", "perf_data")]) {
        let bytes = golden(name);
        let whole = read(&bytes);
        assert_eq!(whole.1.summary.kind.name(), kind, "{name}");
        assert_eq!(whole.1.summary.cut_off, None, "{name}");
        for size in [1, 7, 4096] {
            let dripped = tally(Drip(&bytes, size), Architecture::X86_64, Cut::default()).expect("a trace");
            assert_eq!(dripped, whole, "{name} by {size}");
        }
    }
}

/// Each line's thread is that of its pid, and its calls are in the file's order: a naive reading of strace's text.
#[test]
fn strace_and_perf_give_the_same_chains() {
    let (strace, _) = read(&golden("strace-f-ttt-T.txt"));
    assert_eq!(names(&strace), ["-", "exe", "traced"]);
    for name in ["strace-stderr.txt", "strace-f-Y.txt", "strace-f-tt.txt", "strace-f-y-n-r.txt"] {
        let (other, source) = read(&golden(name));
        for program in ["exe", "traced"] {
            let of = |programs: &[Tallied]| {
                let one = programs.iter().find(|one| one.program.as_deref() == Some(program)).cloned();
                one.map(|one| one.transitions).expect("the program")
            };
            assert_eq!(of(&other), of(&strace), "{name} {program}");
        }
        assert_eq!(source.summary.skipped.get("exit"), Some(&3));
        assert_eq!(source.summary.skipped.get("signal"), Some(&2));
    }
    for name in ["perf.data", "perf-g.data", "perf-z.data", "perf-pipe.data", "perf-script.txt"] {
        let (perf, _) = read(&golden(name));
        assert_eq!(names(&perf), ["exe", "traced"], "{name}");
        assert_eq!(perf[0].transitions, strace[1].transitions, "{name}");
        assert_eq!(perf[1].transitions, strace[2].transitions, "{name}");
    }
    // By the probe, from the kernel: single calls, and counts.
    for name in ["probe.trace", "probe.counts"] {
        let (probe, source) = read(&golden(name));
        assert_eq!(names(&probe), ["bash", "exe", "grep", "traced"], "{name}");
        assert_eq!((source.summary.lost_events, source.summary.cut_off), (Some(0), None));
        assert_eq!(probe[1].transitions, strace[1].transitions, "{name}");
        assert_eq!(probe[3].transitions, strace[2].transitions, "{name}");
    }
    let (bare, _) = read(&golden("strace.txt"));
    assert_eq!(names(&bare), ["-", "traced"]);
}

#[test]
fn trace_cmd_prints_what_tracefs_prints() {
    let (report, source) = read(&golden("trace-cmd.txt"));
    assert_eq!(report, read(&golden("tracefs.txt")).0);
    assert_eq!(names(&report), ["exe", "traced"]);
    assert!(source.calls > 220);
}

#[test]
fn perf_data_and_its_script_agree_to_the_microsecond() {
    let (file, script) = (read(&golden("perf.data")), read(&golden("perf-script.txt")));
    assert_eq!(file.1.calls, script.1.calls);
    assert_eq!(file.1.first_ns.map(|ns| ns / 1000), script.1.first_ns.map(|ns| ns / 1000));
    for (one, two) in file.0.iter().zip(&script.0) {
        assert_eq!(one.transitions, two.transitions);
        for ((name, one), (_, two)) in one.calls.iter().zip(&two.calls) {
            assert_eq!((one.calls, one.timed, one.errors), (two.calls, two.timed, two.errors), "{name}");
            assert_eq!(one.positive, two.positive, "{name}");
            assert!(one.duration_ns.abs_diff(two.duration_ns) <= 1000 * one.timed, "{name}");
        }
    }
}

#[test]
fn sysdig_by_hand() {
    let (programs, source) = read(&golden("sysdig.txt"));
    let expected = Transitions::of_sequence(&["fstat", "read", "openat", "sched_yield", "exit_group"]);
    assert_eq!(names(&programs), ["Web Content", "cat"]);
    assert_eq!(programs[1].transitions, expected);
    assert_eq!(programs[0].transitions, Transitions::of_sequence(&["read"]));
    let errors: Vec<(&str, u64)> = programs[1].calls.iter().map(|(name, of)| (name.as_ref(), of.errors)).collect();
    assert_eq!(errors, [("exit_group", 0), ("fstat", 0), ("openat", 1), ("read", 0), ("sched_yield", 0)]);
    let of_read = programs[1].calls.iter().find(|(name, _)| name.as_ref() == "read").map(|(_, of)| of.duration_ns);
    assert_eq!(of_read, Some(2000));
    let skipped: Vec<_> = source.summary.skipped.into_iter().collect();
    assert_eq!(skipped, [("exit", 1), ("exit_without_entry", 1), ("no_system_call", 1)]);
}

#[test]
fn lost_events_break_sequences() {
    let text = "\
 ab-7 [000] 1.000001: sys_enter: NR 0 (0)
 ab-7 [000] 1.000002: sys_exit: NR 0 = 1
CPU:0 [LOST 12 EVENTS]
 ab-7 [000] 1.000003: sys_enter: NR 1 (0)
CPU 1 is empty
 a b-8 (    7) [001] d.h1. 1.000003: sys_enter: NR -1 (0)
CPU:1 [3 EVENTS DROPPED]
 ab-7 [000] 1.000004: sys_enter: NR 3 (sys_exit: NR 9 = 1)
";
    let (programs, source) = read(text.as_bytes());
    let parts = [["read"], ["write"], ["close"]].map(|one| Transitions::of_sequence(&one));
    assert_eq!(programs[0].transitions, Transitions::pool(&parts));
    assert_eq!(source.summary.lost_events, Some(15));
    assert_eq!(source.summary.skipped["lost_events_record"], 2);
    assert_eq!(source.summary.skipped["no_call_number"], 1);
    assert_eq!(source.summary.skipped["other_event"], 1);
}

#[test]
fn what_is_cut_gives_what_is_there() {
    let mut files: Vec<&str> = STREAMS.to_vec();
    files.extend(["perf.data", "perf-g.data", "perf-z.data", "perf-pipe.data"]);
    for name in files {
        let bytes = golden(name);
        let all = read(&bytes).1.calls;
        let step = bytes.len() / 50 + 1;
        for length in (0..bytes.len()).step_by(step) {
            if let Ok((_, source)) = read_cut(&bytes[..length], Cut::default()) {
                assert!(source.calls <= all, "{name} {length}");
            }
        }
    }
    let bytes = golden("strace-f-ttt-T.txt");
    let (_, source) = read(&bytes[..bytes.len() - 3]);
    let cut = source.summary.cut_off.expect("a cut line").to_string();
    assert!(cut.starts_with("strace, line 235: expected a whole line, found"), "{cut}");
    // A file says at its end what is in it; a stream of the same has said it before.
    let (file, stream) = (golden("perf.data"), golden("perf-pipe.data"));
    assert!(read_cut(&file[..file.len() / 2], Cut::default()).unwrap_err().contains("the file ends before"));
    let half = read(&stream[..stream.len() - 3000]).1;
    assert!(half.summary.cut_off.is_some() && half.calls > 100);
}

#[test]
fn refusals_say_what_was_found() {
    let refused = |bytes: &[u8]| match tally(bytes, Architecture::X86_64, Cut::default()) {
        Err(ReadError::Format(error)) => error.to_string(),
        other => format!("{:?}", other.map(|_| ())),
    };
    assert!(refused(b"").contains("the file is empty"));
    assert!(refused(b"\x17\x08Dtracing6\0").contains("trace-cmd report"));
    assert!(refused(b"\x7fELF\x02").contains("a program (ELF)"));
    assert!(refused(b"once upon a time\n").contains("\"text\""));
    assert!(refused(&golden("perf.data")).contains("says only at its end"));
    let big_endian: Vec<u8> = b"PERFILE2".iter().rev().copied().collect();
    assert!(refused(&big_endian).contains("big-endian"));
}

#[test]
fn plain_sequences_are_numbers_or_names() {
    let read = |text: &str, architecture| {
        tally(text.as_bytes(), architecture, Cut::default())
            .map(|(programs, source)| (programs[0].transitions.clone(), source))
    };
    let expected = Transitions::pool(&[
        Transitions::of_sequence(&["read", "write", "newfstatat"]),
        Transitions::of_sequence(&["read"]),
    ]);
    let x86_64 = read("# comment\n0, 1\nnewfstatat # and more\n\n0\n", Architecture::X86_64).expect("a sequence");
    assert_eq!(x86_64.0, expected);
    let aarch64 = read("63 64 79\n\n\n63", Architecture::Aarch64).expect("a sequence");
    assert_eq!(aarch64.0, expected);
    let odd = read("0 9999 18446744073709551615 ?!\n", Architecture::X86_64);
    assert!(odd.is_err());
    let odd = read("0\n9999 syscall_0x1b7 no-name 1\n", Architecture::X86_64).expect("a sequence");
    assert_eq!(odd.0, Transitions::of_sequence(&["read", "syscall_9999", "faccessat2", "write"]));
    assert_eq!(odd.1.summary.skipped["not_a_call"], 1);
}

/// The format of the University of New Mexico's sequences: a process and its call in each line.
#[test]
fn two_columns_are_processes_and_their_calls() {
    let read = |text: &str| tally(text.as_bytes(), Architecture::I386, Cut::default()).expect("a sequence");
    let (programs, source) = read("9001 4\n9002 5\n9001 3\n9002 close\n# more\n9001 1\n9002 1\n9001 5\n");
    // By hand; process 9001 ends with its exit, and a later one has its number.
    let expected = Transitions::pool(&[
        Transitions::of_sequence(&["write", "read", "exit"]),
        Transitions::of_sequence(&["open", "close", "exit"]),
        Transitions::of_sequence(&["open"]),
    ]);
    assert_eq!(source.summary.kind.name(), "plain_by_process");
    assert_eq!((programs[0].transitions.sequences(), source.calls), (expected.sequences(), 7));
    assert_eq!(programs[0].transitions, expected);
    assert_eq!(source.summary.notes["call_by_number"], 6);
    let (_, source) = read("9001 4\n9002 5\n");
    assert_eq!((source.summary.kind.name(), source.calls), ("plain_by_process", 2));
    // One line of two calls, and lines of three, are sequences.
    for (text, calls) in [("4 5\n", 2), ("4 5 3\n4 5\n", 5), ("read write\nread write\n", 4)] {
        let (_, source) = read(text);
        assert_eq!((source.summary.kind.name(), source.calls), ("plain", calls), "{text}");
    }
}
