//! The bpf() system call: maps, programs, and attaching them (bpf(2), include/uapi/linux/bpf.h).

use std::ffi::{CStr, CString};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::instruction::Instruction;
use crate::failure::{Failure, Outcome, Tried};
use crate::sys;

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROGRAM_LOAD: i32 = 5;
const RAW_TRACEPOINT_OPEN: i32 = 17;
const MAP_LOOKUP_BATCH: i32 = 24;
const OBJECT_INFO: i32 = 15;
const PROGRAM_TYPE_RAW_TRACEPOINT: u32 = 17;
const PROGRAM_TYPE_TRACING: u32 = 26;
const ATTACH_TYPE_RAW_TRACEPOINT: u32 = 23;
/// Of programs that call no function that is reserved for GPL programs, and read no memory of the kernel.
const LICENCE: &CStr = c"Apache-2.0";
/// Linux lets only programs under a licence compatible with the GPL read its memory. Those of ours that do are offered under
/// the MIT licence and version 2 of the GPL, besides Apache-2.0.
const READING_LICENCE: &CStr = c"Dual MIT/GPL";
/// Where `struct bpf_prog_info` has the number of runs that were left out, and its bytes up to there.
const MISSED_AT: usize = 208;
const INFO_BYTES: usize = MISSED_AT + 8;
/// Entries read from a map at once.
const BATCH: usize = 2048;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MapKind {
    Hash = 1,
    Array = 2,
    /// A value for each processor.
    HashOfProcessors = 5,
    ArrayOfProcessors = 6,
    CgroupArray = 8,
    /// Full, it gives up what was used longest ago.
    LruHash = 9,
    /// Without keys: what was put in last comes out first.
    Stack = 23,
    Ring = 27,
}

#[repr(C)]
#[derive(Default)]
struct CreateMap {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct Batch {
    from: u64,
    next: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct LoadProgram {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    _device: u32,
    attach_type: u32,
    _debug: [u32; 9],
    /// The type of the tracepoint, among the kernel's.
    attach_to: u32,
    _object: u32,
}

#[repr(C)]
#[derive(Default)]
struct ObjectInfo {
    object: u32,
    bytes: u32,
    info: u64,
}

#[repr(C)]
#[derive(Default)]
struct OpenRawTracepoint {
    name: u64,
    program: u32,
    _none: u32,
}

fn bpf<T>(command: i32, attributes: &mut T) -> io::Result<RawFd> {
    // SAFETY: the attributes are those of the command, and what they point to outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut T, size_of::<T>()) };
    sys::check(result as i32)
}

fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: a new descriptor (close-on-exec, as all of bpf() are), ours alone.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

pub struct Map {
    fd: OwnedFd,
    kind: MapKind,
    key_bytes: usize,
    /// As this process reads and writes them: of all processors, one behind the other.
    value_bytes: usize,
}

impl Map {
    pub fn new(kind: MapKind, key_bytes: usize, value_bytes: usize, entries: u32) -> Outcome<Map> {
        let sizes = (key_bytes as u32, value_bytes as u32);
        let mut attributes =
            CreateMap { kind: kind as u32, key_bytes: sizes.0, value_bytes: sizes.1, entries, flags: 0 };
        let fd = bpf(MAP_CREATE, &mut attributes).tried(|| "make a BPF map")?;
        let value_bytes = match kind {
            MapKind::HashOfProcessors | MapKind::ArrayOfProcessors => value_bytes.next_multiple_of(8) * processors()?,
            _ => value_bytes,
        };
        Ok(Map { fd: owned(fd), kind, key_bytes, value_bytes })
    }

    pub fn descriptor(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    pub fn is_array(&self) -> bool {
        self.kind == MapKind::Array
    }

    fn element(&self, key: &[u8], value: *const u8) -> Element {
        assert_eq!(key.len(), self.key_bytes);
        let key = if key.is_empty() { 0 } else { key.as_ptr() as u64 };
        Element { map: self.descriptor() as u32, key, value: value as u64, flags: 0 }
    }

    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_bytes);
        bpf(MAP_UPDATE, &mut self.element(key, value.as_ptr())).map(drop)
    }

    /// The key's value, written over `value`.
    pub fn get(&self, key: &[u8], value: &mut [u8]) -> io::Result<()> {
        assert_eq!(value.len(), self.value_bytes);
        bpf(MAP_LOOKUP, &mut self.element(key, value.as_mut_ptr())).map(drop)
    }

    pub fn delete(&self, key: &[u8]) -> io::Result<()> {
        bpf(MAP_DELETE, &mut self.element(key, std::ptr::null())).map(drop)
    }

    /// Every entry that is there all the while, once.
    pub fn each(&self, take: impl FnMut(&[u8], &[u8])) -> Outcome<()> {
        self.first(usize::MAX, take)
    }

