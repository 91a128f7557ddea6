//! A root folder of a process's own: an overlay over a shared folder, or the host's own root with private /run and /tmp.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use serde::Deserialize;

use crate::failure::{Failure, Outcome, Tried};
use crate::mounts::{self, Detached};
use crate::system_folders;
use crate::user_namespace::UserNamespace;

pub const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const OLD_ROOT: &str = "/.outside";

/// A file or folder that is seen in the new root too; on the command line a JSON object, since a path may hold any character.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    pub source: String,
    pub target: String,
    #[serde(default)]
    pub read_only: bool,
    /// Whether programs there may be run.
    #[serde(default)]
    pub programs: bool,
}

impl Bind {
    pub fn parse(text: &str) -> Outcome<Bind> {
        let bind: Bind = serde_json::from_str(text).map_err(|error| Failure::new(format!("--bind {text}: {error}")))?;
        if !bind.source.starts_with('/') || !bind.target.starts_with('/') {
            return Err(Failure::new(format!("--bind takes absolute paths, not {text}")));
        }
        Ok(bind)
    }
}

/// The overlay. `lower` is only read; `scratch` is a folder on which the writable layer is mounted.
pub struct Root<'a> {
    pub lower: &'a str,
    pub scratch: &'a str,
    pub devices: &'a [&'a str],
    pub binds: &'a [Bind],
}

/// A root that is made but that nobody is in yet. It is not attached anywhere, so that whoever enters it needs no way to it.
pub struct Prepared<'a> {
    root: Detached,
    devices: Vec<(Detached, &'a str)>,
    binds: Binds<'a>,
}

impl<'a> Root<'a> {
    /// For a process that has a mount namespace of its own. `ids`: whose root will enter; this process is then the machine's.
    pub fn prepare(&self, ids: Option<&UserNamespace>) -> Outcome<Prepared<'a>> {
        mounts::make_private()?;
        let root = self.overlay(ids)?;
        let old = format!("{root}{OLD_ROOT}");
        fs::create_dir_all(&old).tried(|| format!("create folder {old}"))?;
        let devices = self.devices.iter().map(|name| Ok((Detached::of(&format!("/dev/{name}"))?, *name)));
        let devices = devices.collect::<Outcome<Vec<_>>>()?;
        let binds = detached(self.binds)?;
        // Not by mapping ids: what programs leave there would be root's on the machine, with whatever modes they give it.
        if let Some(ids) = ids {
            for (copy, bind) in binds.iter().filter(|(_, bind)| !bind.read_only) {
                copy.give(ids.first()).tried(|| format!("give {} to the user namespace", bind.source))?;
            }
        }
        Ok(Prepared { root: Detached::of(&root)?, devices, binds })
    }

    /// Mounts the overlay, and gives its path.
    fn overlay(&self, ids: Option<&UserNamespace>) -> Outcome<String> {
        let lower = real(self.lower)?;
        fs::create_dir_all(self.scratch).tried(|| format!("create folder {}", self.scratch))?;
        let scratch = real(self.scratch)?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        mounts::mount("tmpfs", "tmpfs", &scratch, flags, "size=50%,mode=755")?;
        let root = format!("{scratch}/root");
        let Some(ids) = ids else {
            mounts::mount("overlay", "overlay", &root, flags, &layers(&lower, &scratch)?)?;
            return Ok(root);
        };
        let (image, mapped) = (Detached::of(&lower)?, format!("{scratch}/lower"));
        image.map_ids(ids).tried(|| format!("map the ids of {lower}"))?;
        image.attach(&mapped)?;
        let options = layers(&mapped, &scratch)?;
        let upper = format!("{scratch}/upper");
        chown(&upper, Some(ids.first()), Some(ids.first())).tried(|| format!("give {upper} to the user namespace"))?;
        mounts::mount("overlay", "overlay", &root, flags, &options)?;
        Ok(root)
    }
}

