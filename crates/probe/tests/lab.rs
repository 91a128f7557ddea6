//! The lab, and containers in it. These need root, or at least user namespaces, and busybox.

mod common;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::*;
use serde_json::{json, Value};

fn lab() -> Running {
    running(&["lab", "--id", "t1"])
}

fn link_names(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn has_namespaces_of_its_own() {
    let lab = lab();
    assert_eq!(lab.hello["pid"], 1);
    assert_eq!(lab.hello["hostname"], "lab-t1");
    assert_ne!(lab.hello["netns"], netns_inode("/proc/self/ns/net"));
    assert_eq!(link_names(&lab.sh("ls /sys/class/net")), ["lo"]);
    assert!(lab.sh("ip -o link show lo").contains(",UP"));
    lab.sh("ping -c1 -W1 127.0.0.1 >/dev/null || ip addr show lo | grep -q 127.0.0.1");
    assert_eq!(lab.sh("ls -d /proc/[0-9]* | head -1"), "/proc/1\n");
    assert_eq!(fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim(), host_name());
}

fn host_name() -> String {
    let output = Command::new("uname").arg("-n").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn netns_inode(path: &str) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap())
}

#[test]
fn keeps_cgroups_in_sight_and_mounts_to_itself() {
    let lab = lab();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let hierarchies: Vec<_> = places.filter(|place| place.starts_with("/sys/fs/cgroup")).collect();
    assert!(!hierarchies.is_empty());
    for place in hierarchies {
        let device = std::os::unix::fs::MetadataExt::dev(&fs::metadata(place).unwrap());
        assert_eq!(lab.sh(&format!("stat -c %d {place}")), format!("{device}\n"));
    }
    let folder = Folder::new("mount");
    lab.sh(&format!("mount -t tmpfs t {}; touch {}", folder.path(""), folder.path("x")));
    assert!(!Path::new(&folder.path("x")).exists());
}

/// A cgroup of each hierarchy that there is, named for this process.
fn cgroups(name: &str) -> Vec<String> {
    let name = format!("probe-{}-{name}", std::process::id());
    ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"]
        .iter()
        .filter(|root| Path::new(root).join("cgroup.procs").exists())
        .map(|root| format!("{root}/{name}"))
        .inspect(|dir| fs::create_dir_all(Path::new(dir).join("inner")).unwrap())
        .collect()
}

/// A lab with scratch, cgroups, and processes of several kinds in them.
fn furnished(name: &str) -> (Running, Folder, Vec<String>, String) {
    let folder = Folder::new(name);
    let scratch = folder.path("scratch");
    fs::create_dir_all(format!("{scratch}/a/b")).unwrap();
    let groups = cgroups(name);
    let mut arguments = vec!["lab", "--id", name, "--scratch", &scratch];
    for group in &groups {
        arguments.extend(["--cgroup", group]);
    }
    let lab = running(&arguments);
    let mark = format!("92{}{}", std::process::id(), name.len());
    let inner: Vec<_> = groups.iter().map(|group| format!("{group}/inner")).collect();
    let script = format!("trap '' TERM HUP INT; setsid sleep {mark} & sleep {mark}");
    lab.open(EXEC, json!({"argv": ["sh", "-c", script], "cgroups": inner})).expect(STARTED);
    lab.sh(&format!("mount -t tmpfs t {scratch}/a/b; touch {scratch}/a/b/f {scratch}/a/f"));
    until("all are up", || marked(&mark).len() >= 3);
    for group in &inner {
        let members = fs::read_to_string(format!("{group}/cgroup.procs")).unwrap();
        assert!(members.lines().count() >= 3, "{group}: {members}");
    }
    (lab, folder, groups, mark)
}

fn assert_gone(folder: &Folder, groups: &[String], mark: &str) {
    assert!(marked(mark).is_empty());
    assert!(!groups.is_empty());
    for group in groups {
        assert!(!Path::new(group).exists(), "{group}");
    }
    assert!(!Path::new(&folder.path("scratch")).exists());
}

