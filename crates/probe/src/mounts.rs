//! Mounting, by the system calls that there are for it.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::chroot;
use std::path::Path;
use std::ptr::null;

use libc::{c_int, c_long, c_ulong};

use crate::failure::{Outcome, Tried};
use crate::sys::{c_string, check};
use crate::user_namespace::UserNamespace;

const AT_RECURSIVE: c_int = 0x8000;
const MOUNT_ATTR_RDONLY: u64 = 1;

pub const NO_DEVICES: c_ulong = libc::MS_NOSUID | libc::MS_NOEXEC | libc::MS_NODEV;

/// Mounts a file system of type `kind` on the folder `target`, made if it is not there.
pub fn mount(kind: &str, source: &str, target: impl AsRef<Path>, flags: c_ulong, options: &str) -> Outcome<()> {
    let target = target.as_ref();
    let tried = || format!("mount {kind} on {}", target.display());
    fs::create_dir_all(target).tried(|| format!("create folder {}", target.display()))?;
    raw_mount(Some(source), target, Some(kind), flags, Some(options)).tried(tried)
}

fn raw_mount(
    source: Option<&str>,
    target: &Path,
    kind: Option<&str>,
    flags: c_ulong,
    options: Option<&str>,
) -> io::Result<()> {
    let source = source.map(c_string).transpose()?;
    let target = c_string(target.as_os_str().as_bytes())?;
    let kind = kind.map(c_string).transpose()?;
    let options = options.map(c_string).transpose()?;
    // SAFETY: every pointer is null or a string that outlives the call.
    check(unsafe {
        libc::mount(
            source.as_ref().map_or(null(), |s| s.as_ptr()),
            target.as_ptr(),
            kind.as_ref().map_or(null(), |s| s.as_ptr()),
            flags,
            options.as_ref().map_or(null(), |s| s.as_ptr().cast()),
        )
    })
    .map(drop)
}

/// Separates the mounts: what is mounted from here on is not seen outside of this mount namespace, nor the other way.
pub fn make_private() -> Outcome<()> {
    raw_mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE, None).tried(|| "make the mounts private")
}

/// As `make_private`, for a process of one thread that may be in a chroot and has just made its mount namespace: the folder of the
/// chroot becomes the namespace's root. In a chroot the kernel makes nothing private where "/" is no mount point, changes no root
/// beside a shared mount, and gives nobody a user namespace.
pub fn make_private_root() -> Outcome<()> {
    let here = env::current_dir().unwrap_or_else(|_| "/".into()); // it may have been removed
    let root = open_root()?;
    let own = File::open("/proc/self/ns/mnt").tried(|| "open /proc/self/ns/mnt")?;
    // SAFETY: no memory is involved. Who enters a mount namespace, be it its own, gets its root.
    check(unsafe { libc::setns(own.as_raw_fd(), libc::CLONE_NEWNS) }).tried(|| "go to the root of the mounts")?;
    make_private()?;
    if place(&root)? != place(&open_root()?)? {
        // Not before they are private: the copy of a shared mount is shared.
        change_to(&root)?;
        let copy = Detached::of(".")?;
        let inside = copy.0.try_clone().tried(|| "duplicate a descriptor")?;
        copy.attach_existing("/").tried(|| "put the chroot's folder on /")?;
        change_to(&inside)?;
        chroot(".").tried(|| "make the chroot's folder the root")?;
    }
    env::set_current_dir(&here).tried(|| format!("change to {}", here.display()))
}

fn open_root() -> Outcome<OwnedFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path is a constant; the new descriptor is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::open(c"/".as_ptr(), flags)).tried(|| "open /")?)) }
}

fn change_to(folder: &OwnedFd) -> Outcome<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::fchdir(folder.as_raw_fd()) }).map(drop).tried(|| "change the current folder")
}

/// Which folder of which mount it is.
fn place(folder: &OwnedFd) -> Outcome<(u64, u64)> {
    // SAFETY: statx is plain numbers, which the kernel fills.
    let status = unsafe {
        let mut status: libc::statx = std::mem::zeroed();
        let wanted = libc::STATX_INO | libc::STATX_MNT_ID;
        check(libc::statx(folder.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, wanted, &mut status))
            .tried(|| "find the mount of /")?;
        status
    };
    Ok((status.stx_mnt_id, status.stx_ino))
}

/// Moves the mount at `from` to `to`.
pub fn move_mount(from: &str, to: &str) -> Outcome<()> {
    let tried = || format!("move the mount {from} to {to}");
    fs::create_dir_all(to).tried(|| format!("create folder {to}"))?;
    raw_mount(Some(from), Path::new(to), None, libc::MS_MOVE, None).tried(tried)
}

pub fn detach(target: &str) -> Outcome<()> {
    let path = c_string(target).tried(|| format!("unmount {target}"))?;
    // SAFETY: the path outlives the call.
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }).map(drop).tried(|| format!("unmount {target}"))
}

