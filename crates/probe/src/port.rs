//! A guest's virtio-serial port, found by its name.
//!
//! A port says POLLHUP, and reads as ended, both before the host side is first opened and after it has gone. So the start
//! waits for the host side. From then on an end is an end.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome, Tried};
use crate::sys;

const LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);

/// Opens the port, and waits without limit until the host side is open too.
pub fn open(name: &str) -> Outcome<File> {
    await_host(found(name)?)
}

/// The port, opened. Waits a while until it is there.
pub fn found(name: &str) -> Outcome<File> {
    let start = Instant::now();
    let path = loop {
        if let Some(path) = find(name) {
            break path;
        }
        if start.elapsed() > LIMIT {
            return Err(Failure::new(format!("no virtio-serial port is named {name}")));
        }
        thread::sleep(POLL);
    };
    File::options().read(true).write(true).open(&path).tried(|| format!("open {}", path.display()))
}

pub fn await_host(port: File) -> Outcome<File> {
    loop {
        let mut entry = [sys::poll_entry(port.as_raw_fd(), libc::POLLOUT)];
        sys::poll(&mut entry, Some(0)).tried(|| "poll a virtio-serial port")?;
        if entry[0].revents & libc::POLLHUP == 0 {
            return Ok(port);
        }
        thread::sleep(POLL);
    }
}

/// The device node. udev links it by name; without udev each port's name is in sysfs.
fn find(name: &str) -> Option<PathBuf> {
    let linked = PathBuf::from("/dev/virtio-ports").join(name);
    if linked.exists() {
        return Some(linked);
    }
    for port in fs::read_dir("/sys/class/virtio-ports").ok()?.flatten() {
        let port_name = fs::read_to_string(port.path().join("name")).unwrap_or_default();
        let node = PathBuf::from("/dev").join(port.file_name());
        if port_name.trim_end() == name && node.exists() {
            return Some(node);
        }
    }
    None
}