impl Prepared<'_> {
    /// Makes it the root of this process, which has a mount namespace of its own and is PID 1 of its PID namespace.
    pub fn enter(self) -> Outcome<()> {
        mounts::make_private()?;
        // A folder that is everywhere, and to which the way is open to everybody.
        const PLACE: &str = "/tmp";
        self.root.attach_existing(PLACE).tried(|| format!("bind the new root on {PLACE}"))?;
        // From here on paths mean the new root's, so that no link in the image leads outside.
        mounts::pivot_root(PLACE, &format!("{PLACE}{OLD_ROOT}"))?;
        // The old root goes last, since without root's rights a new /proc can only be mounted while an old one is visible.
        mounts::mount("proc", "proc", "/proc", mounts::NO_DEVICES, "")?;
        mounts::mount("sysfs", "sysfs", "/sys", mounts::NO_DEVICES, "")?;
        mounts::mount("tmpfs", "tmpfs", "/dev", libc::MS_NOSUID, "mode=755")?;
        for (device, name) in self.devices {
            // It can be written to all the same, but its mode and owner are the machine's.
            device.make_read_only().tried(|| format!("make /dev/{name} read-only"))?;
            device.attach(&format!("/dev/{name}"))?;
        }
        system_folders::complete_dev()?;
        symlink("pts/ptmx", "/dev/ptmx").tried(|| "create /dev/ptmx")?;
        system_folders::scratch_folders()?;
        attach(self.binds)?;
        mounts::detach(OLD_ROOT)?;
        fs::remove_dir(OLD_ROOT).tried(|| format!("remove {OLD_ROOT}"))
    }
}

/// Keeps the host's own root. What is written to /run and /tmp goes to a layer on `scratch`.
pub fn keep_own(scratch: &str, binds: &[Bind]) -> Outcome<()> {
    mounts::make_private()?;
    let binds = detached(binds)?;
    fs::create_dir_all(scratch).tried(|| format!("create folder {scratch}"))?;
    let scratch = real(scratch)?;
    mounts::mount("tmpfs", "tmpfs", &scratch, libc::MS_NOSUID | libc::MS_NODEV, "size=50%,mode=755")?;
    let options = layers("/run", &scratch)?;
    mounts::mount("overlay", "overlay", "/run", libc::MS_NOSUID | libc::MS_NODEV, &options)?;
    mounts::mount("tmpfs", "tmpfs", "/tmp", libc::MS_NOSUID | libc::MS_NODEV, "mode=1777")?;
    mounts::mount("proc", "proc", "/proc", mounts::NO_DEVICES, "")?;
    attach(binds)
}

type Binds<'a> = Vec<(Detached, &'a Bind)>;

fn detached(binds: &[Bind]) -> Outcome<Binds<'_>> {
    binds.iter().map(|bind| Ok((Detached::of(&bind.source)?, bind))).collect()
}

fn attach(binds: Binds<'_>) -> Outcome<()> {
    for (copy, bind) in binds {
        copy.limit(bind.read_only, bind.programs).tried(|| format!("limit the mount of {}", bind.source))?;
        copy.attach(&bind.target)?;
    }
    Ok(())
}

/// The options of an overlay whose own layer is on `scratch`, where its folders are made. Its folders cannot be renamed, whatever
/// the machine's default is: a program could else put another file at a path on which something is bound.
fn layers(lower: &str, scratch: &str) -> Outcome<String> {
    for part in ["upper", "work"] {
        let path = format!("{scratch}/{part}");
        fs::create_dir(&path).tried(|| format!("create folder {path}"))?;
    }
    Ok(format!(
        "lowerdir={},upperdir={},workdir={},redirect_dir=nofollow{}",
        mounts::escape_option(lower),
        mounts::escape_option(&format!("{scratch}/upper")),
        mounts::escape_option(&format!("{scratch}/work")),
        if in_user_namespace() { ",userxattr" } else { "" },
    ))
}

fn real(path: &str) -> Outcome<String> {
    let real = Path::new(path).canonicalize().tried(|| format!("find {path}"))?;
    real.into_os_string().into_string().map_err(|path| Failure::new(format!("{path:?} is not UTF-8")))
}

/// Only the first user namespace maps every id to itself.
fn in_user_namespace() -> bool {
    fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !map.split_ascii_whitespace().eq(["0", "0", "4294967295"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_binds() {
        let bind =
            |source: &str, read_only| Bind { source: source.into(), target: "/b".into(), read_only, programs: false };
        assert_eq!(Bind::parse(r#"{"source": "/a", "target": "/b"}"#).unwrap(), bind("/a", false));
        assert_eq!(
            Bind::parse(r#"{"source": "/a:1,\" x", "target": "/b", "read_only": true}"#).unwrap(),
            bind("/a:1,\" x", true)
        );
        for wrong in [
            "",
            "/a:/b",
            "{}",
            r#"{"source": "/a"}"#,
            r#"{"source": "a", "target": "/b"}"#,
            r#"{"source": "/a", "target": "b"}"#,
            r#"{"source": "/a", "target": "/b", "readonly": true}"#,
        ] {
            assert!(Bind::parse(wrong).is_err(), "{wrong}");
        }
    }
}
