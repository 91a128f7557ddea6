//! The agent over a socket pair.

mod common;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

use common::*;
use serde_json::json;

#[test]
fn says_hello_and_answers_pings() {
    let agent = agent();
    assert_eq!(agent.hello["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(agent.hello["pid"], agent.child.id());
    assert!(agent.hello["netns"].as_u64().unwrap() > 0);
    let pong = agent.ask(PING, json!({})).unwrap();
    assert!(pong["monotonic_s"].as_f64() > agent.hello["monotonic_s"].as_f64());
    assert!(pong["realtime_s"].as_f64().unwrap() > 1.7e9);
}

#[test]
fn files_make_the_round_trip() {
    let agent = agent();
    let folder = Folder::new("round");
    let path = folder.path("a/b/file");
    let bytes = noise(20_000_000);
    let write = agent.open(WRITE, json!({"path": path, "mode": 0o751, "parents": true}));
    for chunk in bytes.chunks(1 << 20) {
        write.send(DATA, chunk);
    }
    write.send(END, b"{}");
    assert_eq!(write.answer().unwrap()["bytes"], bytes.len());
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o7777, 0o751);

    let (read, end) = agent.open(READ, json!({"path": path})).data();
    assert!(read == bytes);
    assert_eq!(end["bytes"], bytes.len());

    let listing = agent.ask(LIST, json!({"path": folder.path("a/b")})).unwrap();
    assert_eq!(listing["entries"], json!([{"name": "file", "bytes": bytes.len(), "kind": "file"}]));
    let listing = agent.ask(LIST, json!({"path": folder.path("a")})).unwrap();
    assert_eq!(listing["entries"][0]["kind"], "dir");
}

#[test]
fn file_errors_say_what_was_tried() {
    let agent = agent();
    for (kind, body) in [
        (READ, json!({"path": "/no/file"})),
        (LIST, json!({"path": "/no/file"})),
        (WRITE, json!({"path": "/no/file", "mode": 0o644, "parents": false})),
    ] {
        let failure = agent.ask(kind, body).unwrap_err();
        assert_eq!(failure["errno"], libc::ENOENT);
        assert!(failure["message"].as_str().unwrap().contains("/no/file"));
    }
    assert_eq!(agent.ask(READ, json!({"path": "/"})).unwrap_err()["errno"], libc::EISDIR);
    // What is on its way to a WRITE that has failed is dropped.
    let write = agent.open(WRITE, json!({"path": "/proc/no", "mode": 0o644, "parents": false}));
    for _ in 0..40 {
        write.send(DATA, &[0; 1 << 20]);
    }
    write.send(END, b"{}");
    assert!(write.answer().is_err());
    agent.ask(PING, json!({})).unwrap();
    // proc files say they have no length.
    let (version, _) = agent.open(READ, json!({"path": "/proc/version"})).data();
    assert!(version.starts_with(b"Linux"));
}

#[test]
fn waits_for_a_port() {
    let agent = agent();
    // Below the ports that the kernel hands out, or another test might be given it as soon as it is free.
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    let bind = |port| std::net::TcpListener::bind(("127.0.0.1", port));
    let (tcp, listener) = (first..32_000).find_map(|port| Some((port, bind(port).ok()?))).unwrap();
    let udp_socket = std::net::UdpSocket::bind("[::1]:0").unwrap();
    let udp = udp_socket.local_addr().unwrap().port();
    let ask = |port: u16, protocol: &str, limit_s: f64| {
        agent.ask(LISTENING, json!({"port": port, "protocol": protocol, "limit_s": limit_s}))
    };
    assert!(ask(tcp, "tcp", 20.0).is_ok());
    assert!(ask(udp, "udp", 20.0).is_ok());
    assert!(ask(1, "tcp", -1.0).is_err());
    assert!(ask(1, "sctp", 1.0).is_err());
    // Not by closing it: a process that another test is just starting may hold a copy of the descriptor.
    assert_eq!(unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) }, 0);
    let failure = ask(tcp, "tcp", 0.05).unwrap_err();
    assert_eq!(failure["errno"], libc::ETIMEDOUT);

    let waiting = agent.open(LISTENING, json!({"port": tcp, "protocol": "tcp", "limit_s": 20.0}));
    assert!(waiting.try_next(Duration::from_millis(100)).is_none());
    let _listener = bind(tcp).unwrap();
    assert!(waiting.answer().unwrap()["waited_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_refusal_is_an_answer() {
    let agent = agent();
    let reached = |address: &str, limit_s: f64| agent.ask(REACH, json!({"address": address, "limit_s": limit_s}));
    assert_eq!(reached("127.0.0.1", 5.0).unwrap()["reached"], true);
    // Addresses of multicast groups are nobody's.
    assert_eq!(reached("224.0.0.1", 0.2).unwrap()["reached"], false);
    assert!(reached("somewhere", 1.0).is_err() && reached("127.0.0.1", -1.0).is_err());
}

/// Nobody answers by ARP, which the kernel finds out after three attempts.
#[test]
fn it_asks_again_where_the_kernel_gives_up() {
    let lab = lab();
    lab.sh("ip link add near up type veth peer name far && ip link set far up && ip addr add 192.0.2.1/24 dev near");
    let waiting = lab.open(REACH, json!({"address": "192.0.2.2", "limit_s": 60.0}));
    until("the kernel has given up", || lab.sh("ip neigh show 192.0.2.2").contains("FAILED"));
    lab.sh("ip addr add 192.0.2.2/32 dev lo");
    assert_eq!(waiting.answer().unwrap()["reached"], true);
}

#[test]
fn many_channels_work_at_once() {
    let agent = agent();
    let folder = Folder::new("many");
    std::fs::write(folder.path("big"), noise(40_000_000)).unwrap();
    let big = agent.open(READ, json!({"path": folder.path("big")}));
    let channels: Vec<_> =
        (0..200).map(|n| agent.exec(&["sh", "-c", &format!("echo {n}; exit {}", n % 100)])).collect();
    for (n, channel) in channels.iter().enumerate() {
        let ended = channel.finish();
        assert_eq!(ended.stdout, format!("{n}\n").as_bytes());
        assert_eq!(ended.exit["code"], n % 100);
    }
    assert_eq!(big.data().0.len(), 40_000_000);
}

#[test]
fn the_machine_s_own_clock_and_random_numbers_are_not_touched() {
    let agent = agent();
    let said = agent.controller.ask(RESUMED, json!({"realtime_s": 1.0, "entropy": "00".repeat(32)})).unwrap_err();
    assert_eq!(said["message"], "Resumed is not a request");
    assert!(agent.controller.ask(PING, json!({})).unwrap()["realtime_s"].as_f64().unwrap() > 1.6e9);
}

#[test]
fn a_big_read_does_not_starve_a_ping() {
    let folder = Folder::new("starve");
    std::fs::write(folder.path("big"), vec![0; 300_000_000]).unwrap();
    let (mut child, mut stream) = start(&["agent"]);
    assert_eq!(read_frame(&mut stream).unwrap().0, 0);
    // Nothing is read before the agent has both, so what stands before the answer was sent before it.
    write_frame(&mut stream, 1, READ, json!({"path": folder.path("big")}).to_string().as_bytes());
    write_frame(&mut stream, 2, PING, b"{}");
    until("the agent has both", || {
        let mut bytes: libc::c_int = 1;
        // SAFETY: `bytes` is valid for writing.
        assert_eq!(unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) }, 0);
        bytes == 0
    });
    let mut before = 0;
    loop {
        match read_frame(&mut stream).unwrap() {
            (2, (kind, _)) => break assert_eq!(kind, END),
            (_, (kind, bytes)) => {
                assert_eq!(kind, DATA);
                before += bytes.len();
            }
        }
    }
    assert!(before < 100_000_000, "{before} bytes");
    drop(stream);
    child.wait().unwrap();
}

