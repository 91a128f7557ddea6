//! The program whose calls are seen, in a control group of its own.

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::common::*;

/// A control group of one test, with the program in it.
pub struct Group {
    pub path: PathBuf,
}

impl Group {
    pub fn new(name: &str) -> Group {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let root = roots.iter().find(|root| Path::new(root).join("cgroup.controllers").exists());
        let root = root.expect("the unified control-group hierarchy");
        let path = Path::new(root).join(format!("twinbed-test-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Group { path }
    }

    pub fn text(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub fn spawn(&self, command: &mut Command) -> Child {
        let procs = std::ffi::CString::new(format!("{}/cgroup.procs", self.text())).unwrap();
        // SAFETY: only system calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                let fd = libc::open(procs.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                match libc::write(fd, c"0".as_ptr().cast(), 1) {
                    1 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        command.stdin(Stdio::piped()).spawn().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        until("an empty control group", || fs::remove_dir(&self.path).is_ok());
    }
}

/// The program under two names, compiled once a test.
pub fn programs(folder: &Folder) -> (String, String) {
    let (program, second) = (folder.path("program"), folder.path("second"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/syscalls/program.c");
    let compiled = Command::new("cc").args(["-O1", "-static", "-pthread", "-o", &program, source]).status().unwrap();
    assert!(compiled.success());
    fs::copy(&program, &second).unwrap();
    (program, second)
}

pub struct Program {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
}

impl Program {
    /// Started, and waiting in its first read.
    pub fn start(group: &Group, folder: &Folder, what: &str) -> Program {
        let (program, second) = programs(folder);
        let mut child = group.spawn(Command::new(program).args([what, &second]));
        let stdin = child.stdin.take();
        let program = Program { child, stdin };
        program.until_it_reads();
        program
    }

    /// A pipe that is empty: whatever was written to it has been taken.
    pub fn until_it_reads(&self) {
        let call = format!("/proc/{}/syscall", self.child.id());
        let pending = || {
            let mut bytes = 0;
            // SAFETY: `bytes` is valid for writing.
            unsafe { libc::ioctl(self.stdin.as_ref().unwrap().as_raw_fd(), libc::FIONREAD, &mut bytes) };
            bytes
        };
        until("a program that reads", || pending() == 0 && fs::read_to_string(&call).unwrap().starts_with("0 0x0 "));
    }

    pub fn go(&mut self) {
        self.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    }

    pub fn finish(mut self) -> u32 {
        assert!(self.child.wait().unwrap().success());
        self.child.id()
    }
}
