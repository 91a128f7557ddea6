//! /sys, /dev, /tmp and /run of a mount namespace of our own.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::failure::{Outcome, Tried};
use crate::mount_points::mount_points;
use crate::mounts::{mount, Detached, NO_DEVICES};

/// A /sys that shows this network namespace's devices, with what was mounted below the old one.
pub fn fresh_sys() -> Outcome<()> {
    let mut below: Vec<PathBuf> = mount_points()
        .tried(|| "read /proc/self/mountinfo")?
        .into_iter()
        .filter(|path| path.starts_with("/sys") && path != Path::new("/sys"))
        .collect();
    below.sort();
    // A recursive copy of the outer mount brings the inner ones along.
    below.dedup_by(|inner, outer| inner.starts_with(outer));
    let mut kept = Vec::new();
    for path in below.iter().filter_map(|path| path.to_str()) {
        // One that is hidden under another mount cannot be reached, nor could it before.
        if let Ok(copy) = Detached::of(path) {
            kept.push((copy, path));
        }
    }
    mount("sysfs", "sysfs", "/sys", NO_DEVICES, "")?;
    for (copy, path) in kept {
        // A mount for which the new /sys has no folder belongs to the namespace that was left.
        let _ = copy.attach_existing(path);
    }
    Ok(())
}

/// /dev/pts, /dev/shm and the names that programs expect in /dev.
pub fn complete_dev() -> Outcome<()> {
    mount("devpts", "devpts", "/dev/pts", libc::MS_NOSUID | libc::MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")?;
    let shm_flags = libc::MS_NOSUID | libc::MS_NODEV;
    mount("tmpfs", "tmpfs", "/dev/shm", shm_flags, "mode=1777")?;
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        match symlink(target, Path::new("/dev").join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).tried(|| format!("create /dev/{name}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// /tmp and /run, empty and writable.
pub fn scratch_folders() -> Outcome<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    mount("tmpfs", "tmpfs", "/tmp", flags, "mode=1777")?;
    mount("tmpfs", "tmpfs", "/run", flags, "mode=755")
}

/// Shows the system's folders in the root of a container image too, if this root has one in `/image`: programs that are started
/// in it need them. Called before any other program runs here, so that no link can lead elsewhere.
pub fn in_container_image() -> Outcome<()> {
    for name in ["proc", "sys", "dev", "tmp", "run"] {
        let target = format!("/image/{name}");
        if fs::symlink_metadata(&target).is_ok_and(|found| found.is_dir()) {
            let copy = Detached::of(&format!("/{name}"))?;
            copy.attach_existing(&target).tried(|| format!("bind on {target}"))?;
        }
    }
    Ok(())
}
