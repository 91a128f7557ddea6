//! A guest booted with `init`, from the image that set-up has built (`./setup.sh`) or that the folder TWINBED_GUEST holds.

mod common;

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
