//! What the others do: strace's totals, scopes, losses, refusals.

use std::collections::BTreeMap;

use super::*;

/// strace -c's table: name to (calls, errors).
fn strace_table(text: &str) -> BTreeMap<String, (u64, u64)> {
    let rows = text.lines().skip(2).map(|line| line.split_whitespace().collect::<Vec<_>>());
    // % time, seconds, usecs/call, calls, errors (or nothing), name
    let rows = rows.filter(|row| row.len() >= 5 && row[0].parse::<f64>().is_ok());
    rows.map(|row| (row[row.len() - 1].to_owned(), (row[3].parse().unwrap(), row[4].parse().unwrap_or(0)))).collect()
}

/// The calls of the program and its start-up code, as the header <asm/unistd_64.h> numbers them.
const NAMES: [(&str, libc::c_long); 22] = [
    ("read", libc::SYS_read),
    ("write", libc::SYS_write),
    ("open", libc::SYS_open),
    ("openat", libc::SYS_openat),
    ("close", libc::SYS_close),
    ("fstat", libc::SYS_fstat),
    ("newfstatat", libc::SYS_newfstatat),
    ("mmap", libc::SYS_mmap),
    ("munmap", libc::SYS_munmap),
    ("mprotect", libc::SYS_mprotect),
    ("brk", libc::SYS_brk),
    ("getppid", libc::SYS_getppid),
    ("readlink", libc::SYS_readlink),
    ("readlinkat", libc::SYS_readlinkat),
    ("uname", libc::SYS_uname),
    ("arch_prctl", libc::SYS_arch_prctl),
    ("set_tid_address", libc::SYS_set_tid_address),
    ("set_robust_list", libc::SYS_set_robust_list),
    ("rseq", libc::SYS_rseq),
    ("prlimit64", libc::SYS_prlimit64),
    ("getrandom", libc::SYS_getrandom),
    ("exit_group", libc::SYS_exit_group),
];

