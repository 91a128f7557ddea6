//! What the tests share: the probe on a socket pair, folders, marked processes.
#![allow(dead_code)] // each test file uses its part

mod controller;

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use controller::*;

pub const PROBE: &str = env!("CARGO_BIN_EXE_twinbed-probe");

/// How long anything is waited for: a guest on an emulated CPU boots in this time beside others.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Starts the probe with one end of a socket pair as descriptor 3.
pub fn start(arguments: &[&str]) -> (Child, UnixStream) {
    let mut command = Command::new(PROBE);
    command.args(arguments).args(["--fd", "3"]);
    start_command(command)
}

/// Starts a command with one end of a socket pair as descriptor 3.
pub fn start_command(mut command: Command) -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let fd = theirs.as_raw_fd();
    command.stdin(Stdio::null());
    // SAFETY: dup2 is a system call and nothing else.
    unsafe {
        command.pre_exec(move || {
            if fd == 3 {
                libc::fcntl(fd, libc::F_SETFD, 0);
            } else {
                libc::dup2(fd, 3);
            }
            Ok(())
        });
    }
    (command.spawn().unwrap(), ours)
}

/// An agent on a socket pair that is ended with the value.
pub struct Running {
    pub child: Child,
    pub controller: Controller,
}

pub fn running(arguments: &[&str]) -> Running {
    let (child, stream) = start(arguments);
    Running { child, controller: Controller::new(stream) }
}

pub fn agent() -> Running {
    running(&["agent"])
}

pub fn lab() -> Running {
    running(&["lab", "--id", "t1"])
}

impl std::ops::Deref for Running {
    type Target = Controller;

    fn deref(&self) -> &Controller {
        &self.controller
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.controller.shut_down();
        let _ = self.child.wait();
    }
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A folder of this test process, removed with the value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("probe-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Ids of the processes, zombies aside, that have `mark` in their command line.
pub fn marked(mark: &str) -> Vec<i32> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.windows(mark.len()).any(|w| w == mark.as_bytes()) {
            pids.push(pid);
        }
    }
    pids
}

/// Bytes that do not repeat soon (a linear congruential generator).
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .collect()
}

pub fn link_names(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// A cgroup of each hierarchy that there is, named for this process.
pub fn cgroups(name: &str) -> Vec<String> {
    let name = format!("probe-{}-{name}", std::process::id());
    ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"]
        .iter()
        .filter(|root| Path::new(root).join("cgroup.procs").exists())
        .map(|root| format!("{root}/{name}"))
        .inspect(|dir| std::fs::create_dir_all(Path::new(dir).join("inner")).unwrap())
        .collect()
}