#[test]
fn a_channel_in_use_is_not_opened_twice() {
    let agent = agent();
    let channel = agent.exec(&["sleep", "100"]);
    channel.expect(STARTED);
    channel.send(EXEC, br#"{"argv":["true"]}"#);
    let (kind, body) = agent.zero().unwrap();
    assert_eq!(kind, ERROR);
    assert!(String::from_utf8(body).unwrap().contains("in use"));
    channel.send(SIGNAL, br#"{"signal":15,"group":false}"#);
    assert_eq!(channel.drain().exit["signal"], 15);
}

#[test]
fn what_is_not_the_protocol_ends_the_agent() {
    for bytes in [&b"\xff\xff\xff\x7f\x01\0\0\0\x10"[..], b"\0\0\0\0\x01\0\0\0\x99", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut agent = agent();
        agent.send_raw(bytes);
        assert_eq!(agent.zero().unwrap().0, ERROR);
        assert_eq!(agent.child.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn the_end_of_the_stream_ends_everything() {
    let mut agent = agent();
    let mark = format!("91{}", std::process::id());
    let script = format!("setsid sh -c 'trap \"\" TERM HUP; sleep {mark}' & sleep {mark}");
    agent.exec(&["sh", "-c", &script]).expect(STARTED);
    // An orphan of an orphan, in a session of its own.
    agent.sh(&format!("(setsid sleep {mark} &) >/dev/null 2>&1 &"));
    until("all are up", || marked(&mark).len() >= 4);
    agent.hang_up();
    assert_eq!(agent.child.wait().unwrap().code(), Some(0));
    until("all are gone", || marked(&mark).is_empty());
}

#[test]
fn orphans_are_reaped() {
    let agent = agent();
    agent.sh("for i in 1 2 3 4 5; do (true &) & done; wait");
    until("no zombie is left", || {
        agent.sh(&format!("ps --ppid {} -o stat= | grep -c Z || true", agent.child.id())) == "0\n"
    });
}

#[test]
fn poweroff_is_an_exit_on_a_host() {
    let mut agent = agent();
    agent.ask(POWEROFF, json!({})).unwrap();
    assert_eq!(agent.child.wait().unwrap().code(), Some(0));
}

#[test]
fn serves_on_standard_streams_and_on_sockets() {
    let mut child = std::process::Command::new(PROBE)
        .args(["agent", "--stdio"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\x10\0\0\0\x05\0\0\0\x10{\"argv\":[\"env\"]}").unwrap();
    let (mut stdout, mut text) = (child.stdout.take().unwrap(), Vec::new());
    while !String::from_utf8_lossy(&text).contains("HOME=/root") {
        let mut piece = [0; 4096];
        let count = stdout.read(&mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&text));
        text.extend(&piece[..count]);
    }
    assert!(String::from_utf8_lossy(&text).contains("monotonic_s"));
    drop(stdin);
    assert!(child.wait().unwrap().success());

    let folder = Folder::new("connect");
    let listener = std::os::unix::net::UnixListener::bind(folder.path("s")).unwrap();
    let mut child = std::process::Command::new(PROBE).args(["agent", "--connect", &folder.path("s")]).spawn().unwrap();
    let controller = Controller::new(listener.accept().unwrap().0);
    assert_eq!(controller.sh("echo hi"), "hi\n");
    controller.hang_up();
    assert!(child.wait().unwrap().success());
}

#[test]
fn wrong_arguments_are_told() {
    for arguments in [
        &["agent"][..],
        &["agent", "--fd", "3", "--stdio"],
        &["agent", "--fd", "x"],
        &["agent", "--fd", "1000"],
        &["agent", "--oops"],
        &["lab", "--fd", "3"],
        &["nothing"],
        &[],
    ] {
        let output = std::process::Command::new(PROBE).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(!output.stderr.is_empty());
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
    }
}

/// Rust's runtime would let the first of these pass.
#[test]
fn ends_of_the_signals_of_a_fault() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        let mut agent = agent();
        // SAFETY: no memory is involved.
        unsafe { libc::kill(agent.child.id() as i32, signal) };
        let mut ended = None;
        until("the agent has ended", || {
            ended = agent.child.try_wait().unwrap();
            ended.is_some()
        });
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended.unwrap()), Some(signal));
    }
}
