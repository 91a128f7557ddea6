//! A private tracefs instance: its own buffers, events, filters (kernel documentation: trace/ftrace.rst, "Instances").

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome, Tried};
use crate::sys;
use crate::waiting::now_ns;

const PREFIX: &str = "twinbed-";
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The file system, mounted where only this process sees it if that is possible.
struct Tracefs {
    path: PathBuf,
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    fn open() -> Outcome<Tracefs> {
        let error = match detached() {
            Ok(mount) => {
                let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
                return Ok(Tracefs { path, _mount: Some(mount) });
            }
            Err(error) => error,
        };
        match MOUNTED.iter().find(|path| Path::new(path).join("instances").exists()) {
            Some(path) => Ok(Tracefs { path: path.into(), _mount: None }),
            None => Err(Failure::because("mount tracefs", &error)),
        }
    }
}

/// A mount that is attached nowhere, and gone with its descriptor (fsopen(2), Linux 5.2).
fn detached() -> io::Result<OwnedFd> {
    const FSOPEN_CLOEXEC: u32 = 1;
    const FSCONFIG_CMD_CREATE: u32 = 6;
    const FSMOUNT_CLOEXEC: u32 = 1;
    let none = std::ptr::null::<u8>();
    // SAFETY: the name is NUL-terminated; new descriptors are ours alone.
    unsafe {
        let kind = sys::check(libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), FSOPEN_CLOEXEC) as i32)?;
        let kind = OwnedFd::from_raw_fd(kind);
        let fd = kind.as_raw_fd();
        sys::check(libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, none, none, 0) as i32)?;
        let mount = sys::check(libc::syscall(libc::SYS_fsmount, fd, FSMOUNT_CLOEXEC, 0) as i32)?;
        Ok(OwnedFd::from_raw_fd(mount))
    }
}

pub struct Instance {
    tracefs: Tracefs,
    path: PathBuf,
    /// trace_pipe_raw of each processor.
    pipes: Vec<File>,
}

impl Instance {
    pub fn new() -> Outcome<Instance> {
        let tracefs = Tracefs::open()?;
        let instances = tracefs.path.join("instances");
        let folder = File::open(&instances).tried(|| "open tracefs's instances")?;
        // Otherwise another probe could take an instance that is not yet in use for a left-over one.
        // SAFETY: no memory is involved.
        sys::check(unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX) }).tried(|| "lock tracefs's instances")?;
        remove_left_over(&instances);
        let name = format!("{PREFIX}{}-{}", std::process::id(), now_ns());
        let path = instances.join(&name);
        fs::create_dir(&path).tried(|| "make a tracefs instance")?;
        let mut instance = Instance { tracefs, path, pipes: Vec::new() };
        instance.pipes = instance.open_pipes()?;
        Ok(instance)
    }

    fn open_pipes(&self) -> Outcome<Vec<File>> {
        let path = self.path.join("per_cpu");
        let mut pipes = Vec::new();
        for entry in fs::read_dir(&path).tried(|| "list tracefs's processors")? {
            let entry = entry.tried(|| "list tracefs's processors")?;
            let pipe = entry.path().join("trace_pipe_raw");
            let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(pipe);
            pipes.push(opened.tried(|| "open tracefs's trace_pipe_raw")?);
        }
        Ok(pipes)
    }

    pub fn pipes(&self) -> &[File] {
        &self.pipes
    }

    pub fn set(&self, file: &str, value: &str) -> Outcome<()> {
        let path = self.path.join(file);
        let written =
            File::options().write(true).truncate(true).open(path).and_then(|mut f| f.write_all(value.as_bytes()));
        written.tried(|| format!("set tracefs's {file} to {value}"))
    }

    pub fn read(&self, file: &str) -> Outcome<String> {
        fs::read_to_string(self.path.join(file)).tried(|| format!("read tracefs's {file}"))
    }

    pub fn format(&self, event: &str) -> Outcome<String> {
        self.read(&format!("events/{event}/format"))
    }

    pub fn page_format(&self) -> Outcome<String> {
        // This file has no positions: it has to be read at once.
        let mut bytes = vec![0; 4096];
        let read = File::open(self.tracefs.path.join("events/header_page")).and_then(|mut file| file.read(&mut bytes));
        bytes.truncate(read.tried(|| "read tracefs's header_page")?);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Events that the kernel could not keep for their reader, so far.
    pub fn lost(&self) -> Outcome<u64> {
        let mut lost = 0;
        for entry in fs::read_dir(self.path.join("per_cpu")).tried(|| "list tracefs's processors")? {
            let path = entry.tried(|| "list tracefs's processors")?.path().join("stats");
            let stats = fs::read_to_string(path).tried(|| "read tracefs's stats")?;
            for line in stats.lines() {
                if let Some(("overrun" | "commit overrun" | "dropped events", count)) = line.split_once(": ") {
                    lost += count.trim().parse::<u64>().unwrap_or(0);
                }
            }
        }
        Ok(lost)
    }
}

impl Drop for Instance {
    /// An instance that is in use cannot be removed.
    fn drop(&mut self) {
        self.pipes.clear();
        let _ = fs::remove_dir(&self.path);
    }
}

/// Instances of programs that were killed. The kernel refuses to remove one that is in use.
fn remove_left_over(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
