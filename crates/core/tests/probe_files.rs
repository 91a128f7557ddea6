//! The probe's files as docs/probe/SYSCALLS.md describes them, written here.

mod traces;

use traces::*;
use twinbed_core::chain::{Cut, Transitions};

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
