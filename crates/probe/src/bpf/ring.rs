//! Reading a BPF ring buffer (kernel documentation: bpf/ringbuf.rst): the kernel writes, this process consumes.
#![allow(clippy::cast_ptr_alignment)] // a mapping begins at a page

use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::kernel::Map;
use crate::failure::{Outcome, Tried};

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: u64 = 8;

/// The mapped positions and data. The data are mapped twice in a row, so that every record is whole.
pub struct Ring {
    consumer: Mapping,
    producer: Mapping,
    bytes: u64,
}

struct Mapping {
    address: *mut libc::c_void,
    bytes: usize,
}

impl Mapping {
    fn new(map: &Map, bytes: usize, protection: i32, offset: usize) -> io::Result<Mapping> {
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                map.descriptor().as_raw_fd(),
                offset as i64,
            )
        };
        match address {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            address => Ok(Mapping { address, bytes }),
        }
    }

    fn position(&self) -> &AtomicU64 {
        // SAFETY: the mapping begins with the position and lives as long as the reference.
        unsafe { &*self.address.cast::<AtomicU64>() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.address, self.bytes) };
    }
}

impl Ring {
    pub fn of(map: &Map, bytes: usize) -> Outcome<Ring> {
        // SAFETY: no memory is involved.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let consumer = Mapping::new(map, page, libc::PROT_READ | libc::PROT_WRITE, 0);
        let producer = Mapping::new(map, page + 2 * bytes, libc::PROT_READ, page);
        let what = || "map the ring of BPF records";
        Ok(Ring { consumer: consumer.tried(what)?, producer: producer.tried(what)?, bytes: bytes as u64 })
    }

    /// Hands over every record that is complete.
    pub fn drain(&self, mut take: impl FnMut(&[u8]) -> Outcome<()>) -> Outcome<()> {
        let page = self.producer.bytes as u64 - 2 * self.bytes;
        let mut at = self.consumer.position().load(Ordering::Relaxed);
        while at < self.producer.position().load(Ordering::Acquire) {
            // SAFETY: positions below the producer's lie in the first copy of the data, headers are 8-byte aligned.
            let record = unsafe { self.producer.address.cast::<u8>().add((page + at % self.bytes) as usize) };
            let header = unsafe { &*record.cast::<AtomicU32>() }.load(Ordering::Acquire);
            if header & BUSY != 0 {
                return Ok(());
            }
            let length = u64::from(header & !DISCARDED);
            if header & DISCARDED == 0 {
                // SAFETY: the kernel wrote a record of that length, which the second copy keeps in one piece.
                take(unsafe { std::slice::from_raw_parts(record.add(HEADER_BYTES as usize), length as usize) })?;
            }
            at += HEADER_BYTES + length.next_multiple_of(8);
            self.consumer.position().store(at, Ordering::Release);
        }
        Ok(())
    }
}
