//! A user namespace whose ids are ids of the machine's that nobody else has: its root is nobody outside.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::failure::{Outcome, Tried};
use crate::sys::{self, check, Forked};

/// As many as programs know, from root to nobody and nogroup.
const IDS: u32 = 65_536;

pub struct UserNamespace {
    file: OwnedFd,
    first: u32,
}

impl UserNamespace {
    /// Maps the ids from 0 on to the machine's from `first` on. For the machine's root, and before any thread is started.
    pub fn of(first: u32) -> Outcome<Self> {
        let (begun, tell) = sys::pipe().tried(|| "make a pipe")?;
        let (until, hold) = sys::pipe().tried(|| "make a pipe")?;
        // A namespace is only there while somebody is in it, and its maps are written from outside.
        match sys::fork().tried(|| "fork")? {
            Forked::Child => {
                drop((begun, hold));
                let made = sys::unshare(libc::CLONE_NEWUSER).and_then(|()| File::from(tell).write_all(b"!"));
                let _ = File::from(until).read(&mut [0]);
                sys::exit_now(i32::from(made.is_err()))
            }
            Forked::Parent(holder) => {
                drop((tell, until));
                let namespace = take(holder, begun, first);
                drop(hold);
                sys::wait_for(holder).tried(|| "wait for the user namespace")?;
                namespace
            }
        }
    }

    /// As its root, and nobody else.
    pub fn enter(&self) -> Outcome<()> {
        let entered = || -> std::io::Result<()> {
            // SAFETY: no memory is involved.
            unsafe {
                check(libc::setns(self.file.as_raw_fd(), libc::CLONE_NEWUSER))?;
                check(libc::setgroups(0, std::ptr::null()))?;
                check(libc::setresgid(0, 0, 0))?;
                check(libc::setresuid(0, 0, 0))?;
            }
            Ok(())
        };
        entered().tried(|| "enter the user namespace")
    }

    /// The machine's id of its root.
    pub fn first(&self) -> u32 {
        self.first
    }

    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

fn take(holder: libc::pid_t, begun: OwnedFd, first: u32) -> Outcome<UserNamespace> {
    File::from(begun).read_exact(&mut [0]).tried(|| "make a user namespace")?;
    for file in ["uid_map", "gid_map"] {
        let path = format!("/proc/{holder}/{file}");
        fs::write(&path, format!("0 {first} {IDS}")).tried(|| format!("write {path}"))?;
    }
    let path = format!("/proc/{holder}/ns/user");
    let file = File::open(&path).tried(|| format!("open {path}"))?.into();
    Ok(UserNamespace { file, first })
}
