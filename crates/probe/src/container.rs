//! `container`: namespaces of its own inside the lab, on an overlay over a shared root folder.
//!
//! The outer process enters the network namespace itself before it forks, so that `/proc/PID/ns/net`
//! of the process that the lab's agent started is the container's.

use std::convert::Infallible;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::agent::{self, Ending};
use crate::arguments::Arguments;
use crate::failure::{complain, Failure, Outcome, Tried};
use crate::mounts::{self, Detached};
use crate::sys::{self, Forked};

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const OLD_ROOT: &str = "/.outside";

struct Container {
    root: String,
    scratch: String,
    hostname: String,
    binds: Vec<Bind>,
}

#[derive(Debug, PartialEq)]
struct Bind {
    source: String,
    target: String,
    read_only: bool,
}

impl Bind {
    fn parse(text: &str) -> Outcome<Bind> {
        let (source, target, read_only) = match *text.split(':').collect::<Vec<_>>() {
            [source, target] => (source, target, false),
            [source, target, "ro"] => (source, target, true),
            _ => ("", "", false),
        };
        if !source.starts_with('/') || !target.starts_with('/') {
            return Err(Failure::new(format!("--bind takes /SOURCE:/TARGET or /SOURCE:/TARGET:ro, not {text:?}")));
        }
        Ok(Bind { source: source.into(), target: target.into(), read_only })
    }
}

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let container = Container {
        root: arguments.required("--root")?,
        scratch: arguments.required("--scratch")?,
        hostname: arguments.required("--hostname")?,
        binds: arguments.values("--bind")?.iter().map(|text| Bind::parse(text)).collect::<Outcome<_>>()?,
    };
    let path = arguments.required("--connect")?;
    let cgroups = arguments.values("--cgroup")?;
    arguments.finish()?;
    let control = agent::connect(&path)?;
    match begin(&cgroups) {
        Err(failure) => {
            agent::report(control, &failure);
            Err(failure)
        }
        Ok((Forked::Child, lifeline)) => {
            let stream = control.try_clone().tried(|| "duplicate the control socket");
            let Err(failure) = stream.and_then(|stream| container.inside(stream, &lifeline));
            agent::report(control, &failure);
            complain(&failure);
            sys::exit_now(1)
        }
        Ok((Forked::Parent(child), _lifeline)) => {
            drop(control);
            sys::exit_now(sys::wait_for(child).tried(|| "wait for the container")?)
        }
    }
}

fn begin(cgroups: &[String]) -> Outcome<(Forked, OwnedFd)> {
    for dir in cgroups {
        let path = format!("{dir}/cgroup.procs");
        fs::write(&path, "0").tried(|| format!("join cgroup {dir}"))?;
    }
    let (read, write) = sys::pipe().tried(|| "make a pipe")?;
    sys::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC)
        .tried(|| "make namespaces")?;
    Ok(match sys::fork().tried(|| "fork")? {
        Forked::Child => (Forked::Child, read),
        parent => (parent, write),
    })
}

impl Container {
    /// PID 1 of the container.
    fn inside(&self, control: File, lifeline: &OwnedFd) -> Outcome<Infallible> {
        sys::die_with_parent(lifeline).tried(|| "stay with the outer process")?;
        mounts::make_private()?;
        let root = self.overlay()?;
        let devices = DEVICES
            .iter()
            .map(|name| Ok((Detached::of(&format!("/dev/{name}"))?, *name)))
            .collect::<Outcome<Vec<_>>>()?;
        let binds =
            self.binds.iter().map(|bind| Ok((Detached::of(&bind.source)?, bind))).collect::<Outcome<Vec<_>>>()?;

        // From here on paths mean the container's, so that no link in the image leads outside.
        let old = format!("{root}{OLD_ROOT}");
        fs::create_dir_all(&old).tried(|| format!("create folder {old}"))?;
        mounts::pivot_root(&root, &old)?;
        // The old root goes last: without root, a new /proc needs the sight of an old one.
        mounts::mount("proc", "proc", "/proc", mounts::NO_DEVICES, "")?;
        mounts::mount("sysfs", "sysfs", "/sys", mounts::NO_DEVICES, "")?;
        mounts::mount("tmpfs", "tmpfs", "/dev", libc::MS_NOSUID, "mode=755")?;
        for (device, name) in devices {
            device.attach(&format!("/dev/{name}"))?;
        }
        mounts::complete_dev()?;
        symlink("pts/ptmx", "/dev/ptmx").tried(|| "create /dev/ptmx")?;
        mounts::scratch_folders()?;
        for (copy, bind) in binds {
            if bind.read_only {
                copy.make_read_only().tried(|| format!("make {} read-only", bind.source))?;
            }
            copy.attach(&bind.target)?;
        }
        mounts::detach(OLD_ROOT)?;
        fs::remove_dir(OLD_ROOT).tried(|| format!("remove {OLD_ROOT}"))?;

        sys::set_hostname(&self.hostname).tried(|| "set the hostname")?;
        sys::bring_up_loopback().tried(|| "bring up lo")?;
        agent::serve_both(control, Ending::Exit)
    }

    /// Mounts the container's root, and gives its path.
    fn overlay(&self) -> Outcome<String> {
        let lower = real(&self.root)?;
        fs::create_dir_all(&self.scratch).tried(|| format!("create folder {}", self.scratch))?;
        let scratch = real(&self.scratch)?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        mounts::mount("tmpfs", "tmpfs", &scratch, flags, "size=50%,mode=755")?;
        let root = format!("{scratch}/root");
        for part in ["upper", "work"] {
            let path = format!("{scratch}/{part}");
            fs::create_dir(&path).tried(|| format!("create folder {path}"))?;
        }
        let options = format!(
            "lowerdir={},upperdir={},workdir={}{}",
            mounts::escape_option(&lower),
            mounts::escape_option(&format!("{scratch}/upper")),
            mounts::escape_option(&format!("{scratch}/work")),
            if in_user_namespace() { ",userxattr" } else { "" },
        );
        mounts::mount("overlay", "overlay", &root, 0, &options)?;
        Ok(root)
    }
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
        let bind = |read_only| Bind { source: "/a".into(), target: "/b".into(), read_only };
        assert_eq!(Bind::parse("/a:/b").unwrap(), bind(false));
        assert_eq!(Bind::parse("/a:/b:ro").unwrap(), bind(true));
        for wrong in ["", "/a", "/a:/b:rw", "a:/b", "/a:b", "/a:/b:ro:ro"] {
            assert!(Bind::parse(wrong).is_err(), "{wrong}");
        }
    }
}
