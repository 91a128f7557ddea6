//! The lab. These need root, or at least user namespaces.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::*;
use serde_json::json;

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

/// A lab that is begun in a chroot, where all mounts are shared with a namespace around it, as systemd makes them: no peer of the
/// machine's own. `bound`: the chroot's folder is a mount point.
fn lab_in_a_chroot(folder: &Folder, bound: bool) -> Running {
    let root = folder.path("root");
    for name in ["lower", "scratch", "place"] {
        fs::create_dir_all(format!("{root}/{name}")).unwrap();
    }
    fs::copy(PROBE, format!("{root}/probe")).unwrap();
    let script = r#"
        root=$1
        mount --make-rshared /
        [ $2 = false ] || mount --bind $root $root
        for name in bin lib lib64 usr dev proc sys; do
            if [ -L /$name ]; then cp -P /$name $root/; continue; fi
            mkdir $root/$name
            mount --rbind /$name $root/$name
        done
        exec chroot $root /probe lab --id c1 --fd 3"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-eu", "-c", script, "sh", &root, &bound.to_string()]);
    let (child, stream) = start_command(command);
    Running { child, controller: Controller::new(stream) }
}

#[test]
fn begins_in_a_chroot() {
    for bound in [false, true] {
        let folder = Folder::new(&format!("chroot-{bound}"));
        let lab = lab_in_a_chroot(&folder, bound);
        let mut names: Vec<_> = fs::read_dir(folder.path("root")).unwrap().flatten().map(|it| it.file_name()).collect();
        names.sort();
        assert_eq!(link_names(&lab.sh("ls /")), names);
        assert_eq!(lab.sh("ls /sys/class/net"), "lo\n");
        let outside = || fs::read_to_string(format!("/proc/{}/mountinfo", lab.child.id())).unwrap();
        let before = outside();
        lab.sh("mount -t tmpfs t /place");
        assert_eq!(outside(), before);
        // What the kernel refuses in a chroot: a user namespace, and beside a shared mount another root.
        lab.sh("/probe container --root /lower --scratch /scratch --hostname c --first-id 100000");
        lab.sh("mkdir /place/old && unshare --mount pivot_root /place /place/old");
    }
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