#[test]
fn leaves_nothing_when_the_controller_hangs_up() {
    let (mut lab, folder, groups, mark) = furnished("hangs-up");
    lab.hang_up();
    assert_eq!(lab.child.wait().unwrap().code(), Some(0));
    assert_gone(&folder, &groups, &mark);
}

#[test]
fn leaves_nothing_when_its_pid_1_is_killed() {
    let (mut lab, folder, groups, mark) = furnished("pid-1");
    let keeper = lab.child.id();
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).unwrap();
    // SAFETY: kill has no memory effects; the keeper has the one child.
    unsafe { libc::kill(children.trim().parse().unwrap(), libc::SIGKILL) };
    assert_eq!(lab.child.wait().unwrap().code(), Some(128 + libc::SIGKILL));
    assert_gone(&folder, &groups, &mark);
}

#[test]
fn nothing_in_it_outlives_the_keeper() {
    let (mut lab, _folder, groups, mark) = furnished("keeper-dies");
    lab.child.kill().unwrap();
    until("all are gone", || marked(&mark).is_empty());
    // Nobody is left to remove these.
    for group in groups {
        until("the cgroup can be removed", || fs::remove_dir(format!("{group}/inner")).is_ok());
        fs::remove_dir(group).unwrap();
    }
}

#[test]
fn the_keeper_is_not_interrupted() {
    let (mut lab, folder, groups, mark) = furnished("interrupts");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: kill has no memory effects.
        unsafe { libc::kill(lab.child.id() as i32, signal) };
    }
    assert_eq!(lab.sh("echo still here"), "still here\n");
    let status = lab.sh("grep SigIgn /proc/self/status");
    assert!(status.contains("\t00000000"), "{status}");
    lab.hang_up();
    lab.child.wait().unwrap();
    assert_gone(&folder, &groups, &mark);
}

#[test]
fn ends_by_construction_when_the_controller_is_killed() {
    // The controller is a process of its own here, killed with SIGKILL: its end of the socket
    // closes with it. Python passes one end on and keeps the other.
    let folder = Folder::new("sigkill");
    let scratch = folder.path("scratch");
    fs::create_dir_all(&scratch).unwrap();
    let mark = format!("93{}", std::process::id());
    let program = r#"
import json, socket, struct, subprocess, sys, time
ours, theirs = socket.socketpair()
subprocess.Popen([sys.argv[1], "lab", "--id", "k", "--scratch", sys.argv[2], "--fd", str(theirs.fileno())],
                 pass_fds=[theirs.fileno()])
theirs.close()
body = json.dumps({"argv": ["sh", "-c", "setsid sleep %s & sleep %s" % (sys.argv[3], sys.argv[3])]}).encode()
ours.sendall(struct.pack("<IIB", len(body), 1, 0x10) + body)
time.sleep(100)
"#;
    let mut controller =
        Command::new("python3").args(["-c", program, PROBE, &scratch, &mark]).stdout(Stdio::null()).spawn().unwrap();
    let sleeping = format!("sleep\0{mark}");
    until("all are up", || marked(&sleeping).len() >= 2);
    controller.kill().unwrap();
    controller.wait().unwrap();
    until("all are gone", || marked(&mark).is_empty());
    until("the scratch folder is gone", || !Path::new(&scratch).exists());
}