#[test]
fn totals_are_those_of_strace() {
    let (folder, group) = (Folder::new("strace"), Group::new("strace"));
    let (program, second) = programs(&folder);
    let run = |command: &mut Command, group: Option<&Group>| {
        let mut child = match group {
            Some(group) => group.spawn(command),
            None => command.stdin(Stdio::piped()).spawn().unwrap(),
        };
        child.stdin.take().unwrap().write_all(b"x").unwrap();
        assert!(child.wait().unwrap().success());
        child.id()
    };
    let table = folder.path("table");
    run(Command::new("strace").args(["-c", "-f", "-o", &table, &program, "plain", &second]), None);
    let mut expected = strace_table(&fs::read_to_string(&table).unwrap());
    let total = expected.remove("total").expect("strace's table");
    // Made under the name of whoever started the program; not ended, so not in strace's table.
    assert_eq!(expected.remove("execve"), Some((1, 0)));
    assert!(!expected.contains_key("exit_group"));

    let arguments = ["count", "--cgroup", group.text(), "--method", "bpf"];
    let probe = Probe::start(&folder, "count", &arguments);
    let pid = run(Command::new(&program).args(["plain", &second]), Some(&group));
    let count = Count::parse(&probe.stop());
    let mut counted: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (((tid, _, name), number), (calls, _, errors, _)) in count.sums() {
        assert_eq!(tid, pid);
        let known = NAMES.iter().find(|(_, n)| *n as u16 == number);
        match known {
            Some(("exit_group", _)) => {}
            Some((call, _)) if name == "program" => drop(counted.insert((*call).into(), (calls, errors))),
            // Between fork and exec the test program makes some.
            _ => assert_ne!(name, "program", "call {number}"),
        }
    }
    assert_eq!(counted, expected);
    let sum = counted.values().fold((1, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(sum, total);
}

#[test]
fn scopes_are_kept() {
    let folder = Folder::new("scopes");
    let (inside, outside) = (Group::new("inside"), Group::new("outside"));
    let mut programs = [&inside, &outside].map(|group| Program::start(group, &folder, "plain"));
    let pid = programs[0].child.id().to_string();
    let scopes = [&["--cgroup", inside.text()][..], &["--pid", &pid], &[], &["--system-wide"]];
    let mut probes = Vec::new();
    for (at, scope) in scopes.iter().enumerate() {
        for method in METHODS {
            let arguments = [&["count", "--method", method], *scope].concat();
            probes.push((at, Probe::start(&folder, &format!("{at}-{method}"), &arguments)));
        }
    }
    programs.iter_mut().for_each(Program::go);
    let pids = programs.map(Program::finish);
    let own = probes.iter().map(|(_, probe)| probe.child.id()).collect::<Vec<_>>();
    for (n, (at, probe)) in probes.into_iter().enumerate() {
        let count = Count::parse(&probe.stop());
        let closes = |pid: u32| -> u64 {
            let sums = count.sums();
            sums.iter().filter(|((s, n), _)| s.0 == pid && *n == number(libc::SYS_close)).map(|(_, sum)| sum.0).sum()
        };
        let others = if at < 2 { 0 } else { 50 };
        assert_eq!((closes(pids[0]), closes(pids[1])), (50, others), "{:?}", scopes[at]);
        let groups: Vec<_> = count.totals.keys().filter_map(|key| key.1 .1).collect();
        assert!(!groups.contains(&own[n]), "never itself");
        assert!(!groups.contains(&std::process::id()), "nor its parent");
    }
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let (folder, group) = (Folder::new("room"), Group::new("room"));
    let mut program = Program::start(&group, &folder, "plain");
    let arguments = ["count", "--cgroup", group.text(), "--method", "bpf", "--states", "4"];
    let probe = Probe::start(&folder, "count", &arguments);
    program.go();
    program.finish();
    let (_, calls, lost) = Count::parse(&probe.stop()).end.unwrap();
    assert!(lost > 0 && calls > 0);
    assert_eq!(calls + lost, plain_calls().len() as u64 + 1);
}

#[test]
fn what_a_slow_reader_misses_is_counted() {
    for method in METHODS {
        let name = format!("slow-{method}");
        let (folder, group) = (Folder::new(&name), Group::new(&name));
        let mut program = Program::start(&group, &folder, "rounds");
        let arguments = ["trace", "--cgroup", group.text(), "--method", method, "--buffer", "4"];
        let probe = Probe::start(&folder, "trace", &arguments);
        probe.signal(libc::SIGSTOP);
        program.go();
        program.until_it_reads();
        let written = || fs::metadata(&probe.out).unwrap().len();
        let before = written();
        probe.signal(libc::SIGCONT);
        until("what the ring had held", || written() > before);
        for _ in 0..3 {
            program.go();
        }
        program.finish();
        let trace = Trace::parse(&probe.stop());
        let (_, calls, lost) = trace.end.unwrap();
        assert!(lost > 0, "{method}");
        // Between the rounds it reads, and in the end leaves.
        let made = 3 * plain_calls().len() as u64 + 4;
        match method {
            "bpf" => assert_eq!(calls + lost, made),
            _ => assert!(calls < made && !trace.lost_blocks.is_empty()),
        }
        // Where it is known that something is missing, nothing is said to follow.
        assert!(trace.streams.iter().flat_map(|(_, calls)| calls).any(|call| call.after_loss));
    }
}

#[test]
fn without_permission_it_says_what_was_tried() {
    let folder = Folder::new("permission");
    let out = folder.path("out");
    let script = "mount -t tmpfs none /sys && exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let probe = [PROBE, "syscalls", "count", "--out", &out];
    let output = Command::new("unshare").args(["-m", "sh", "-c", script, "sh"]).args(probe).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("no way to see system calls here"), "{stderr}");
    let refusals =
        ["bpf: cannot make a BPF map: Operation not permitted", "tracefs: cannot mount tracefs: Operation not"];
    for refusal in refusals {
        assert!(stderr.contains(refusal), "{stderr}");
    }
    assert!(!Path::new(&out).exists());
}

#[test]
fn wrong_arguments_are_told() {
    let folder = Folder::new("arguments");
    let out = folder.path("out");
    for (arguments, message) in [
        (&["syscalls"][..], "count|trace"),
        (&["syscalls", "count"], "--out is missing"),
        (&["syscalls", "count", "--out", &out, "--slice", "0"], "--slice takes 0.01 to 86400 seconds"),
        (&["syscalls", "count", "--out", &out, "--method", "magic"], "--method takes bpf or tracefs"),
        (&["syscalls", "count", "--out", &out, "--pid", "1", "--system-wide"], "only one of"),
        (&["syscalls", "count", "--out", &out, "--times", "some"], "--times takes sampled, all or none"),
        (&["syscalls", "trace", "--out", &out, "--times", "all"], "unknown or repeated argument \"--times\""),
        (&["syscalls", "trace", "--out", &out, "--skip", "1"], "unknown or repeated argument \"--skip\""),
        (&["syscalls", "count", "--out", &out, "--cgroup", "/no/group"], "cannot open /no/group"),
        (&["syscalls", "count", "--out", &out, "--cgroup", "/tmp"], "cannot take /tmp as a control group (v2)"),
        (&["syscalls", "trace", "--out", "/no/folder/file"], "cannot create /no/folder/file"),
    ] {
        let output = Command::new(PROBE).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(message), "{stderr}");
    }
}

#[test]
fn an_instance_that_a_killed_probe_left_is_removed() {
    let folder = Folder::new("killed");
    let mount = folder.path("tracefs");
    fs::create_dir(&mount).unwrap();
    let list = format!("unshare -m sh -c 'mount -t tracefs none {mount} && ls {mount}/instances'");
    let instances = |pid: u32| {
        let output = Command::new("sh").args(["-c", &list]).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|name| name.starts_with(&format!("twinbed-{pid}-"))).count()
    };
    let arguments = ["trace", "--method", "tracefs"];
    let mut killed = Probe::start(&folder, "one", &arguments);
    // As long as it lives: once it is dead, the next probe of any test removes it.
    assert_eq!(instances(killed.child.id()), 1);
    killed.signal(libc::SIGKILL);
    killed.child.wait().unwrap();
    let next = Probe::start(&folder, "two", &arguments);
    let pid = next.child.id();
    assert_eq!((instances(killed.child.id()), instances(pid)), (0, 1));
    next.stop();
    assert_eq!(instances(pid), 0);
}
