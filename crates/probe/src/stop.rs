//! How a program that stays is told to end.

use std::io;
use std::mem::MaybeUninit;

use crate::sys::{self, NS_PER_S};

/// SIGTERM and SIGINT, blocked from now on.
pub fn blocked_signals() -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        let mut set = set.assume_init();
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        sys::check(libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))?;
        Ok(set)
    }
}

/// SIGTERM and SIGINT, taken by waiting for them.
pub struct Stop(libc::sigset_t);

impl Stop {
    pub fn block() -> io::Result<Self> {
        blocked_signals().map(Stop)
    }

    /// Waits until the monotonic clock shows `at`, in nanoseconds; true if told to stop before.
    pub fn wait_until(&self, at: i64) -> bool {
        loop {
            let left = (at - sys::monotonic_ns()).max(0);
            let limit = libc::timespec { tv_sec: left / NS_PER_S, tv_nsec: left % NS_PER_S };
            // SAFETY: set and limit are valid; no information is asked for.
            let taken = unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &limit) };
            if taken > 0 {
                return true;
            }
            if io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN) {
                return false;
            }
        }
    }

    /// Waits until told to stop.
    pub fn wait(&self) -> io::Result<()> {
        loop {
            // SAFETY: the set is valid; no information is asked for.
            match sys::check(unsafe { libc::sigwaitinfo(&self.0, std::ptr::null_mut()) }) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome.map(drop),
            }
        }
    }
}