#[test]
fn works_without_root() {
    // As nobody; the probe and the folder must be reachable for it.
    let folder = Folder::new("nobody");
    let probe = folder.path("probe");
    fs::copy(PROBE, &probe).unwrap();
    let program = r#"
import json, os, socket, struct, subprocess, sys
ours, theirs = socket.socketpair()
os.setgid(65534); os.setuid(65534)
p = subprocess.Popen([sys.argv[1], "lab", "--id", "n", "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno()])
theirs.close()
stream = ours.makefile("rb")
def frame():
    length, channel, kind = struct.unpack("<IIB", stream.read(9))
    return kind, stream.read(length)
print(frame())
body = json.dumps({"argv": ["sh", "-c", "id -u; ls /sys/class/net; ip link add v0 type veth peer name v1 && ip -o link | wc -l"]}).encode()
ours.sendall(struct.pack("<IIB", len(body), 1, 0x10) + body)
kind = 0
while kind != 0x23:
    kind, payload = frame()
    print(hex(kind), payload)
ours.shutdown(socket.SHUT_RDWR)
sys.exit(p.wait())
"#;
    let output = Command::new("python3").args(["-c", program, &probe]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(r#""hostname":"lab-n""#) && text.contains(r#""uid":0"#), "{text}");
    assert!(text.contains(r"b'3\n'"), "{text}");
}

/// A root folder with busybox and nothing else.
fn lower(folder: &Folder) -> PathBuf {
    let root = folder.0.join("lower:1,2"); // overlay must not stumble over these
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/original"), "lower\n").unwrap();
    fs::copy("/usr/bin/busybox", root.join("bin/busybox")).unwrap();
    for name in ["sh", "ls", "cat", "echo", "ip", "hostname", "mount", "sleep", "ps", "id", "rm", "grep", "test"] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    root
}

struct Contained {
    controller: Controller,
    outer: Channel,
    pid: u64,
}

fn container(lab: &Controller, folder: &Folder, name: &str, more: &[&str]) -> Contained {
    let socket = folder.path(&format!("{name}.socket"));
    let scratch = folder.path(&format!("{name}.scratch"));
    let listener = UnixListener::bind(&socket).unwrap();
    let root = folder.0.join("lower:1,2");
    let mut argv = vec![PROBE, "container", "--root", root.to_str().unwrap()];
    argv.extend(["--scratch", &scratch, "--hostname", name, "--connect", &socket]);
    argv.extend(more);
    let outer = lab.exec(&argv);
    let pid = outer.expect(STARTED)["pid"].as_u64().unwrap();
    Contained { controller: Controller::new(listener.accept().unwrap().0), outer, pid }
}

fn names(listing: &Value) -> Vec<&str> {
    let entries = listing["entries"].as_array().unwrap();
    entries.iter().map(|e| e["name"].as_str().unwrap()).collect()
}

#[test]
fn a_container_is_separate() {
    let lab = lab();
    let folder = Folder::new("container");
    let root = lower(&folder);
    let one = container(&lab, &folder, "one", &[]);
    let inside = &one.controller;
    assert_eq!(inside.hello["pid"], 1);
    assert_eq!(inside.hello["hostname"], "one");
    assert_eq!(inside.sh("hostname"), "one\n");
    assert_eq!(lab.sh("uname -n"), "lab-t1\n");
    assert_ne!(inside.hello["netns"], lab.hello["netns"]);

    // The process that the lab started leads to the container's network.
    let seen = lab.sh(&format!("stat -L -c %i /proc/{}/ns/net", one.pid));
    assert_eq!(seen.trim(), inside.hello["netns"].to_string());
    let moved = format!(
        "ip link add v0 type veth peer name v1 netns {} && ip addr add 10.9.0.1/24 dev v0 && ip link set v0 up",
        one.pid
    );
    lab.sh(&moved);
    assert_eq!(link_names(&inside.sh("ls /sys/class/net")), ["lo", "v1"]);
    let ended = lab.open(EXEC, json!({"argv": ["ip", "-o", "link"], "netns_of": one.pid})).finish();
    assert!(String::from_utf8_lossy(&ended.stdout).contains("v1@"));

    // Its root is the lower one with a layer of its own.
    inside.sh("echo changed > /etc/original; echo new > /new; rm /bin/ls");
    assert_eq!(inside.sh("cat /etc/original"), "changed\n");
    assert_eq!(fs::read_to_string(root.join("etc/original")).unwrap(), "lower\n");
    assert!(!root.join("new").exists() && root.join("bin/ls").exists());
    let listing = inside.ask(LIST, json!({"path": "/"})).unwrap();
    let expected = ["bin", "dev", "etc", "new", "proc", "run", "sys", "tmp"];
    assert_eq!(names(&listing), expected);

    // What programs expect is there, and the outside is not.
    inside
        .sh("echo x > /dev/null; test -c /dev/ptmx; test -d /dev/shm; test -e /dev/fd/0; echo > /tmp/t; echo > /run/r");
    inside.sh("test \"$(cat /proc/mounts | grep -c outside)\" = 0");
    assert!(inside.sh("ps").lines().count() < 6);
    assert!(inside.sh("ip link show lo").contains(",UP"));

    // Its end is the outer process's end.
    inside.hang_up();
    assert_eq!(one.outer.drain().exit["code"], 0);
    until("its devices are gone", || lab.sh("ls /sys/class/net") == "lo\n");
}

#[test]
fn containers_do_not_see_each_other() {
    let lab = lab();
    let folder = Folder::new("two");
    lower(&folder);
    let one = container(&lab, &folder, "one", &[]);
    let two = container(&lab, &folder, "two", &[]);
    one.controller.sh("echo 1 > /who; echo 1 > /tmp/who");
    assert!(two.controller.ask(READ, json!({"path": "/who"})).is_err());
    assert!(two.controller.ask(READ, json!({"path": "/tmp/who"})).is_err());
    assert_ne!(one.controller.hello["netns"], two.controller.hello["netns"]);
}

#[test]
fn a_container_joins_cgroups_and_binds() {
    let lab = lab();
    let folder = Folder::new("binds");
    let root = lower(&folder);
    // A link in the image that points to an absolute path must stay inside.
    std::os::unix::fs::symlink("/etc", root.join("conf")).unwrap();
    fs::create_dir(folder.0.join("shared")).unwrap();
    fs::write(folder.path("shared/f"), "bound\n").unwrap();
    fs::write(folder.path("file"), "file\n").unwrap();
    let groups = cgroups("container");
    let (rw, ro, file) = (
        format!("{}:/data/rw", folder.path("shared")),
        format!("{}:/conf/ro:ro", folder.path("shared")),
        format!("{}:/etc/original:ro", folder.path("file")),
    );
    let mut more = vec!["--bind", &rw, "--bind", &ro, "--bind", &file];
    for group in &groups {
        more.extend(["--cgroup", group]);
    }
    let one = container(&lab, &folder, "one", &more);
    let inside = &one.controller;
    assert_eq!(inside.sh("cat /data/rw/f /etc/ro/f /etc/original"), "bound\nbound\nfile\n");
    inside.sh("echo back > /data/rw/g; ! echo no > /etc/ro/h; ! echo no > /etc/original");
    assert_eq!(fs::read_to_string(folder.path("shared/g")).unwrap(), "back\n");
    let sleeper = inside.exec(&["sleep", "100"]);
    sleeper.expect(STARTED);
    for group in &groups {
        let members = fs::read_to_string(format!("{group}/cgroup.procs")).unwrap();
        assert_eq!(members.lines().count(), 3, "{members}");
    }
    one.controller.hang_up();
    one.outer.drain();
    for group in groups {
        fs::remove_dir(format!("{group}/inner")).unwrap();
        until("the cgroup can be removed", || fs::remove_dir(&group).is_ok());
    }
}

#[test]
fn a_container_that_cannot_start_says_why() {
    let lab = lab();
    let folder = Folder::new("fails");
    lower(&folder);
    let socket = folder.path("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let ended = lab.run(&[
        PROBE,
        "container",
        "--root",
        "/no/root",
        "--scratch",
        &folder.path("s"),
        "--hostname",
        "x",
        "--connect",
        &socket,
    ]);
    assert_eq!(ended.exit["code"], 1);
    assert!(String::from_utf8_lossy(&ended.stderr).contains("cannot find /no/root"));
    let mut report = Vec::new();
    std::io::Read::read_to_end(&mut listener.accept().unwrap().0, &mut report).unwrap();
    assert_eq!(report[8], ERROR);
    assert!(String::from_utf8_lossy(&report[9..]).contains("cannot find /no/root"));
}

#[test]
fn the_end_of_the_lab_ends_containers() {
    let mut lab = lab();
    let folder = Folder::new("nested");
    lower(&folder);
    let one = container(&lab, &folder, "one", &[]);
    let mark = format!("94{}", std::process::id());
    one.controller.exec(&["sleep", &mark]).expect(STARTED);
    until("it is up", || !marked(&mark).is_empty());
    lab.hang_up();
    lab.child.wait().unwrap();
    assert!(marked(&mark).is_empty());
}
