//! Where something is mounted, and removing folders without touching it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

pub fn mount_points() -> io::Result<Vec<PathBuf>> {
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
    use std::os::unix::fs::symlink;

    #[test]
    fn reads_mountinfo() {
        let table = b"22 28 0:20 / /sys rw - sysfs sysfs rw\n\
            30 22 0:5 / /mnt/a\\040b\\134 rw - tmpfs t rw\n";
        let points = parse_mount_points(table);
        assert_eq!(points, [Path::new("/sys"), Path::new("/mnt/a b\\")]);
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
