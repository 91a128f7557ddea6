//! The programs that a count and a trace have in common: loaded with their maps, attached, taken away.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use super::layout;
use super::plan::{Plan, Purpose, Scope};
use crate::bpf::kernel::{self, Map, MapKind, Program};
use crate::failure::{Outcome, Tried};
use crate::syscalls::options::Options;
use crate::syscalls::scope::Within;

/// Threads followed at once.
const COUNTED_THREADS: u32 = 16_384;
const TRACED_THREADS: u32 = 8192;
/// Up to this id an array finds a thread sooner than a hash does.
const LARGEST_ARRAY: u32 = 65_536;
const PID_MAX: &str = "/proc/sys/kernel/pid_max";
const ONLY_KEY: [u8; 4] = [0; 4];

/// The programs of a count or a trace, attached.
pub struct Attached {
    /// What is kept of each thread.
    pub threads: Map,
    lost: Map,
    links: Vec<OwnedFd>,
    lost_so_far: u64,
}

impl Attached {
    pub fn attach(options: &Options, purpose: Purpose) -> Outcome<Attached> {
        let ids = std::fs::read_to_string(PID_MAX).ok().and_then(|text| text.trim().parse().ok());
        let (kind, threads, thread_bytes) = match (&purpose, ids) {
            (Purpose::Count { .. }, Some(ids @ 1..=LARGEST_ARRAY)) => (MapKind::Array, ids, layout::thread::BYTES),
            (Purpose::Count { .. }, _) => (MapKind::Hash, COUNTED_THREADS, layout::thread::BYTES),
            (Purpose::Trace { .. }, _) => (MapKind::Hash, TRACED_THREADS, layout::thread::CHUNK_BYTES),
        };
        let threads = Map::new(kind, 4, thread_bytes, threads)?;
        let blank = Map::new(MapKind::Array, 4, thread_bytes, 1)?;
        let mut unnamed = vec![0; thread_bytes];
        unnamed[layout::thread::RENAMES as usize..][..8].fill(u8::MAX);
        blank.update(&ONLY_KEY, &unnamed).tried(|| "fill a BPF map")?;
        let lost = Map::new(MapKind::Array, 4, 8, 1)?;
        let renames = Map::new(MapKind::Array, 4, 8, 1)?;
        let (cgroup, pids) = scope_maps(&options.scope.within)?;
        let namespace = options.scope.namespace;
        let plan = Plan {
            scope: Scope {
                within: options.scope.within.clone(),
                cgroup: cgroup.as_ref(),
                pids: pids.as_ref(),
                namespace: (namespace.kernel_device(), namespace.inode),
                excluded: options.scope.excluded,
            },
            purpose,
            threads: &threads,
            blank: &blank,
            lost: &lost,
            renames: &renames,
        };
        // Exits are attached first, so that every call noted at its entry has its exit seen.
        let programs = [
            ("sched_process_exit", plan.thread_end()),
            ("task_rename", plan.renaming()),
            ("sched_process_exec", plan.renumbering()),
            ("sys_exit", plan.exit()),
            ("sys_enter", plan.entry()),
        ];
        let loaded =
            programs.iter().map(|(_, instructions)| Program::load(instructions)).collect::<Outcome<Vec<_>>>()?;
        let links = programs.iter().zip(&loaded).map(|((tracepoint, _), program)| program.attach(tracepoint));
        let links = links.collect::<Outcome<Vec<_>>>()?;
        Ok(Attached { threads, lost, links, lost_so_far: 0 })
    }

    /// Takes the programs away. The maps do not change after this.
    pub fn detach(&mut self) -> Outcome<()> {
        self.links.clear();
        kernel::settle()
    }

    /// Calls lost since the last time.
    pub fn newly_lost(&mut self) -> Outcome<u64> {
        let mut bytes = [0; 8];
        self.lost.get(&ONLY_KEY, &mut bytes).tried(|| "read how many calls were lost")?;
        let lost = u64::from_ne_bytes(bytes);
        let new = lost.saturating_sub(self.lost_so_far);
        self.lost_so_far = lost;
        Ok(new)
    }
}

fn scope_maps(within: &Within) -> Outcome<(Option<Map>, Option<Map>)> {
    match within {
        Within::Cgroup(folder) => {
            let opened = File::open(folder).tried(|| format!("open {folder}"))?;
            let map = Map::new(MapKind::CgroupArray, 4, 4, 1)?;
            let fd = opened.as_raw_fd().to_ne_bytes();
            map.update(&ONLY_KEY, &fd).tried(|| format!("take {folder} as a control group (v2)"))?;
            Ok((Some(map), None))
        }
        Within::Pids(pids) => {
            let map = Map::new(MapKind::Hash, 4, 4, pids.len() as u32)?;
            for pid in pids {
                map.update(&pid.to_ne_bytes(), &[0; 4]).tried(|| format!("take process {pid}"))?;
            }
            Ok((None, Some(map)))
        }
        Within::Namespace | Within::System => Ok((None, None)),
    }
}
