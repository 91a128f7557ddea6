//! A program that is brought up and held before its first instruction, until the controller names a moment.
//!
//! A traced process stops at the end of its exec. What takes longest, the fork and the exec, is over by then, so that programs
//! of many hosts start together on few processors; and a program that cannot be run is known before any has started.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

use libc::{c_void, pid_t};

use crate::reap::Ended;
use crate::sys;

/// Has the exec that follows stop this process. Async-signal-safe: may stand between fork and exec.
pub fn hold() -> libc::c_long {
    // SAFETY: no memory is involved.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<c_void>(), null_mut::<c_void>()) }
}

/// Waits until a child that this thread has spawned is held, or has been killed.
pub fn await_stop(pid: pid_t) -> io::Result<()> {
    // The end of a child is the reaper's: it is looked at and left.
    sys::wait_id(pid, libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT)?;
    match sys::wait_id(pid, libc::WSTOPPED | libc::WNOHANG) {
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(()),
        result => result,
    }
}

/// Lets the child go at the moment that `release` brings, in nanoseconds of the monotonic clock; at once where that has passed.
/// Does nothing where the child has ended instead. Only for the thread that has spawned it.
pub fn let_go(pid: pid_t, mut release: &File, ended: &Ended) -> io::Result<()> {
    let mut entries = [release.as_raw_fd(), ended.event.as_raw_fd()].map(|fd| sys::poll_entry(fd, libc::POLLIN));
    while entries.iter().all(|entry| entry.revents == 0) {
        sys::poll(&mut entries, None)?;
    }
    if entries[0].revents == 0 {
        return Ok(());
    }
    let mut moment = [0; 8];
    release.read_exact(&mut moment)?;
    // On a busy machine the moment would pass while this thread waits for a processor, behind programs that were let go before.
    sys::run_first(true);
    sys::sleep_until(&sys::monotonic_time(u64::from_ne_bytes(moment) as f64 / sys::NS_PER_S as f64));
    ended.starts(sys::monotonic_s());
    // SAFETY: no memory is involved. It fails where the child has been killed meanwhile.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, null_mut::<c_void>(), null_mut::<c_void>()) };
    sys::run_first(false);
    Ok(())
}
