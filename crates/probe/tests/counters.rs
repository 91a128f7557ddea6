//! Counters: the file's format, its grid, and its end.

mod common;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::*;

struct Snapshot {
    monotonic_s: f64,
    realtime_s: f64,
    sources: HashMap<String, Option<Vec<u8>>>,
}

/// Reads the format as its description says, and nothing else.
fn parse(mut rest: &[u8]) -> Vec<Snapshot> {
    let mut snapshots: Vec<Snapshot> = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|b| *b == b'\n').unwrap();
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        rest = &rest[end + 1..];
        if let Some(fields) = line.strip_prefix("@ ") {
            let fields: Vec<_> = fields.split(' ').collect();
            assert_eq!(fields[0], snapshots.len().to_string());
            assert!(fields[1..].iter().all(|f| f.rsplit('.').next().unwrap().len() == 9));
            snapshots.push(Snapshot {
                monotonic_s: fields[1].parse().unwrap(),
                realtime_s: fields[2].parse().unwrap(),
                sources: HashMap::new(),
            });
            continue;
        }
        let (name, count) = line.strip_prefix("# ").unwrap().rsplit_once(' ').unwrap();
        let content = (count != "-").then(|| {
            let count: usize = count.parse().unwrap();
            let (content, after) = rest.split_at(count);
            assert_eq!(after[0], b'\n');
            rest = &after[1..];
            content.to_vec()
        });
        let sources = &mut snapshots.last_mut().unwrap().sources;
        assert!(sources.insert(name.to_owned(), content).is_none());
    }
    snapshots
}

fn record(arguments: &[&str], signal: i32, meanwhile: impl FnOnce()) -> Vec<Snapshot> {
    let folder = Folder::new(&format!("counters-{signal}-{}", arguments.len()));
    let out = folder.path("out");
    let mut child =
        Command::new(PROBE).args(["counters", "--out", &out]).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let there = fs::read(&out).unwrap();
    match arguments[1] {
        "60" => assert_eq!(parse(&there).len(), 1),
        _ => assert!(there.starts_with(b"@ 0 "), "others may have come since, the last in part"),
    }
    meanwhile();
    // SAFETY: kill has no memory effects, and the child is ours.
    unsafe { libc::kill(child.id() as i32, signal) };
    assert_eq!(child.wait().unwrap().code(), Some(0));
    parse(&fs::read(&out).unwrap())
}

#[test]
fn snapshots_are_on_a_grid_and_whole() {
    let arguments =
        ["--interval", "0.2", "--net", "--kernel", "--softnet", "--wake-ups", "--ethtool", "lo", "--ethtool", "no"];
    let all = record(&arguments, libc::SIGTERM, || std::thread::sleep(Duration::from_millis(2100)));
    let on_grid = &all[1..all.len() - 1];
    let lasted_s = on_grid.last().unwrap().monotonic_s - on_grid[0].monotonic_s;
    assert!(on_grid.len() as f64 <= lasted_s / 0.2 + 2.0, "{} in {lasted_s} s", on_grid.len());
    // A busy machine makes one late, but that moves none after it: most lie on one grid.
    let near = |one: &Snapshot| {
        let off_s = |other: &Snapshot| (other.monotonic_s - one.monotonic_s + 1e3) % 0.2;
        on_grid.iter().filter(|other| !(0.05..0.15).contains(&off_s(other))).count()
    };
    assert!(on_grid.iter().any(|one| 2 * near(one) > on_grid.len()));
    assert!(all.iter().all(|snapshot| snapshot.realtime_s > 1.7e9));
    for (n, snapshot) in all.iter().enumerate() {
        for name in ["stat", "vmstat", "net/dev", "net/snmp", "net/softnet_stat", "interrupts"] {
            let content = snapshot.sources[&format!("/proc/{name}")].as_ref().unwrap();
            assert!(!content.is_empty(), "{name}");
        }
        let of_kvm = ["exits", "halt_exits", "halt_wakeup"].map(|name| format!("/sys/kernel/debug/kvm/{name}"));
        for name in of_kvm.iter().map(String::as_str).chain(["/proc/schedstat"]) {
            assert_eq!(snapshot.sources[name].is_some(), fs::read(name).is_ok(), "{name}");
        }
        let wake_ups = String::from_utf8_lossy(snapshot.sources["wake-ups"].as_ref().unwrap());
        assert!(wake_ups.starts_with("cpu0 ") || wake_ups.starts_with("refused "), "{wake_ups}");
        let at_an_end = n == 0 || n == all.len() - 1;
        assert_eq!(snapshot.sources.contains_key("idle-states"), at_an_end);
        assert_eq!(snapshot.sources.contains_key("ethtool -k lo"), at_an_end);
        if at_an_end {
            assert!(snapshot.sources["ethtool -k lo"].is_some());
            assert!(snapshot.sources["ethtool -S no"].is_none());
            let counts_states = fs::exists("/sys/devices/system/cpu/cpu0/cpuidle/state0/usage").unwrap();
            assert_eq!(snapshot.sources["idle-states"].is_some(), counts_states);
        }
    }
    let stat = |n: usize| all[n].sources["/proc/stat"].clone().unwrap();
    assert_ne!(stat(0), stat(all.len() - 1), "a file that is read again is read anew");
}

#[test]
fn the_kernel_log_is_that_of_the_time() {
    let mark = format!("probe test {}", std::process::id());
    let log = |text: &str| {
        let mut kmsg = fs::File::options().write(true).open("/dev/kmsg").unwrap();
        kmsg.write_all(text.as_bytes()).unwrap();
    };
    log(&format!("{mark} before\n"));
    let all = record(&["--interval", "60", "--kmsg"], libc::SIGINT, || {
        log(&format!("{mark} during\n"));
    });
    assert_eq!(all.len(), 2);
    assert!(!all[0].sources.contains_key("/dev/kmsg"));
    let log = all[1].sources["/dev/kmsg"].clone().unwrap();
    let log = String::from_utf8_lossy(&log);
    assert!(log.contains(&format!("{mark} during")), "{log}");
    assert!(!log.contains(&format!("{mark} before")), "{log}");
}

#[test]
fn wrong_settings_are_told() {
    for arguments in [
        &["--interval", "0", "--out", "/dev/null"][..],
        &["--interval", "NaN", "--out", "/dev/null"],
        &["--interval", "x", "--out", "/dev/null"],
        &["--interval", "1", "--out", "/no/folder/file"],
        &["--interval", "1"],
    ] {
        let output = Command::new(PROBE).arg("counters").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}