    /// As `each`, for so many entries: those of an array with the lowest numbers.
    pub fn first(&self, mut left: usize, mut take: impl FnMut(&[u8], &[u8])) -> Outcome<()> {
        let mut keys = vec![0; BATCH.min(left) * self.key_bytes];
        let mut values = vec![0; BATCH.min(left) * self.value_bytes];
        let mut place = 0u64;
        let mut first = true;
        while left > 0 {
            let mut next = 0u64;
            let mut batch = Batch {
                from: if first { 0 } else { &place as *const u64 as u64 },
                next: &mut next as *mut u64 as u64,
                keys: keys.as_mut_ptr() as u64,
                values: values.as_mut_ptr() as u64,
                count: BATCH.min(left) as u32,
                map: self.descriptor() as u32,
                ..Batch::default()
            };
            let done = match bpf(MAP_LOOKUP_BATCH, &mut batch) {
                Ok(_) => false,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
                Err(error) => return Err(Failure::because("read a BPF map", &error)),
            };
            let entries = keys.chunks_exact(self.key_bytes).zip(values.chunks_exact(self.value_bytes));
            entries.take(batch.count as usize).for_each(|(key, value)| take(key, value));
            if done {
                break;
            }
            left -= batch.count as usize;
            (place, first) = (next, false);
        }
        Ok(())
    }
}

/// A loaded program. It stays attached until the descriptor is closed, however this process ends.
pub struct Program(OwnedFd);

impl Program {
    /// A program that gets a tracepoint's arguments as numbers.
    pub fn load(instructions: &[Instruction]) -> Outcome<Program> {
        Program::load_as(instructions, PROGRAM_TYPE_RAW_TRACEPOINT, LICENCE, 0, 0)
    }

    /// A program that may read what the arguments of its tracepoint point to. `tracepoint` is its type's number.
    pub fn load_reading(instructions: &[Instruction], tracepoint: u32) -> Outcome<Program> {
        let kind = PROGRAM_TYPE_TRACING;
        Program::load_as(instructions, kind, READING_LICENCE, ATTACH_TYPE_RAW_TRACEPOINT, tracepoint)
    }

    fn load_as(
        instructions: &[Instruction],
        kind: u32,
        licence: &CStr,
        attach_type: u32,
        attach_to: u32,
    ) -> Outcome<Program> {
        let mut attributes = LoadProgram {
            kind,
            instruction_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            licence: licence.as_ptr() as u64,
            attach_type,
            attach_to,
            ..LoadProgram::default()
        };
        let error = match bpf(PROGRAM_LOAD, &mut attributes) {
            Ok(fd) => return Ok(Program(owned(fd))),
            Err(error) => error,
        };
        let mut log = vec![0u8; 1 << 20];
        attributes.log_level = 1;
        attributes.log_bytes = log.len() as u32;
        attributes.log = log.as_mut_ptr() as u64;
        let _ = bpf(PROGRAM_LOAD, &mut attributes);
        let mut failure = Failure::because("load a BPF program", &error);
        let log = String::from_utf8_lossy(&log);
        let last_lines: Vec<_> = log.trim_end_matches('\0').lines().rev().take(3).collect();
        for line in last_lines.iter().rev().filter(|line| !line.trim().is_empty()) {
            failure.message.push_str("; ");
            failure.message.push_str(line);
        }
        Err(failure)
    }

    pub fn attach(&self, tracepoint: &str) -> Outcome<OwnedFd> {
        let name = CString::new(tracepoint).map_err(|_| Failure::new("a tracepoint's name has no NUL"))?;
        let mut attributes =
            OpenRawTracepoint { name: name.as_ptr() as u64, program: self.0.as_raw_fd() as u32, _none: 0 };
        bpf(RAW_TRACEPOINT_OPEN, &mut attributes)
            .map(owned)
            .tried(|| format!("attach to the raw tracepoint {tracepoint}"))
    }

    /// Attaches one that was loaded for its tracepoint.
    pub fn attach_reading(&self) -> Outcome<OwnedFd> {
        let mut attributes = OpenRawTracepoint { name: 0, program: self.0.as_raw_fd() as u32, _none: 0 };
        bpf(RAW_TRACEPOINT_OPEN, &mut attributes).map(owned).tried(|| "attach to a tracepoint")
    }

    /// Runs a program that gets numbers, once, in this thread.
    #[cfg(test)]
    pub fn run(&self, arguments: &[u64]) {
        const PROGRAM_RUN: i32 = 10;
        #[repr(C)]
        #[derive(Default)]
        struct Run {
            program: u32,
            _result: u32,
            _data: [u64; 3],
            _repeat: [u32; 2],
            arguments_bytes: u32,
            _out_bytes: u32,
            arguments: u64,
            _out: [u64; 3],
        }
        let mut run = Run {
            program: self.0.as_raw_fd() as u32,
            arguments_bytes: size_of_val(arguments) as u32,
            arguments: arguments.as_ptr() as u64,
            ..Run::default()
        };
        bpf(PROGRAM_RUN, &mut run).unwrap();
    }

    /// How often the program was not run, as it interrupted itself on a processor. `None`: the kernel does not say (before
    /// Linux 5.12).
    pub fn missed(&self) -> Option<u64> {
        let mut info = [0u8; INFO_BYTES];
        let mut attributes =
            ObjectInfo { object: self.0.as_raw_fd() as u32, bytes: INFO_BYTES as u32, info: info.as_mut_ptr() as u64 };
        bpf(OBJECT_INFO, &mut attributes).ok()?;
        let all = attributes.bytes as usize == INFO_BYTES;
        all.then(|| info[MISSED_AT..].try_into().map_or(0, u64::from_ne_bytes))
    }
}

/// As many as the kernel keeps values for: `0-3` are four.
fn processors() -> Outcome<usize> {
    const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
    let text = std::fs::read_to_string(POSSIBLE).tried(|| format!("read {POSSIBLE}"))?;
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| Failure::new(format!("{POSSIBLE} has no number: {text}")))
}

/// Waits until no processor is inside a program that was just detached.
pub fn settle() -> Outcome<()> {
    const MEMBARRIER_CMD_GLOBAL: i32 = 1;
    // SAFETY: no memory is involved.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    sys::check(result as i32).map(drop).tried(|| "wait for the BPF programs to end (membarrier)")
}
