//! Traces of all kinds: the golden ones of real tracers (golden/syscall/README.md), and the probe's files as
//! crates/probe/SYSCALLS.md describes them, written here.

use std::path::Path;

use twinbed_core::chain::{tally, tally_slice, Cut, Source, Tallied, Transitions};
use twinbed_core::error::ReadError;
use twinbed_core::syscall::Architecture;

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("tests/golden/syscall").join(name)).expect("a golden file")
}

fn read_cut(bytes: &[u8], cut: Cut) -> Result<(Vec<Tallied>, Source), String> {
    tally_slice(bytes, Architecture::X86_64, cut).map_err(|error| error.to_string())
}

fn read(bytes: &[u8]) -> (Vec<Tallied>, Source) {
    read_cut(bytes, Cut::default()).expect("a trace")
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

fn names(programs: &[Tallied]) -> Vec<&str> {
    programs.iter().map(|one| one.program.as_deref().unwrap_or("-")).collect()
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

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn block(kind: u8, fields: &[u64], rest: &[u8]) -> Vec<u8> {
    let body = [fields.iter().flat_map(|field| varint(*field)).collect(), rest.to_vec()].concat();
    [vec![kind], (body.len() as u32).to_le_bytes().to_vec(), body].concat()
}

/// A call of number, gap, and duration and value where it returned.
fn call(number: u64, gap: u64, returned: Option<(u64, i64)>) -> Vec<u8> {
    let mut bytes = [varint(number << 1 | u64::from(returned.is_some())), varint(gap)].concat();
    if let Some((duration, value)) = returned {
        bytes.extend(varint(duration));
        bytes.extend(varint(((value << 1) ^ (value >> 63)) as u64));
    }
    bytes
}

fn probe_trace() -> Vec<u8> {
    let calls = |stream: u64, lost: u64, base: u64, calls: &[Vec<u8>]| {
        block(b'C', &[stream, lost, base, calls.len() as u64], &calls.concat())
    };
    [
        b"\x89TBSYS\x01\n".to_vec(),
        block(b'H', &[], b"architecture x86_64\nkernel 6.1.0\nmethod bpf\nclock monotonic\nnew thing\n"),
        block(b'S', &[1, 100, 100], b"ab"),
        calls(1, 0, 1000, &[call(0, 5, Some((20, -11))), call(1, 300, Some((7, 1 << 40)))]),
        block(b'S', &[2, 101, 100], b""),
        calls(2, 0, 1010, &[call(3, 0, Some((1, 0)))]),
        block(b'?', &[], b"of a later version"),
        calls(1, 4, 5000, &[call(1, 0, Some((9, 0))), call(70_000, 1, Some((2, 0)))]),
        block(b'L', &[6000, 3], b""),
        calls(1, 0, 7000, &[call(0, 0, Some((1, 1))), call(231, 2, None)]),
        block(b'E', &[1], b""),
        block(b'Z', &[9000, 7, 7], b""),
    ]
    .concat()
}

#[test]
fn probe_trace_as_documented() {
    let (programs, source) = read(&probe_trace());
    assert_eq!(names(&programs), ["-", "ab"]);
    let parts: [&[&str]; 3] = [&["read", "write"], &["write", "syscall_70000"], &["read", "exit_group"]];
    let parts = parts.map(Transitions::of_sequence);
    assert_eq!(programs[1].transitions, Transitions::pool(&parts));
    assert_eq!(programs[0].transitions, Transitions::of_sequence(&["close"]));
    assert_eq!((source.calls, source.summary.lost_events), (7, Some(7)));
    assert_eq!((source.first_ns, source.last_ns), (Some(1005), Some(7003)));
    assert_eq!(source.summary.skipped["unknown_block"], 1);
    assert_eq!(source.summary.cut_off, None);
    assert!(source.summary.facts.contains(&("new".to_owned(), "thing".to_owned())));
    let of_read = programs[1].calls.iter().find(|(name, _)| name.as_ref() == "read").map(|(_, of)| *of).expect("read");
    assert_eq!((of_read.calls, of_read.timed, of_read.duration_ns, of_read.errors), (2, 2, 21, 1));
}

#[test]
fn every_prefix_of_a_probe_trace_is_read_to_its_last_whole_block() {
    let bytes = probe_trace();
    let whole = read(&bytes).1.calls;
    let mut last = 0;
    for length in 8..bytes.len() {
        let source = read(&bytes[..length]).1;
        assert!(source.calls >= last && source.calls <= whole);
        last = source.calls;
        assert!(source.summary.cut_off.is_some(), "{length}");
    }
    assert_eq!(last, whole);
    let mut newer = bytes;
    newer[6] = 2;
    let refused = read_cut(&newer, Cut::default()).unwrap_err();
    assert_eq!(refused, "probe trace at byte 6: version is 2, expected 1");
}

const COUNTS: &str = "\
twinbed-syscalls-count 1
architecture x86_64
skip 2
slice_ns 1000

@ 0 100
s 1 50 50 a\\x5cb c
t 1 a - - - 0 1
t 1 a - - 0 1 1
t 1 0 - 0 1 3 1
c 1 a 0 1 1 1 - 10
c 1 a 1 1 1 0 5 20
c 1 0 3 1 1 0 - 30
@ 1 1100
t 1 1 0 1 3 0 1
t 1 2 1 3 0 1 1
t 1 b 3 0 1 0 2
c 1 b 0 4 3 0 - 40
lost 2
@ 2 2100
t 1 b 3 0 1 0 1
x 1
end 3000 7 2
";

#[test]
fn count_file_as_documented() {
    let (programs, source) = read(COUNTS.as_bytes());
    assert_eq!(names(&programs), ["a\\b c"]);
    let place = |names: [Option<&str>; 3]| names.map(|name| name.map(str::to_owned));
    let actual: Vec<_> = programs[0]
        .transitions
        .grams()
        .map(|(gram, count)| {
            let name = |at: usize| programs[0].transitions.name(gram[at]);
            (place([name(0), name(1), name(2)]), name(3).expect("a call").to_owned(), count)
        })
        .collect();
    let (read_, write, close) = (Some("read"), Some("write"), Some("close"));
    let expected = [
        ([close, read_, write], "read", 3),
        ([read_, write, close], "read", 1),
        ([write, close, read_], "write", 1),
        ([None, read_, write], "close", 1),
        ([None, None, read_], "write", 1),
        ([None, None, None], "read", 1),
    ];
    assert_eq!(actual, expected.map(|(before, call, count)| (place(before), call.to_owned(), count)));
    assert_eq!((source.calls, source.summary.lost_events, source.summary.cut_off.clone()), (8, Some(2), None));
    // After the cut: close, read, write, read ... as if nothing had been before.
    let (after, _) = read_cut(COUNTS.as_bytes(), Cut { skip: 2, limit: None }).expect("counts");
    assert_eq!((after[0].transitions.calls(), after[0].transitions.sequences()), (6, 1));
    let calls: Vec<&str> = after[0].calls.iter().map(|(name, _)| name.as_ref()).collect();
    assert_eq!(calls, ["close", "read"]);
    let refused = read_cut(COUNTS.as_bytes(), Cut { skip: 5, limit: None }).unwrap_err();
    assert_eq!(refused, "count file: expected a cut after 5 calls, found \"counts with a cut after 2 calls\"");
    let (_, cut) = read(&COUNTS.as_bytes()[..COUNTS.len() - 30]);
    assert!(cut.summary.cut_off.is_some());
}

/// Two threads' sleeps of which 1, 2, 3 and 4 s were timed: of 10 calls, 25 s with a standard error of
/// 10 sqrt((5/3) / 4 (1 - 4/10)) = 5 s.
const SAMPLED: &str = "\
twinbed-syscalls-count 2
architecture x86_64
times sampled
timed_share 0.0625

@ 0 100
s 1 50 50 a
s 2 51 50 a
t 1 b - - - 35 6
t 2 b - - - 35 4
t 2 b - - 35 39 30
t 2 b - 35 39 102 2
t 2 b 35 39 102 231 1
c 1 b 35 6 6 0 - 1 4000000000 16000000000000000000
c 2 b 35 4 4 0 - 3 6000000000 14000000000000000000
c 2 b 39 30 30 0 - 0 0 0
c 2 b 102 2 2 0 - 1 1000 1000000
c 2 b 231 1 0 0 - 0 0 0
end 3000 43 0
";

#[test]
fn times_of_a_sample_stand_for_all_calls() {
    let (programs, source) = read(SAMPLED.as_bytes());
    assert!(source.summary.skipped.is_empty());
    let actual: Vec<_> = programs[0]
        .calls
        .iter()
        .map(|(name, of)| (name.as_ref(), of.calls, of.timed, of.seconds(), of.seconds_standard_error()))
        .collect();
    let expected = [
        ("exit_group", 1, 0, None, None),
        ("getpid", 30, 0, None, None),
        ("getuid", 2, 1, Some(2e-6), None),
        ("nanosleep", 10, 4, Some(25.0), Some(5.0)),
    ];
    assert_eq!(actual, expected);
}

#[test]
fn times_of_all_calls_have_no_error_and_those_of_none_are_not_there() {
    let line = "c 2 b 39 30 30 0 - ";
    for (rest, expected) in [("30 9000000000 -", (Some(9.0), Some(0.0))), ("0 - -", (None, None))] {
        let text = SAMPLED.replace(&format!("{line}0 0 0"), &format!("{line}{rest}"));
        let (programs, _) = read(text.as_bytes());
        let (_, getpid) = programs[0].calls.iter().find(|(name, _)| name.as_ref() == "getpid").expect("getpid");
        assert_eq!((getpid.calls, (getpid.seconds(), getpid.seconds_standard_error())), (30, expected));
    }
    // Before there was a choice all were timed.
    let (programs, _) = read(COUNTS.as_bytes());
    let (_, close) = &programs[0].calls[0];
    assert_eq!((close.timed, close.seconds(), close.seconds_standard_error()), (1, Some(30e-9), Some(0.0)));
}

#[test]
fn count_files_of_later_versions_are_refused() {
    let refused = read_cut(SAMPLED.replacen("count 2", "count 3", 1).as_bytes(), Cut::default()).unwrap_err();
    assert!(refused.contains("twinbed-syscalls-count 1 or 2"), "{refused}");
}
