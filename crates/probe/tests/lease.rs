//! The lease: whatever ends it, what was entered into its undo is carried out and nothing of it stays. These need root and
//! busybox.

mod common;

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::*;
use serde_json::json;

const NOT_UNDONE: i32 = 4;
/// A lease whose end is waited for, and which a test that is kept waiting for seconds still holds.
const SHORT_S: &str = "6";

/// A host's folder, a lease on it, and a file in which undo entries leave their mark.
struct Leased {
    child: Child,
    controller: Controller,
    entries: u32,
}

fn command(folder: &Folder, id: &str, more: &[&str]) -> (Command, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let twin = OwnedFd::from(theirs.try_clone().unwrap());
    fs::create_dir_all(folder.path("programs")).unwrap();
    let mut command = Command::new(PROBE);
    command.args(["lease", "--folder", &folder.path("host"), "--id", id, "--programs", &folder.path("programs")]);
    command.args(["--wait", "0", "--from", "192.0.2.1 1 192.0.2.2 22"]).args(more);
    command.stdin(OwnedFd::from(theirs)).stdout(twin);
    (command, ours)
}

fn leased(folder: &Folder, id: &str, seconds: &str, more: &[&str]) -> Leased {
    let (mut command, stream) = command(folder, id, more);
    let child = command.args(["--seconds", seconds]).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    Leased { child, controller: Controller::new(stream), entries: 0 }
}

impl Leased {
    fn write(&self, path: &str, content: &str) {
        let channel = self.controller.open(WRITE, json!({"path": path}));
        channel.send(DATA, content.as_bytes());
        channel.send(END, b"{}");
        channel.answer().unwrap();
    }

    fn undo(&mut self, entry: serde_json::Value) {
        self.write(&format!("/run/twinbed-undo/{:03}.json", self.entries), &entry.to_string());
        self.entries += 1;
    }

    /// An undo entry that adds a line to the mark.
    fn mark(&mut self, folder: &Folder, text: &str) {
        self.undo(json!({"argv": ["sh", "-c", format!("echo {text} >> {}", folder.path("mark"))]}));
    }

    /// The keeper's exit code and what it said.
    fn ended(mut self) -> (i32, String) {
        let mut stderr = String::new();
        let status = self.child.wait().unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (status.code().unwrap_or(-1), stderr)
    }

    fn agent(&self) -> i32 {
        let keeper = self.child.id();
        let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).unwrap();
        children.trim().parse().unwrap()
    }
}

fn marks(folder: &Folder) -> String {
    fs::read_to_string(folder.path("mark")).unwrap_or_default()
}