/// Makes `root` the root of this mount namespace, with the old one at `old` below it.
pub fn pivot_root(root: &str, old: &str) -> Outcome<()> {
    let tried = || format!("make {root} the root");
    let new = c_string(root).tried(tried)?;
    let put_old = c_string(old).tried(tried)?;
    // SAFETY: both paths outlive the call.
    let moved = unsafe { libc::syscall(libc::SYS_pivot_root, new.as_ptr(), put_old.as_ptr()) };
    check(moved as c_int).tried(tried)?;
    std::env::set_current_dir("/").tried(|| "change to /")
}

/// A copy of a mount (or of any folder or file, as a bind mount) that is not attached anywhere yet. It outlives the change of
/// root that makes its source unreachable.
pub struct Detached(OwnedFd);

impl Detached {
    pub fn of(path: &str) -> Outcome<Self> {
        // From linux/mount.h; libc has no names for all of them.
        const OPEN_TREE_CLONE: c_int = 1;
        let tried = || format!("copy the mount {path}");
        let c_path = c_string(path).tried(tried)?;
        let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | AT_RECURSIVE;
        // SAFETY: the path outlives the call; the new descriptor is ours alone.
        unsafe {
            let fd = libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, c_path.as_ptr(), flags);
            Ok(Detached(OwnedFd::from_raw_fd(check(fd as c_int).tried(tried)?)))
        }
    }

    pub fn make_read_only(&self) -> io::Result<()> {
        self.set([MOUNT_ATTR_RDONLY, 0, 0, 0])
    }

    /// Makes it a place for data, or for programs: no file here is a device or has the rights of its owner to whoever comes by
    /// this mount.
    pub fn limit(&self, read_only: bool, programs: bool) -> io::Result<()> {
        const MOUNT_ATTR_NOSUID: u64 = 2;
        const MOUNT_ATTR_NODEV: u64 = 4;
        const MOUNT_ATTR_NOEXEC: u64 = 8;
        let fixed = if read_only { MOUNT_ATTR_RDONLY } else { 0 };
        let data = if programs { 0 } else { MOUNT_ATTR_NOEXEC };
        self.set([MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | fixed | data, 0, 0, 0])
    }

    /// Gives the folder itself to a user and the group of the same number.
    pub fn give(&self, id: u32) -> io::Result<()> {
        let (fd, itself) = (self.0.as_raw_fd(), libc::AT_EMPTY_PATH);
        // SAFETY: the path is a constant.
        check(unsafe { libc::fchownat(fd, c"".as_ptr(), id, id, itself) }).map(drop)
    }

    /// Files have the owners in this mount that they have on the disk, as ids of the user namespace. Not every file system can
    /// do so.
    pub fn map_ids(&self, namespace: &UserNamespace) -> io::Result<()> {
        const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
        self.set([MOUNT_ATTR_IDMAP, 0, 0, namespace.descriptor() as u64])
    }

    fn set(&self, attributes: [u64; 4]) -> io::Result<()> {
        // SAFETY: the struct mount_attr is four 64-bit numbers: set, clear, propagation, userns.
        let set = unsafe {
            libc::syscall(
                libc::SYS_mount_setattr,
                self.0.as_raw_fd(),
                c"".as_ptr(),
                c_long::from(libc::AT_EMPTY_PATH | AT_RECURSIVE),
                attributes.as_ptr(),
                size_of_val(&attributes),
            )
        };
        check(set as c_int).map(drop)
    }

    fn is_folder(&self) -> io::Result<bool> {
        Ok(fs::metadata(format!("/proc/self/fd/{}", self.0.as_raw_fd()))?.is_dir())
    }

    /// Attaches the copy at `target`, made as a folder or an empty file if it is not there.
    pub fn attach(self, target: &str) -> Outcome<()> {
        let tried = || format!("bind on {target}");
        if self.is_folder().tried(tried)? {
            fs::create_dir_all(target).tried(tried)?;
        } else if !Path::new(target).exists() {
            if let Some(parent) = Path::new(target).parent() {
                fs::create_dir_all(parent).tried(tried)?;
            }
            fs::File::create(target).tried(tried)?;
        }
        self.attach_existing(target).tried(tried)
    }

    pub fn attach_existing(self, target: &str) -> io::Result<()> {
        const MOVE_MOUNT_F_EMPTY_PATH: c_int = 4;
        let target = c_string(target)?;
        // SAFETY: both paths outlive the call.
        let moved = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                self.0.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_FDCWD,
                target.as_ptr(),
                MOVE_MOUNT_F_EMPTY_PATH,
            )
        };
        check(moved as c_int).map(drop)
    }
}

/// A path as a value among overlay's options, where colons and commas divide.
pub fn escape_option(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for character in path.chars() {
        if matches!(character, '\\' | ':' | ',') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_overlay_divides_at() {
        assert_eq!(escape_option("/a:b,c\\d"), "/a\\:b\\,c\\\\d");
    }
}
