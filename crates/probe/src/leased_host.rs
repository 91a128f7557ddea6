//! A host's folder of leases: its lock, what is known of each lease, and putting back what leases changed.
//!
//! `lock`; `leases/ID/` with `about.json`, `undo/`, `artifacts/` and `root/`, the agent's writable layer; `not-undone.log`, a
//! line for whatever could not be put back.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::failure::{complain, Failure, Outcome, Tried};
use crate::mount_points::remove_tree;
use crate::reap::state;
use crate::{sys, undo};

const ABOUT: &str = "about.json";
const LOCK_POLL: Duration = Duration::from_millis(20);
/// How long what a killed keeper held may stay locked.
const KILLED_LIMIT: Duration = Duration::from_secs(5);
/// The exit code when something could not be put back.
pub const NOT_UNDONE: i32 = 4;

/// What the next keeper needs to know of a lease whose own keeper is gone.
#[derive(Serialize, Deserialize)]
pub struct About {
    boot: String,
    root: Option<String>,
    began_s: f64,
    from: Option<String>,
}

impl About {
    pub fn now(root: Option<String>, from: Option<String>) -> Outcome<About> {
        let boot = sys::boot_id().tried(|| format!("read {}", sys::BOOT_ID))?;
        Ok(About { boot, root, began_s: sys::realtime_s(), from })
    }

    pub fn write(&self, lease: &Path) -> Outcome<()> {
        let path = lease.join(ABOUT);
        let text = serde_json::to_string(self).map_err(io::Error::from).tried(|| "describe the lease")?;
        fs::write(&path, text).tried(|| format!("write {}", path.display()))
    }

    /// `None` where it cannot be read.
    fn read(lease: &Path) -> Option<About> {
        serde_json::from_slice(&fs::read(lease.join(ABOUT)).ok()?).ok()
    }
}

pub fn folder_of_leases(folder: &Path) -> PathBuf {
    folder.join("leases")
}

/// The lock of the host, waited for as long as another lease may take to end.
pub fn lock(folder: &Path, wait: Duration) -> Outcome<File> {
    let leases = folder_of_leases(folder);
    fs::create_dir_all(&leases).tried(|| format!("create folder {}", leases.display()))?;
    let path = folder.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .tried(|| format!("open {}", path.display()))?;
    let start = Instant::now();
    loop {
        // SAFETY: no memory is involved.
        match sys::check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
            Ok(_) => return Ok(file),
            Err(error) if error.raw_os_error() != Some(libc::EWOULDBLOCK) => {
                return Err(Failure::because(format!("lock {}", path.display()), &error));
            }
            Err(_) if start.elapsed() > wait + KILLED_LIMIT => {
                return Err(Failure::new(format!("this host is leased{}", holder(folder))))
            }
            Err(_) if start.elapsed() > wait => match stopped_holder(&file) {
                Some(keeper) => {
                    complain(&Failure::new(format!("killed process {keeper}, a lease's keeper that was stopped")));
                    let _ = sys::kill(keeper, libc::SIGKILL);
                    thread::sleep(LOCK_POLL);
                }
                None => return Err(Failure::new(format!("this host is leased{}", holder(folder)))),
            },
            Err(_) => thread::sleep(LOCK_POLL),
        }
    }
}

/// The process that holds the lock, where it is stopped: it would put nothing back for ever.
fn stopped_holder(lock: &File) -> Option<libc::pid_t> {
    let inode = format!(":{}", lock.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  WRITE PID MAJOR:MINOR:INODE 0 EOF`; those who wait have `->` after the number.
    let held = locks.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let mut pids = held.filter_map(|words| match words[..] {
        [_, "FLOCK", _, _, pid, file, ..] if file.ends_with(&inode) => pid.parse().ok(),
        _ => None,
    });
    pids.find(|pid| *pid > 0 && state(*pid) == Some(b'T'))
}

/// Who leases the host, as far as that is known.
fn holder(folder: &Path) -> String {
    let about = leases(folder).into_iter().find_map(|path| About::read(&path));
    about.and_then(|about| about.from).map_or_else(String::new, |from| format!(" by a controller at {from}"))
}

/// The folders of the leases that there are.
pub fn leases(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder_of_leases(folder)).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    entries.unwrap_or_default()
}

/// Undoes leases. Only the holder of the lock may, so that none of them has a keeper.
pub fn undo_all(leases: &[PathBuf]) -> Vec<Failure> {
    leases.iter().flat_map(|path| put_back(path)).collect()
}

/// Undoes what dead leases left, or only lists them.
pub fn sweep(folder: &Path, only_list: bool) -> Outcome<()> {
    if !folder_of_leases(folder).exists() {
        return Ok(());
    }
    let _lock = lock(folder, Duration::ZERO)?;
    let dead = leases(folder);
    for path in &dead {
        writeln!(io::stdout(), "{}", path.display()).tried(|| "write to standard output")?;
    }
    if only_list {
        return Ok(());
    }
    let failures = undo_all(&dead);
    failures.iter().for_each(complain);
    sys::exit_now(if failures.is_empty() { 0 } else { NOT_UNDONE })
}

/// Undoes one lease and removes its folder. A host that was rebooted since has nothing left to undo.
pub fn put_back(lease: &Path) -> Vec<Failure> {
    let about = About::read(lease);
    let same_boot = about.as_ref().is_some_and(|about| sys::boot_id().is_ok_and(|boot| boot == about.boot));
    let mut failures = match about {
        Some(about) if same_boot => undo::run(&lease.join("undo"), about.root.as_deref()),
        _ => Vec::new(),
    };
    log(lease, &failures);
    if let Err(failure) = remove_tree(lease).tried(|| format!("remove {}", lease.display())) {
        failures.push(failure);
    }
    failures
}

/// Keeps a record on the host of what could not be put back. Where it cannot be written there is nothing more to be done.
fn log(lease: &Path, failures: &[Failure]) {
    let Some(folder) = lease.parent().and_then(Path::parent) else {
        return;
    };
    if failures.is_empty() {
        return;
    }
    if let Ok(mut log) = File::options().create(true).append(true).open(folder.join("not-undone.log")) {
        for failure in failures {
            let _ = writeln!(log, "{:.3} {}: {failure}", sys::realtime_s(), lease.display());
        }
    }
}
