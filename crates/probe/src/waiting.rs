//! Waiting for a signal to stop, for data, or for a time.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

use crate::stop::blocked_signals;
use crate::sys;

const NS_PER_MS: u64 = 1_000_000;

/// SIGTERM and SIGINT, taken by reading them from a descriptor.
pub struct StopDescriptor(File);

impl StopDescriptor {
    pub fn block() -> io::Result<Self> {
        let set = blocked_signals()?;
        // SAFETY: the set is valid; the new descriptor is ours alone.
        Ok(StopDescriptor(unsafe { File::from_raw_fd(sys::check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC))?) }))
    }

    /// Waits until the time, or until one of the descriptors has something; true if told to stop.
    pub fn wait(&self, until_ns: u64, descriptors: &[RawFd]) -> io::Result<bool> {
        let mut entries: Vec<_> = std::iter::once(self.0.as_raw_fd())
            .chain(descriptors.iter().copied())
            .map(|fd| sys::poll_entry(fd, libc::POLLIN))
            .collect();
        // Rounded up, so that the time is not before the wanted one.
        let left_ms = until_ns.saturating_sub(now_ns()).div_ceil(NS_PER_MS);
        sys::poll(&mut entries, Some(left_ms.min(i32::MAX as u64) as i32))?;
        Ok(entries[0].revents != 0)
    }
}

/// CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    sys::monotonic_ns() as u64
}
