//! A probe that records system calls.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::common::*;

pub struct Probe {
    pub child: Child,
    pub out: String,
}

impl Probe {
    pub fn start(folder: &Folder, name: &str, arguments: &[&str]) -> Probe {
        let out = folder.path(name);
        let mut command = Command::new(PROBE);
        command.arg("syscalls").args(arguments).args(["--out", &out]).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{arguments:?}");
        Probe { child, out }
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: no memory is involved, and the child is ours.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// When the last slice that the file has begins.
    pub fn last_slice_ns(&self) -> u64 {
        let text = fs::read_to_string(&self.out).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let line = whole.lines().rfind(|line| line.starts_with("@ ")).unwrap();
        line.split(' ').nth(2).unwrap().parse().unwrap()
    }

    pub fn ended_streams(&self) -> usize {
        fs::read_to_string(&self.out).unwrap().lines().filter(|line| line.starts_with("x ")).count()
    }

    pub fn stop(mut self) -> Vec<u8> {
        self.signal(libc::SIGTERM);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        fs::read(&self.out).unwrap()
    }
}
