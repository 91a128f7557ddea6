//! Undo entries: what a lease's controller wrote down before it changed anything. They are carried out backwards.
//!
//! `NNN.json` is `{"argv": [...], "stdin": "FILE"}`, a program whose input, if given, is a file of the same folder, or
//! `{"path": ..., "content": ...}`, a file to write. All entries are tried, whatever becomes of the others.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::failure::{complain, Failure, Outcome, Tried};
use crate::{mounts, sys};

const LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(1);
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Entry {
    Program { argv: Vec<String>, stdin: Option<String> },
    File { path: String, content: String },
}

/// Carries out the entries in `folder`, last first. Programs are those of `root` where it is given.
pub fn run(folder: &Path, root: Option<&str>) -> Vec<Failure> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default();
    entries.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    if entries.is_empty() {
        return Vec::new();
    }
    entries.sort();
    let mut failures = Vec::new();
    if let Err(failure) = root.map_or(Ok(()), furnish) {
        failures.push(failure);
    }
    for path in entries.iter().rev() {
        let Some(entry) = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Entry>(&text).ok()) else {
            // The entry was being written when the controller went, so what it undoes was never done.
            complain(&Failure::new(format!("{} is not whole, and left out", path.display())));
            continue;
        };
        if let Err(failure) = entry.carry_out(folder, root) {
            failures.push(failure);
        }
    }
    failures
}

/// A /proc for the programs of another root, seen by this process and its children only.
fn furnish(root: &str) -> Outcome<()> {
    sys::unshare(libc::CLONE_NEWNS).tried(|| "make a mount namespace")?;
    mounts::make_private()?;
    mounts::mount("proc", "proc", Path::new(root).join("proc"), mounts::NO_DEVICES, "")
}

impl Entry {
    fn carry_out(&self, folder: &Path, root: Option<&str>) -> Outcome<()> {
        match self {
            Entry::File { path, content } => fs::write(path, content).tried(|| format!("put {path} back")),
            Entry::Program { argv, stdin } => program(argv, stdin.as_ref().map(|name| folder.join(name)), root),
        }
    }
}

fn program(argv: &[String], stdin: Option<PathBuf>, root: Option<&str>) -> Outcome<()> {
    let tried = || format!("run {argv:?}");
    let (name, rest) = argv.split_first().ok_or_else(|| Failure::new("an undo entry with an empty argv"))?;
    let mut command = Command::new(name);
    command.args(rest).env_clear().env("PATH", PATH).stdout(Stdio::null()).stderr(Stdio::piped());
    command.stdin(match stdin {
        Some(path) => Stdio::from(File::open(&path).tried(|| format!("open {}", path.display()))?),
        None => Stdio::null(),
    });
    if let Some(root) = root {
        let root = sys::c_string(root).tried(tried)?;
        // SAFETY: two system calls, on a path that outlives them.
        unsafe {
            command.pre_exec(move || {
                sys::check(libc::chroot(root.as_ptr()))?;
                sys::check(libc::chdir(c"/".as_ptr())).map(drop)
            });
        }
    }
    let mut child = command.spawn().tried(tried)?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait().tried(tried)? {
            Some(status) => break status,
            None if start.elapsed() > LIMIT => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::because(tried(), &io::Error::from(io::ErrorKind::TimedOut)));
            }
            None => thread::sleep(POLL),
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut message = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut message);
    }
    Err(Failure::new(format!("{argv:?}: {status}: {}", message.trim())))
}
