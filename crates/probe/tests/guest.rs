//! A guest booted with `init`, from the image that set-up has built (`./setup.sh`) or that the folder TWINBED_GUEST holds.

mod common;
#[allow(dead_code)]
#[path = "syscalls/formats.rs"]
mod formats;

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use common::*;
use serde_json::json;

const PARAMETERS: &str = "console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check mitigations=off";

fn qemu(fd: i32, port: &str, disk: bool, console: &str) -> Child {
    let folder = std::env::var("TWINBED_GUEST").unwrap_or_else(|_| {
        let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.setup/image.path");
        std::fs::read_to_string(built).expect("no image: run ./setup.sh").trim().to_owned()
    });
    let mut command = Command::new("qemu-system-x86_64");
    command
        .args("-nodefaults -no-user-config -display none -no-reboot -machine q35".split(' '))
        .args("-accel tcg,thread=multi -cpu Nehalem,+rdrand -smp 1 -m 256".split(' '))
        .args(["-kernel", &format!("{folder}/vmlinux")])
        .args(["-initrd", &format!("{folder}/initramfs.cpio")])
        .args(["-append", &format!("{PARAMETERS} twinbed.port={port} twinbed.host=g1")])
        .args(["-serial", &format!("file:{console}")])
        .args(["-device", "virtio-serial-pci"])
        .args(["-chardev", &format!("socket,id=agent,fd={fd}")])
        .args(["-device", "virtserialport,chardev=agent,name=org.twinbed.agent"])
        .stdin(Stdio::null());
    if disk {
        command
            .arg("-drive")
            .arg(format!("if=none,id=root,format=raw,readonly=on,file={folder}/disk.erofs"))
            .args(["-device", "virtio-blk-pci,drive=root"]);
    }
    // SAFETY: fcntl is a system call and nothing else.
    unsafe {
        command.pre_exec(move || {
            libc::fcntl(fd, libc::F_SETFD, 0);
            Ok(())
        });
    }
    command.spawn().unwrap()
}

#[test]
fn serves_and_powers_off_when_the_controller_goes() {
    let folder = Folder::new("guest");
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut qemu = qemu(theirs.as_raw_fd(), "org.twinbed.agent", true, &folder.path("console"));
    drop(theirs);
    let guest = Controller::new(ours);
    assert_eq!(guest.hello["pid"], 1);
    assert_eq!(guest.hello["hostname"], "g1");
    guest.sh("test -d /sys/kernel/tracing/events && test -c /dev/ptmx && echo > /tmp/x && echo > /etc/x");
    assert!(guest.sh("ip -o link show lo").contains(",UP"));
    assert!(guest.sh("cat /proc/mounts").contains("overlay / overlay"));

    let bytes = noise(20_000_000);
    let write = guest.open(WRITE, json!({"path": "/dev/shm/f", "mode": 0o644, "parents": false}));
    for chunk in bytes.chunks(1 << 20) {
        write.send(DATA, chunk);
    }
    write.send(END, b"{}");
    assert_eq!(write.answer().unwrap()["bytes"], bytes.len());
    let (read, _) = guest.open(READ, json!({"path": "/dev/shm/f"})).data();
    assert!(read == bytes);

    // 2100-01-01, which no clock here says.
    let resumed = || guest.ask(RESUMED, json!({"realtime_s": 4102444800.5, "entropy": "5a".repeat(32)})).unwrap();
    let (one, other) = (resumed(), resumed());
    assert!(guest.sh("date -u +%Y-%m-%d").starts_with("2100-01-01"));
    assert_eq!(one["boot_id"].as_str().unwrap(), guest.sh("cat /proc/sys/kernel/random/boot_id").trim());
    assert_eq!(one["random"].as_str().unwrap().len(), 64);
    assert_ne!(one["random"], other["random"]);

    guest.hang_up();
    assert!(qemu.wait().unwrap().success());
}

/// Another kernel than that of the machine: Debian's.
#[test]
fn every_method_sees_the_same_system_calls() {
    let folder = Folder::new("syscalls");
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut qemu = qemu(theirs.as_raw_fd(), "org.twinbed.agent", true, &folder.path("console"));
    drop(theirs);
    let guest = Controller::new(ours);
    let write = guest.open(WRITE, json!({"path": "/run/probe", "mode": 0o755, "parents": false}));
    for chunk in std::fs::read(PROBE).unwrap().chunks(1 << 20) {
        write.send(DATA, chunk);
    }
    write.send(END, b"{}");
    write.answer().unwrap();
    guest.sh("cd /run; for mode in count trace; do for method in bpf tracefs; do
           name=$mode-$method
           ./probe syscalls $mode --method $method --out $name 2>$name.said & pids=\"$pids $!\"
           until grep ready $name.said; do kill -0 $! || { cat $name.said; exit 1; }; done
         done; done
         dd if=/dev/zero of=/dev/null bs=10 count=1000 status=none
         kill $pids; for pid in $pids; do wait $pid || exit 1; done");
    let read = |name: &str| guest.open(READ, json!({"path": format!("/run/{name}")})).data().0;
    let dd = |stream: &formats::Stream| stream.2 == "dd";
    for method in ["bpf", "tracefs"] {
        let count = formats::Count::parse(&read(&format!("count-{method}")));
        let trace = formats::Trace::parse(&read(&format!("trace-{method}")));
        assert_eq!((count.end.unwrap().2, trace.end.unwrap().2), (0, 0), "nothing is lost");
        let (mut counted, mut traced) = (count.whole(), trace.transitions());
        counted.retain(|(stream, _), _| dd(stream));
        traced.retain(|(stream, _), _| dd(stream));
        assert_eq!(counted, traced);
        let sums = count.sums();
        let bytes: Vec<_> = sums.iter().filter(|((stream, n), _)| dd(stream) && *n == 1).map(|(_, sum)| *sum).collect();
        assert_eq!(bytes, [(1000, 1000, 0, Some(10_000))]);
    }
    guest.hang_up();
    assert!(qemu.wait().unwrap().success());
}

#[test]
fn powers_off_when_asked() {
    let folder = Folder::new("asked");
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut qemu = qemu(theirs.as_raw_fd(), "org.twinbed.agent", true, &folder.path("console"));
    drop(theirs);
    let guest = Controller::new(ours);
    guest.ask(POWEROFF, json!({})).unwrap();
    assert!(qemu.wait().unwrap().success());
}

#[test]
fn says_on_the_console_why_it_cannot_boot() {
    let folder = Folder::new("console");
    for (port, disk, why) in [
        ("org.twinbed.agent", false, "/dev/vda did not appear"),
        ("other", true, "no virtio-serial port is named other"),
    ] {
        let (_ours, theirs) = UnixStream::pair().unwrap();
        let mut qemu = qemu(theirs.as_raw_fd(), port, disk, &folder.path("console"));
        assert!(qemu.wait().unwrap().success());
        let console = std::fs::read_to_string(folder.path("console")).unwrap();
        assert!(console.contains(why), "{console}");
    }
}
