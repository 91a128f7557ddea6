//! The threads that are there at the start, from /proc and control groups.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome, Tried};
use crate::syscalls::follow::{Groups, Thread};
use crate::syscalls::scope::{Scope, Within};

/// Those that vanish meanwhile are left out.
pub fn known() -> HashMap<u32, Thread> {
    let mut threads = HashMap::new();
    for tgid in numbers(Path::new("/proc")) {
        for tid in numbers(&PathBuf::from(format!("/proc/{tgid}/task"))) {
            if let Ok(mut name) = fs::read(format!("/proc/{tgid}/task/{tid}/comm")) {
                name.pop_if(|last| *last == b'\n');
                threads.insert(tid, Thread::new(Some(tgid), name));
            }
        }
    }
    threads
}

pub fn groups(scope: &Scope) -> Groups {
    let only = match &scope.within {
        Within::Pids(pids) => Some(pids.iter().copied().collect()),
        _ => None,
    };
    Groups { excluded: scope.excluded.into(), only }
}

/// The threads in scope.
pub fn members(within: &Within) -> Outcome<Vec<u32>> {
    let groups = match within {
        Within::Cgroup(folder) => cgroup_members(Path::new(folder))?,
        Within::Pids(pids) => pids.clone(),
        Within::Namespace | Within::System => Vec::new(),
    };
    let threads: Vec<u32> =
        groups.iter().flat_map(|tgid| numbers(&PathBuf::from(format!("/proc/{tgid}/task")))).collect();
    if threads.is_empty() {
        return Err(Failure::new("tracefs follows processes that are there at the start and theirs; there is none"));
    }
    Ok(threads)
}

fn cgroup_members(folder: &Path) -> Outcome<Vec<u32>> {
    let path = folder.join("cgroup.procs");
    let text = fs::read_to_string(&path).tried(|| format!("read {}", path.display()))?;
    let mut members: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in fs::read_dir(folder).tried(|| format!("list {}", folder.display()))?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            members.extend(cgroup_members(&entry.path())?);
        }
    }
    Ok(members)
}

/// The entries of a folder of /proc that are numbers.
fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
