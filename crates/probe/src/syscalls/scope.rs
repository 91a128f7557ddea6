//! Whose calls are seen.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::arguments::{number, Arguments};
use crate::failure::{Failure, Outcome, Tried};

const OWN_NAMESPACE: &str = "/proc/self/ns/pid";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// The PID namespace of this process, those below it not.
    Namespace,
    /// The control group (v2) of this folder, and those below it.
    Cgroup(String),
    /// These thread groups.
    Pids(Vec<u32>),
    System,
}

#[derive(Clone, Debug)]
pub struct Scope {
    pub within: Within,
    /// The PID namespace of this process.
    pub namespace: Namespace,
    /// This process and its parent, as numbered in that namespace: never in scope.
    pub excluded: [u32; 2],
}

#[derive(Clone, Copy, Debug)]
pub struct Namespace {
    device: u64,
    pub inode: u64,
}

impl Namespace {
    /// The kernel's own number of the device: 12 bits of major, 20 of minor number.
    pub fn kernel_device(self) -> u64 {
        u64::from(libc::major(self.device)) << 20 | u64::from(libc::minor(self.device))
    }

    /// Whether ids in it are the kernel's own (PROC_PID_INIT_INO).
    pub fn is_first(self) -> bool {
        self.inode == 0xefff_fffc
    }
}

impl Scope {
    pub fn take(arguments: &mut Arguments) -> Outcome<Scope> {
        let cgroup = arguments.value("--cgroup")?;
        let pids = arguments.values("--pid")?;
        let within = match (cgroup, pids.is_empty(), arguments.flag("--system-wide")) {
            (None, true, false) => Within::Namespace,
            (Some(folder), true, false) => Within::Cgroup(folder),
            (None, false, false) => {
                Within::Pids(pids.iter().map(|pid| number("--pid", pid)).collect::<Outcome<Vec<u32>>>()?)
            }
            (None, true, true) => Within::System,
            _ => return Err(Failure::new("only one of --cgroup, --pid and --system-wide can say what is seen")),
        };
        let about = fs::metadata(OWN_NAMESPACE).tried(|| format!("read {OWN_NAMESPACE}"))?;
        let namespace = Namespace { device: about.dev(), inode: about.ino() };
        // A parent outside of the namespace has the id 0, which no thread group inside has.
        let excluded = [std::process::id(), std::os::unix::process::parent_id()];
        Ok(Scope { within, namespace, excluded })
    }

    pub fn describe(&self) -> String {
        match &self.within {
            Within::Namespace => format!("pid-namespace {}", self.namespace.inode),
            Within::Cgroup(folder) => format!("cgroup {folder}"),
            Within::Pids(pids) => pids.iter().fold("pids".to_owned(), |text, pid| format!("{text} {pid}")),
            Within::System => "system-wide".to_owned(),
        }
    }
}
