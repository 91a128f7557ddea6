//! What the programs are to do, and the maps that they do it with.

use super::cells::Cells;
use crate::bpf::kernel::Map;
use crate::syscalls::options::Times;
use crate::syscalls::scope::Within;

pub struct Plan<'a> {
    pub scope: Scope<'a>,
    pub purpose: Purpose<'a>,
    /// What is kept of each thread, by its id: a hash, or an array in which free places have the id 0.
    pub threads: &'a Map,
    /// One value: what is kept of a thread at first.
    pub blank: &'a Map,
    /// One number: calls seen and neither counted nor traced.
    pub lost: &'a Map,
    /// One number: how often any thread's name was set.
    pub renames: &'a Map,
}

pub struct Scope<'a> {
    pub within: Within,
    /// One control group, of `Within::Cgroup`.
    pub cgroup: Option<&'a Map>,
    /// Thread group ids in this process's PID namespace, of `Within::Pids`.
    pub pids: Option<&'a Map>,
    /// The PID namespace of this process, as the kernel's device number and the inode.
    pub namespace: (u64, u64),
    /// Thread group ids there that are never followed: this process and its parent.
    pub excluded: [u32; 2],
}

pub enum Purpose<'a> {
    Count { cells: Cells<'a>, streams: &'a Map, skip: u64, times: Times },
    Trace { ring: &'a Map, wake_bytes: i32 },
}

impl Plan<'_> {
    /// The calls that are timed. A trace times all.
    pub fn timed(&self) -> Times {
        match self.purpose {
            Purpose::Count { times, .. } => times,
            Purpose::Trace { .. } => Times::All,
        }
    }
}
