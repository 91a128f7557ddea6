//! Programs that an agent starts: their streams, their signals, their end.

mod common;

use std::time::Duration;

use common::*;
use serde_json::json;

#[test]
fn passes_streams_and_exit_code() {
    let ended = agent().run(&["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(ended.stdout, b"out\n");
    assert_eq!(ended.stderr, b"err\n");
    assert_eq!(ended.exit["code"], 7);
    assert!(ended.exit["signal"].is_null());
    assert!(ended.exit["max_rss_bytes"].as_u64().unwrap() > 100_000);
    let clock = |name: &str| ended.exit[name].as_f64().unwrap();
    assert!(clock("ended_monotonic_s") > clock("started_monotonic_s"));
}

#[test]
fn counts_processor_time() {
    let ended = agent().run(&["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
    let cpu_s = ended.exit["usage"]["cpu_s"].as_f64().unwrap();
    assert!((0.02..20.0).contains(&cpu_s), "{cpu_s}");
}

/// Works, sleeps a hundred times, and says what the kernel says that it has used.
const USES: &str = "import resource, sys, time
sum(range(10**6))
for _ in range(100): time.sleep(1e-4)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_nvcsw, used.ru_nivcsw, flush=True)
sys.stdin.read()
";

/// CPU seconds, voluntary and involuntary context switches.
fn said(stdout: &[u8]) -> [f64; 3] {
    let words = std::str::from_utf8(stdout).unwrap().split_whitespace();
    words.map(|word| word.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap()
}

fn used(usage: &serde_json::Value) -> [f64; 3] {
    ["cpu_s", "voluntary_switches", "involuntary_switches"].map(|name| usage[name].as_f64().unwrap())
}

#[test]
fn what_a_program_used_is_what_it_sees_itself() {
    let ended = agent().run(&["python3", "-c", USES]);
    let (said, used) = (said(&ended.stdout), used(&ended.exit["usage"]));
    assert!(said[1] >= 100.0);
    for (said, used) in said.into_iter().zip(used) {
        // Between the program's own look and its end is the end of the interpreter.
        assert!((said..said + 200.0).contains(&used), "{said} {used}");
    }
}

#[test]
fn what_a_living_program_and_its_children_used_can_be_asked() {
    let agent = agent();
    // One child has ended and was waited for, one lives.
    let script = format!("python3 -c '{USES}' </dev/null; python3 -c '{USES}' <&3");
    let program = agent.open(EXEC, json!({"argv": ["sh", "-c", format!("exec 3<&0; {script}")], "stdin": true}));
    let pid = program.expect(STARTED)["pid"].clone();
    let mut lines = Vec::new();
    while lines.iter().filter(|byte| **byte == b'\n').count() < 2 {
        let (kind, bytes) = program.next();
        assert_eq!(kind, STDOUT, "{}", String::from_utf8_lossy(&bytes));
        lines.extend(bytes);
    }
    let lines: Vec<_> = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(said).collect();
    let now = used(&agent.ask(USAGE, json!({"pid": pid})).unwrap());
    // The ended child's time is in steps of 1/100 s, and its switches are seen at its parent's end.
    assert!(now[0] > lines[0][0] + lines[1][0] - 0.02, "{now:?} {lines:?}");
    assert!(now[1] >= lines[1][1], "{now:?} {lines:?}");
    program.send(STDIN, b"");
    let whole = used(&program.drain().exit["usage"]);
    assert!(whole[1] >= lines[0][1] + lines[1][1], "{whole:?} {lines:?}");
    assert!(whole.iter().zip(now).all(|(whole, now)| *whole >= now - 0.011), "{whole:?} {now:?}");
    assert!(agent.ask(USAGE, json!({"pid": pid})).is_err(), "its number may belong to another");
}

#[test]
fn a_missing_program_is_an_error_not_an_exit() {
    let agent = agent();
    let failure = agent.ask(EXEC, json!({"argv": ["/no/such", "x"]})).unwrap_err();
    assert_eq!(failure["errno"], libc::ENOENT);
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains(r#"["/no/such", "x"]"#), "{message}");
    assert!(agent.ask(EXEC, json!({"argv": []})).is_err());
    assert!(agent.ask(EXEC, json!({"argv": ["a\u{0}b"]})).is_err());
    assert!(agent.ask(EXEC, json!({"argv": "true"})).is_err());
    assert!(agent.ask(EXEC, json!({"argv": ["true"], "cmd": 1})).is_err());
    assert_eq!(agent.run(&["true"]).exit["code"], 0);
}

#[test]
fn the_step_that_failed_is_named() {
    let agent = agent();
    for (key, value, word) in [
        ("cwd", json!("/no/folder"), "change to"),
        ("netns_of", json!(999_999_999), "/proc/999999999/ns/net"),
        ("cgroups", json!(["/no/cgroup"]), "/no/cgroup/cgroup.procs"),
        ("cpus", json!([1000]), "CPUs"),
        ("cpus", json!([4000]), "CPU 4000"),
        ("stdout", json!("/no/folder/file"), "/no/folder/file"),
    ] {
        let failure = agent.ask(EXEC, json!({"argv": ["true"], key: value})).unwrap_err();
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(word), "{key}: {message}");
        assert!(!message.contains("os error 1310"), "{key}: {message}");
    }
}

#[test]
fn environment_folder_and_processors_are_as_asked() {
    let agent = agent();
    let ended = agent.open(EXEC, json!({"argv": ["env"], "env": {"A": "b c"}})).finish();
    let mut lines: Vec<_> = std::str::from_utf8(&ended.stdout).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[..3], ["A=b c", "HOME=/root", "LANG=C"]);
    let ended = agent
        .open(
            EXEC,
            json!({"argv": ["sh", "-c", "pwd; grep Cpus_allowed_list /proc/self/status"],
            "cwd": "/usr", "cpus": [0]}),
        )
        .finish();
    assert_eq!(ended.stdout, b"/usr\nCpus_allowed_list:\t0\n");
}

#[test]
fn programs_are_held_until_their_moment() {
    let agent = agent();
    let held: Vec<_> = (0..4).map(|_| agent.open(EXEC, json!({"argv": ["echo", "begun"], "held": true}))).collect();
    for program in &held {
        program.expect(STARTED);
        assert!(program.try_next(Duration::from_millis(50)).is_none());
    }
    // Others start, end and are signalled meanwhile.
    assert_eq!(agent.run(&["true"]).exit["code"], 0);
    let now = agent.ask(PING, json!({})).unwrap()["monotonic_s"].as_f64().unwrap();
    let moment = now + 0.3;
    for program in &held {
        program.send(RELEASE, json!({"at_monotonic_s": moment}).to_string().as_bytes());
    }
    for program in held {
        let ended = program.drain();
        assert_eq!(ended.stdout, b"begun\n");
        let started = ended.exit["started_monotonic_s"].as_f64().unwrap();
        assert!(started >= moment, "{started} is before {moment}");
    }
    let late = agent.open(EXEC, json!({"argv": ["true"], "held": true}));
    late.expect(STARTED);
    late.send(RELEASE, br#"{"at_monotonic_s":0.0}"#);
    assert_eq!(late.drain().exit["code"], 0);
}

#[test]
fn a_held_program_has_become_what_it_is_and_nobody_traces_it_later() {
    let agent = agent();
    assert_eq!(agent.ask(EXEC, json!({"argv": ["/no/such"], "held": true})).unwrap_err()["errno"], libc::ENOENT);
    let held = agent.open(EXEC, json!({"argv": ["grep", "TracerPid", "/proc/self/status"], "held": true}));
    let pid = held.expect(STARTED)["pid"].as_u64().unwrap();
    assert_eq!(agent.sh(&format!("cat /proc/{pid}/comm")), "grep\n");
    held.send(RELEASE, br#"{"at_monotonic_s":0.0}"#);
    assert_eq!(held.drain().stdout, b"TracerPid:\t0\n");
}

#[test]
fn a_held_program_can_be_killed_and_other_signals_wait_for_its_start() {
    let agent = agent();
    let held = agent.open(EXEC, json!({"argv": ["sleep", "100"], "held": true}));
    held.expect(STARTED);
    held.send(SIGNAL, br#"{"signal":9,"group":true}"#);
    assert_eq!(held.drain().exit["signal"], 9);
    let held = agent.open(EXEC, json!({"argv": ["sleep", "100"], "held": true}));
    held.expect(STARTED);
    held.send(SIGNAL, br#"{"signal":15,"group":true}"#);
    assert!(held.try_next(Duration::from_millis(50)).is_none());
    held.send(RELEASE, br#"{"at_monotonic_s":0.0}"#);
    assert_eq!(held.drain().exit["signal"], 15);
}

#[test]
fn only_what_is_held_is_released() {
    let agent = agent();
    let free = agent.exec(&["sleep", "100"]);
    free.expect(STARTED);
    free.send(RELEASE, br#"{"at_monotonic_s":0.0}"#);
    let (kind, body) = agent.zero().unwrap();
    assert_eq!(kind, ERROR);
    assert!(String::from_utf8_lossy(&body).contains("not held"));
    free.send(SIGNAL, br#"{"signal":15,"group":true}"#);
    assert_eq!(free.drain().exit["signal"], 15);
}

#[test]
fn signals_are_at_their_defaults_and_the_group_is_its_own() {
    let agent = agent();
    let status = agent.sh("grep SigIgn /proc/self/status; test $(ps -o pgid= -p $$) = $$");
    // Signals 32 and 33 are glibc's own.
    let ignored = u64::from_str_radix(status.trim().rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(ignored & !(3 << 31), 0, "{status}");
}

#[test]
fn output_can_go_to_files() {
    let agent = agent();
    let folder = Folder::new("files");
    let (out, err) = (folder.path("out"), folder.path("err"));
    std::fs::write(&out, "longer than what comes").unwrap();
    let argv = ["sh", "-c", "echo one; echo two >&2; echo three"];
    let ended = agent.open(EXEC, json!({"argv": argv, "stdout": out, "stderr": err})).finish();
    assert!(ended.stdout.is_empty() && ended.stderr.is_empty());
    assert_eq!(std::fs::read(&out).unwrap(), b"one\nthree\n");
    assert_eq!(std::fs::read(&err).unwrap(), b"two\n");
    agent.open(EXEC, json!({"argv": argv, "stdout": out, "stderr": out})).finish();
    assert_eq!(std::fs::read(&out).unwrap(), b"one\ntwo\nthree\n");
}

#[test]
fn stdin_is_passed_and_closed() {
    let agent = agent();
    let channel = agent.open(EXEC, json!({"argv": ["cat"], "stdin": true}));
    channel.send(STDIN, b"hello ");
    channel.send(STDIN, b"world");
    channel.send(STDIN, b"");
    assert_eq!(channel.finish().stdout, b"hello world");
    assert_eq!(agent.run(&["cat"]).stdout, b"");
}

#[test]
fn big_streams_go_both_ways_at_once() {
    let agent = agent();
    let bytes = noise(30_000_000);
    let channel = agent.open(EXEC, json!({"argv": ["cat"], "stdin": true}));
    let (agent, number, bytes) = (&agent, channel.number, &bytes);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for chunk in bytes.chunks(1 << 20) {
                agent.send(number, STDIN, chunk);
            }
            agent.send(number, STDIN, b"");
        });
        let ended = channel.finish();
        assert!(ended.stdout == *bytes);
        assert_eq!(ended.exit["code"], 0);
    });
}

#[test]
fn stdin_of_a_program_that_does_not_read_ends_with_it() {
    let agent = agent();
    let channel = agent.open(EXEC, json!({"argv": ["sleep", "0.3"], "stdin": true}));
    for _ in 0..100 {
        channel.send(STDIN, &[0; 1 << 20]);
    }
    assert_eq!(channel.finish().exit["code"], 0);
    channel.send(STDIN, b"late");
    channel.send(SIGNAL, br#"{"signal":9,"group":true}"#);
    agent.ask(PING, json!({})).unwrap();
}

#[test]
fn signals_reach_the_child_even_before_it_runs() {
    let agent = agent();
    for (signal, group) in [(15, true), (9, false)] {
        let channel = agent.exec(&["sleep", "100"]);
        channel.send(SIGNAL, json!({"signal": signal, "group": group}).to_string().as_bytes());
        let exit = channel.finish().exit;
        assert_eq!(exit["signal"], signal);
        assert!(exit["code"].is_null());
    }
    let channel = agent.exec(&["sh", "-c", "sleep 100; echo no"]);
    channel.expect(STARTED);
    until("the shell has a child", || agent.sh("ps -eo args").contains("sleep 100"));
    channel.send(SIGNAL, br#"{"signal":2,"group":true}"#);
    assert_eq!(channel.drain().exit["signal"], 2);
}

#[test]
fn nothing_of_the_output_is_lost_at_the_end() {
    let agent = agent();
    for _ in 0..20 {
        let ended = agent.run(&["head", "-c", "3000000", "/dev/zero"]);
        assert_eq!(ended.stdout.len(), 3_000_000);
    }
}

#[test]
fn a_daemon_that_keeps_the_streams_does_not_hold_up_the_exit() {
    let agent = agent();
    let folder = Folder::new("daemon");
    let script = "(until test -e go; do sleep 0.02; done; echo late; touch said; sleep 50) & echo started";
    let channel = agent.open(EXEC, json!({"argv": ["sh", "-c", script], "cwd": folder.path("")}));
    assert_eq!(channel.finish().stdout, b"started\n");
    std::fs::write(folder.path("go"), "").unwrap();
    until("the daemon has written", || std::path::Path::new(&folder.path("said")).exists());
    assert!(channel.try_next(Duration::from_millis(200)).is_none());
    until("it goes on", || agent.sh("ps -eo args").contains("sleep 50"));
    // Nor does one that never stops writing.
    agent.run(&["sh", "-c", "yes & sleep 0.1"]);
}
