//! `stations`: when each packet of the workload's TCP connections passed the stations of this host's kernel, and when programs
//! read and wrote it. STATIONS.md has the format.
//!
//! One small program on each tracepoint copies a packet's headers, or what a call did to a socket, into a ring. This process
//! sorts them by connection and writes them. Only the network namespace of this process is looked at.

mod calls;
mod file;
mod packets;
#[path = "../../../core/src/stations/probe_files.rs"]
mod probe_files;
mod record;
mod sending;

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use crate::arguments::{number, Arguments};
use crate::bpf::kernel::{self, Map, MapKind, Program};
use crate::bpf::ring::Ring;
use crate::bpf::types::Types;
use crate::failure::{Failure, Outcome, Tried};
use crate::sockets::scope::Scope;
use crate::waiting::{now_ns, StopDescriptor};
use file::File;
use record::Offsets;
use sending::Sending;

const OWN_NAMESPACE: &str = "/proc/self/ns/net";
/// The longest time between two looks at the ring.
const TICK_NS: u64 = 250_000_000;
const ONLY_KEY: [u8; 4] = [0; 4];
/// Of the ring; a power of two.
const LEAST_RING_BYTES: usize = 1 << 12;

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let out = arguments.required("--out")?;
    let limit_bytes: u64 = number("--bytes", &arguments.required("--bytes")?)?;
    let ring_bytes: usize = number("--ring", &arguments.required("--ring")?)?;
    let share: f64 = number("--share", &arguments.required("--share")?)?;
    let own_clock = arguments.flag("--own-clock");
    let peers = arguments.values("--peer")?;
    let without = arguments.values("--without")?;
    arguments.finish()?;
    if !(0.0..=1.0).contains(&share) || share == 0.0 {
        return Err(Failure::new(format!("--share takes more than 0, to 1, not {share}")));
    }
    if !ring_bytes.is_power_of_two() || ring_bytes < LEAST_RING_BYTES {
        return Err(Failure::new(format!("--ring takes a power of two from {LEAST_RING_BYTES}, not {ring_bytes}")));
    }
    let scope = Scope::new(&peers, &without)?;
    // Signals are blocked before anything else, so that one at any time is an orderly end.
    let stop = StopDescriptor::block().tried(|| "block signals")?;
    crate::bpf::lift_memory_limit();
    let types = Types::of_kernel()?;
    let offsets = Offsets::of(&types)?;
    let namespace = std::fs::metadata(OWN_NAMESPACE).tried(|| format!("read {OWN_NAMESPACE}"))?.ino();
    let ring_map = Map::new(MapKind::Ring, 0, 0, ring_bytes as u32)?;
    let ring = Ring::of(&ring_map, ring_bytes)?;
    let lost = Map::new(MapKind::Array, 4, 8, 1)?;
    let threads = Map::new(MapKind::LruHash, 4, calls::THREAD_BYTES, calls::THREADS)?;
    let sending =
        Sending { types: &types, ring: &ring_map, lost: &lost, namespace: namespace as i32, ring_bytes, share };
    let mut programs = Vec::new();
    // Exits come before entries, and what comes last in a packet's way first.
    for (tracepoint, instructions) in
        calls::programs(&sending, &threads)?.into_iter().chain(packets::programs(&sending)?)
    {
        let program = types.tracepoint(tracepoint).and_then(|kind| Program::load_reading(&instructions, kind));
        programs.push(program.map_err(|failure| Failure::new(format!("{tracepoint}: {failure}")))?);
    }
    let links = programs.iter().map(Program::attach_reading).collect::<Outcome<Vec<_>>>()?;
    let mut file = File::create(out, scope, offsets, limit_bytes, &header(share, own_clock))?;
    let mut stdout = io::stdout();
    stdout.write_all(b"ready\n").and_then(|()| stdout.flush()).tried(|| "write to standard output")?;
    loop {
        let told = stop.wait(now_ns() + TICK_NS, &[ring_map.descriptor()]).tried(|| "wait")?;
        ring.drain(|bytes| file.take(bytes))?;
        file.clocks()?;
        if told {
            break;
        }
    }
    drop(links);
    kernel::settle()?;
    ring.drain(|bytes| file.take(bytes))?;
    let mut count = [0; 8];
    lost.get(&ONLY_KEY, &mut count).tried(|| "read how many records were lost")?;
    let missed = programs.iter().filter_map(Program::missed).sum();
    file.end(u64::from_ne_bytes(count), missed)
}

fn header(share: f64, own_clock: bool) -> String {
    let clock = if own_clock { "own" } else { "shared" };
    let boot = crate::sys::boot_id().unwrap_or_default();
    format!("kernel {}\nboot_id {boot}\nshare {share}\nclock {clock}\n", crate::sys::identity().1)
}
