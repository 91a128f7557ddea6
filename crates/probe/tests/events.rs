//! Kernel events: packets of which the number is known, on devices of which nobody else knows.
//!
//! Needs root, ip and unshare.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use common::*;

const PACKETS: u64 = 1000;

struct Probe(Child, String);

impl Probe {
    fn start(folder: &Folder, share: &str) -> Probe {
        let out = folder.path("kernel.events");
        let mut command = Command::new(env!("CARGO_BIN_EXE_twinbed-probe"));
        command.args(["events", "--out", &out, "--share", share]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Probe(child, out)
    }

    fn stop(mut self) -> Vec<Vec<String>> {
        // SAFETY: our own child, which has not been waited for.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        assert!(self.0.wait().unwrap().success());
        let text = fs::read_to_string(self.1).unwrap();
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }
}

fn fact(lines: &[Vec<String>], name: &str) -> u64 {
    lines.iter().find(|line| line[0] == name).unwrap()[1].parse().unwrap()
}

/// In a network namespace of its own: a pair of devices, the one sending so many frames to the other, which receives them.
fn send(devices: [&str; 2], frames: u64) {
    let [from, to] = devices;
    let script = format!(
        "sysctl -qw net.ipv6.conf.default.disable_ipv6=1 && ip link add {from} type veth peer name {to} && \
         ip link set {from} up && ip link set {to} up && until ip link show {to} | grep -q LOWER_UP; do :; done"
    );
    // SAFETY: the child of this fork only makes system calls and starts programs.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the namespace is this process's alone.
        let apart = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
        let made = apart && Command::new("sh").args(["-c", &script]).status().is_ok_and(|status| status.success());
        std::process::exit(i32::from(!(made && sends(from, frames) && receives(to, frames))));
    }
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
}

/// Frames of an EtherType that is for experiments (IEEE 802, 0x88b5), which nothing answers.
fn sends(device: &str, frames: u64) -> bool {
    let name = std::ffi::CString::new(device).unwrap();
    let mut frame = [0xff; 114];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    // SAFETY: a socket, an address and a buffer of their own sizes.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
        let bound = libc::bind(socket, (&raw const address).cast(), size_of_val(&address) as u32);
        bound == 0 && (0..frames).all(|_| libc::send(socket, frame.as_ptr().cast(), frame.len(), 0) == 114)
    }
}

/// Waits until a device has received so many frames: all of them are dropped, as nothing takes them.
fn receives(device: &str, frames: u64) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        let devices = fs::read_to_string("/proc/self/net/dev").unwrap();
        let row = devices.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'));
        if row.and_then(|row| row.split_whitespace().nth(3)) == Some(&frames.to_string()) {
            return true;
        }
    }
    false
}

#[test]
fn packets_are_counted_by_device_at_each_tracepoint() {
    let folder = Folder::new("events-by-device");
    let probe = Probe::start(&folder, "1");
    let (from, to) = (format!("from{}", std::process::id()), format!("to{}", std::process::id()));
    send([&from, &to], PACKETS);
    let lines = probe.stop();
    let hits: BTreeMap<_, _> = lines
        .iter()
        .filter(|line| line[0] == "hits" && (line[3] == from || line[3] == to))
        .map(|line| ((line[1].as_str(), line[3].as_str()), line[2].parse::<u64>().unwrap()))
        .collect();
    let expected = [("net_dev_queue", &from), ("net_dev_xmit", &from), ("netif_rx", &to), ("netif_receive_skb", &to)];
    let expected = expected.map(|(tracepoint, device)| ((tracepoint, device.as_str()), PACKETS));
    assert_eq!(hits, BTreeMap::from(expected));
    let counted: Vec<_> = lines.iter().filter(|line| line[0] == "counted" && line[1] == "net").collect();
    assert_eq!(counted.len(), 6);
    // Nothing in the kernel takes such frames.
    let dropped = lines.iter().find(|line| line[0] == "hits" && line[1] == "kfree_skb").unwrap();
    assert!(dropped[2].parse::<u64>().unwrap() >= PACKETS);
    assert_eq!((fact(&lines, "lost"), fact(&lines, "windows")), (0, 1));
    assert_eq!(lines.last().unwrap(), &["end"]);
}

#[test]
fn a_share_of_the_time_is_attached_in_windows_at_random_moments() {
    let folder = Folder::new("events-share");
    let probe = Probe::start(&folder, "0.2");
    std::thread::sleep(std::time::Duration::from_millis(3100));
    let lines = probe.stop();
    let whole = fact(&lines, "end_ns") - fact(&lines, "start_ns");
    // The first four periods take 1.875 s, each later one a second: a sixth may have begun; a busy machine misses some.
    let most = 4 + (whole - 1_875_000_000).div_ceil(1_000_000_000);
    assert!((1..=most).contains(&fact(&lines, "windows")));
    let spans = lines.iter().filter(|line| line[0] == "counted").map(|line| line[3].parse::<u64>().unwrap());
    let spans: Vec<_> = spans.collect();
    assert!(spans.len() >= 6 && spans.iter().all(|span| 0 < *span && *span < whole), "{spans:?} of {whole}");
}

#[test]
fn what_it_cannot_do_is_an_error() {
    let folder = Folder::new("events-errors");
    let out = folder.path("out");
    for (arguments, message) in [
        (vec!["--out", &out], "--share is missing"),
        (vec!["--out", &out, "--share", "0"], "--share takes 0.001 to 1, not 0"),
        (vec!["--share", "1"], "--out is missing"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_twinbed-probe"));
        let output = command.arg("events").args(&arguments).output().unwrap();
        assert!(!output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("twinbed-probe: {message}\n"));
    }
}
