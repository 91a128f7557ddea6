//! Containers in a lab. These need root, or at least user namespaces, and busybox.

mod common;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use common::*;
use serde_json::{json, Value};

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
    let bind = |source: String, target: &str, read_only: bool| {
        json!({"source": source, "target": target, "read_only": read_only, "programs": read_only}).to_string()
    };
    let (rw, ro, file) = (
        bind(folder.path("shared"), "/data/rw", false),
        bind(folder.path("shared"), "/conf/ro", true),
        bind(folder.path("file"), "/etc/original", true),
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