fn leases(folder: &Folder) -> usize {
    fs::read_dir(folder.path("host/leases")).unwrap().count()
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[test]
fn undoes_backwards_when_the_controller_hangs_up() {
    let folder = Folder::new("lease-hangs-up");
    let mut lease = leased(&folder, "a", "30", &[]);
    fs::write(folder.path("setting"), "changed").unwrap();
    lease.mark(&folder, "first");
    lease.undo(json!({"path": folder.path("setting"), "content": "as it was"}));
    lease.write("/run/twinbed-undo/input", "third\n");
    lease.undo(json!({"argv": ["tee", "-a", folder.path("mark")], "stdin": "input"}));
    lease.mark(&folder, "last");
    let sleeping = format!("93{}", std::process::id());
    lease.controller.exec(&["sleep", &sleeping]).expect(STARTED);
    lease.write("/run/twinbed/artifact", "kept while the lease lasts");
    assert!(Path::new(&folder.path("host/leases/a/artifacts/artifact")).exists());

    lease.controller.hang_up();
    assert_eq!(lease.ended(), (0, String::new()));
    assert_eq!(marks(&folder), "last\nthird\nfirst\n");
    assert_eq!(fs::read_to_string(folder.path("setting")).unwrap(), "as it was");
    assert!(marked(&sleeping).is_empty());
    assert_eq!(leases(&folder), 0);
    assert!(!Path::new(&folder.path("host/not-undone.log")).exists());
}

#[test]
fn has_the_host_s_network_and_processes_of_its_own() {
    let folder = Folder::new("lease-own");
    let lease = leased(&folder, "a", "30", &[]);
    let inside = &lease.controller;
    assert_eq!(inside.hello["pid"], 1);
    let netns = std::os::unix::fs::MetadataExt::ino(&fs::metadata("/proc/self/ns/net").unwrap());
    assert_eq!(inside.hello["netns"], netns);
    let name = format!("twinbed-lease-{}", std::process::id());
    inside.sh(&format!("echo x > /run/{name}; echo x > /tmp/{name}; test -d /run/twinbed"));
    for place in ["/run", "/tmp"] {
        assert!(!Path::new(place).join(&name).exists(), "{place}");
    }
    assert_eq!(inside.sh("ls -d /proc/[0-9]* | head -1"), "/proc/1\n");
    inside.hang_up();
    assert_eq!(lease.ended().0, 0);
}

#[test]
fn ends_when_nothing_is_heard_for_its_time_and_not_before() {
    let folder = Folder::new("lease-silent");
    let mut lease = leased(&folder, "a", SHORT_S, &[]);
    lease.mark(&folder, "undone");
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(7000) {
        lease.controller.ask(PING, json!({})).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(marks(&folder), "");
    let (code, stderr) = lease.ended();
    assert_eq!(code, 0);
    assert!(stderr.contains("nothing was heard of the controller for 6s"), "{stderr}");
    assert_eq!((marks(&folder).as_str(), leases(&folder)), ("undone\n", 0));
}

#[test]
fn an_agent_that_is_stopped_does_not_keep_the_host() {
    let folder = Folder::new("lease-stopped");
    let mut lease = leased(&folder, "a", SHORT_S, &[]);
    lease.mark(&folder, "undone");
    kill(lease.agent(), libc::SIGSTOP);
    lease.controller.hang_up();
    assert_eq!(lease.ended().0, 0);
    assert_eq!((marks(&folder).as_str(), leases(&folder)), ("undone\n", 0));
}

#[test]
fn the_keeper_is_not_interrupted() {
    let folder = Folder::new("lease-interrupts");
    let mut lease = leased(&folder, "a", "30", &[]);
    lease.mark(&folder, "undone");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        kill(lease.child.id() as i32, signal);
    }
    lease.controller.ask(PING, json!({})).unwrap();
    kill(lease.agent(), libc::SIGKILL);
    assert_eq!(lease.ended().0, 0);
    assert_eq!(marks(&folder), "undone\n");
}

/// A lease whose keeper was killed; its agent has died with it.
fn abandoned(folder: &Folder) {
    let mut lease = leased(folder, "dead", "30", &[]);
    lease.mark(folder, "undone");
    let agent = lease.agent();
    kill(lease.child.id() as i32, libc::SIGKILL);
    assert_eq!(lease.ended().0, -1);
    until("the agent is gone", || !Path::new(&format!("/proc/{agent}")).exists());
    assert_eq!((marks(folder).as_str(), leases(folder)), ("", 1));
}

#[test]
fn the_next_lease_undoes_what_a_killed_keeper_left() {
    let folder = Folder::new("lease-next");
    abandoned(&folder);
    let lease = leased(&folder, "next", "30", &[]);
    assert_eq!((marks(&folder).as_str(), leases(&folder)), ("undone\n", 1));
    lease.controller.hang_up();
    assert_eq!(lease.ended().0, 0);
}

fn sweep(folder: &Folder) -> (i32, String) {
    let output = Command::new(PROBE).args(["lease", "--sweep", "--folder", &folder.path("host")]).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(printed).unwrap())
}

#[test]
fn sweeping_undoes_the_dead_and_leaves_the_living() {
    let folder = Folder::new("lease-sweep");
    assert_eq!(sweep(&folder), (0, String::new()));
    abandoned(&folder);
    assert_eq!(sweep(&folder), (0, format!("{}\n", folder.path("host/leases/dead"))));
    assert_eq!((marks(&folder).as_str(), leases(&folder)), ("undone\n", 0));
    let lease = leased(&folder, "alive", "30", &[]);
    let (code, printed) = sweep(&folder);
    assert_eq!(code, 1);
    assert!(printed.contains("this host is leased by a controller at 192.0.2.1 1 192.0.2.2 22"), "{printed}");
    lease.controller.ask(PING, json!({})).unwrap();
    lease.controller.hang_up();
    assert_eq!(lease.ended().0, 0);
}

