//! Mounting, and removing folders without touching what is mounted in them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::ptr::null;

use libc::{c_int, c_long, c_ulong};

use crate::failure::{Outcome, Tried};
use crate::sys::{c_string, check};

const AT_RECURSIVE: c_int = 0x8000;

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

/// Nothing mounted from here on is seen outside of this mount namespace, nor the other way.
pub fn make_private() -> Outcome<()> {
    raw_mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE, None).tried(|| "make the mounts private")
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

/// A copy of a mount (or of any folder or file, as a bind mount) that is not attached anywhere
/// yet: it outlives the change of root that makes its source unreachable.
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
        const MOUNT_ATTR_RDONLY: u64 = 1;
        let attributes: [u64; 4] = [MOUNT_ATTR_RDONLY, 0, 0, 0];
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

    fn attach_existing(self, target: &str) -> io::Result<()> {
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

/// A /sys that shows this network namespace's devices, with what was mounted below the old one.
pub fn fresh_sys() -> Outcome<()> {
    let mut below: Vec<PathBuf> = mount_points()
        .tried(|| "read /proc/self/mountinfo")?
        .into_iter()
        .filter(|path| path.starts_with("/sys") && path != Path::new("/sys"))
        .collect();
    below.sort();
    // A recursive copy of the outer brings the inner ones along.
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
        // What the new /sys has no folder for belongs to the namespace that was left.
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

fn mount_points() -> io::Result<Vec<PathBuf>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(parse_mount_points(&table))
}

/// The fifth field of each line, with \ooo for blanks and backslashes.
fn parse_mount_points(table: &[u8]) -> Vec<PathBuf> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(OsString::from_vec(unescape(field))))
        .collect()
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let octal = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    plain
}

/// Removes a folder and what is in it, except where something is mounted.
pub fn remove_tree(root: &Path) -> io::Result<()> {
    // mountinfo shows real paths.
    let real = match fs::canonicalize(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        path => path?,
    };
    remove_unless_mounted(&real, &mount_points()?)
}

fn remove_unless_mounted(path: &Path, mounted: &[PathBuf]) -> io::Result<()> {
    if mounted.iter().any(|point| point == path) {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    let mut worst = Ok(());
    for entry in fs::read_dir(path)? {
        worst = remove_unless_mounted(&entry?.path(), mounted).and(worst);
    }
    worst.and_then(|()| fs::remove_dir(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_mountinfo() {
        let table = b"22 28 0:20 / /sys rw - sysfs sysfs rw\n\
            30 22 0:5 / /mnt/a\\040b\\134 rw - tmpfs t rw\n";
        let points = parse_mount_points(table);
        assert_eq!(points, [Path::new("/sys"), Path::new("/mnt/a b\\")]);
    }

    #[test]
    fn escapes_what_overlay_divides_at() {
        assert_eq!(escape_option("/a:b,c\\d"), "/a\\:b\\,c\\\\d");
    }

    #[test]
    fn removes_folders_and_links_but_not_what_links_point_at() {
        let base = std::env::temp_dir().join(format!("probe-remove-{}", std::process::id()));
        let kept = base.join("kept");
        let gone = base.join("gone");
        fs::create_dir_all(&kept).unwrap();
        fs::create_dir_all(gone.join("a/b")).unwrap();
        fs::write(gone.join("a/f"), "x").unwrap();
        symlink(&kept, gone.join("a/link")).unwrap();
        remove_tree(&gone).unwrap();
        assert!(!gone.exists() && kept.exists());
        remove_tree(&gone).unwrap();
        fs::remove_dir_all(&base).unwrap();
    }
}