#[test]
fn what_was_left_before_the_host_was_started_anew_is_only_removed() {
    let folder = Folder::new("lease-boot");
    abandoned(&folder);
    let about = folder.path("host/leases/dead/about.json");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = fs::read_to_string(&about).unwrap();
    assert!(text.contains(boot.trim()));
    fs::write(&about, text.replace(boot.trim(), "another")).unwrap();
    assert_eq!(sweep(&folder).0, 0);
    assert_eq!((marks(&folder).as_str(), leases(&folder)), ("", 0));
}

#[test]
fn all_is_tried_and_what_fails_is_told_and_kept() {
    let folder = Folder::new("lease-fails");
    let mut lease = leased(&folder, "a", "30", &[]);
    lease.mark(&folder, "first");
    lease.undo(json!({"argv": ["sh", "-c", "echo broken >&2; exit 3"]}));
    lease.undo(json!({"path": "/nowhere/at/all", "content": ""}));
    lease.undo(json!({"argv": ["no-such-program"]}));
    lease.write("/run/twinbed-undo/009.json", "{\"argv\": [\"to");
    lease.mark(&folder, "last");
    lease.controller.hang_up();
    let (code, stderr) = lease.ended();
    assert_eq!(code, NOT_UNDONE);
    assert_eq!(marks(&folder), "last\nfirst\n");
    let log = fs::read_to_string(folder.path("host/not-undone.log")).unwrap();
    for what in ["exit status: 3: broken", "put /nowhere/at/all back", "no-such-program"] {
        assert!(stderr.contains(what) && log.contains(what), "{what}: {stderr} {log}");
    }
    assert!(stderr.contains("009.json is not whole"), "{stderr}");
    assert_eq!((log.lines().count(), leases(&folder)), (3, 0));
}

#[test]
fn a_host_is_leased_once_at_a_time() {
    let folder = Folder::new("lease-once");
    let first = leased(&folder, "first", "30", &[]);
    let (mut refused, _stream) = command(&folder, "second", &["--seconds", "30"]);
    let output = refused.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("this host is leased by a controller at 192.0.2.1"));
    assert_eq!(leases(&folder), 1);
    first.controller.hang_up();
    assert_eq!(first.ended().0, 0);
}

#[test]
fn programs_of_a_given_root_run_and_undo() {
    let folder = Folder::new("lease-root");
    let root = folder.0.join("root");
    for name in ["bin", "etc"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::copy("/usr/bin/busybox", root.join("bin/busybox")).unwrap();
    for name in ["sh", "cat", "ls", "touch", "test"] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    let mut lease = leased(&folder, "a", "30", &["--root", root.to_str().unwrap()]);
    lease.controller.sh("echo x > /etc/mine; test -c /dev/kmsg; test -d /proc/1; test -d /run/twinbed-bin");
    assert!(!root.join("etc/mine").exists());
    // Seen from the root, not through the agent's layer.
    lease.undo(json!({"argv": ["sh", "-c", "test -d /proc/1 && test ! -e /etc/mine && touch /etc/undone"]}));
    lease.controller.hang_up();
    assert_eq!(lease.ended(), (0, String::new()));
    assert!(root.join("etc/undone").exists());
    assert_eq!(fs::read_dir(root.join("proc")).unwrap().count(), 0);
    assert_eq!(leases(&folder), 0);
}

#[test]
fn a_full_disk_is_told_before_anything_is_changed() {
    let folder = Folder::new("lease-full");
    let host = folder.path("host");
    fs::create_dir_all(&host).unwrap();
    let mount =
        |arguments: &[&str]| assert!(Command::new(arguments[0]).args(&arguments[1..]).status().unwrap().success());
    mount(&["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", &host]);
    let lease = leased(&folder, "a", "30", &[]);
    lease.controller.run(&["dd", "if=/dev/zero", "of=/run/twinbed/fill", "bs=4k"]);
    let channel = lease.controller.open(WRITE, json!({"path": "/run/twinbed-undo/000.json"}));
    channel.send(DATA, &noise(4096));
    channel.send(END, b"{}");
    let refused = channel.answer().unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("No space left on device"), "{refused}");
    lease.controller.hang_up();
    assert_eq!(lease.ended().0, 0);
    assert_eq!(leases(&folder), 0);
    mount(&["umount", &host]);
}
