//! `lab`: a set of namespaces whose PID 1 is an agent, and a keeper outside that cleans up after it.
//!
//! The controller holds the other end of the control socket. When it dies, by whatever signal, the agent reads the end of the
//! stream and exits. The kernel then kills everything in the PID namespace, and the keeper removes what namespaces do not
//! hold.

use std::convert::Infallible;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::agent;
use crate::arguments::Arguments;
use crate::failure::{complain, Outcome, Tried};
use crate::mount_points::remove_tree;
use crate::session::Ending;
use crate::sys::Forked;
use crate::system_folders::fresh_sys;
use crate::{mounts, sys};

const CLEANING_LIMIT: Duration = Duration::from_secs(5);
const CLEANING_POLL: Duration = Duration::from_millis(5);

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let fd = arguments.required("--fd")?;
    let id = arguments.required("--id")?;
    let scratch = arguments.value("--scratch")?;
    let cgroups = arguments.values("--cgroup")?;
    let more = [arguments.value("--uids")?, arguments.value("--gids")?];
    arguments.finish()?;
    let control = agent::adopt(&fd)?;
    // The keeper has to be there when all else is interrupted. A group leader cannot begin a session, and needs none: it
    // ignores the signals.
    // SAFETY: no memory is involved.
    unsafe { libc::setsid() };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        sys::set_signal(signal, libc::SIG_IGN);
    }
    let code = match begin(&more) {
        Err(failure) => {
            agent::report(control, &failure);
            complain(&failure);
            1
        }
        Ok((Forked::Child, lifeline)) => {
            let stream = control.try_clone().tried(|| "duplicate the control socket");
            let Err(failure) = stream.and_then(|stream| inside(stream, &id, &lifeline));
            agent::report(control, &failure);
            complain(&failure);
            sys::exit_now(1)
        }
        Ok((Forked::Parent(child), _lifeline)) => {
            drop(control);
            sys::wait_for(child).unwrap_or(1)
        }
    };
    clean(scratch.as_deref(), &cgroups)?;
    sys::exit_now(code)
}

/// Forks the lab's PID 1. Each side gets its end of a pipe that tells the child of its parent's death.
fn begin(more: &[Option<String>; 2]) -> Outcome<(Forked, OwnedFd)> {
    // SAFETY: cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        enter_user_namespace(more)?;
    }
    let (read, write) = sys::pipe().tried(|| "make a pipe")?;
    sys::unshare(libc::CLONE_NEWPID).tried(|| "make a PID namespace")?;
    Ok(match sys::fork().tried(|| "fork")? {
        Forked::Child => (Forked::Child, read),
        parent => (parent, write),
    })
}

/// This user is root in it. `more`: the ids that others have there, of users and of groups, as `FIRST:COUNT`; only with both and
/// with the programs that may map them (newuidmap(1)) are there any others.
fn enter_user_namespace(more: &[Option<String>; 2]) -> Outcome<()> {
    // SAFETY: these cannot fail.
    let own = unsafe { [libc::geteuid(), libc::getegid()] };
    let (begin, tell) = sys::pipe().tried(|| "make a pipe")?;
    // It stays outside, where the maps are written.
    let helper = match more {
        [Some(uids), Some(gids)] => match sys::fork().tried(|| "fork")? {
            Forked::Child => {
                drop(tell);
                sys::exit_now(i32::from(!map_ranges(begin, own, [uids, gids])))
            }
            Forked::Parent(helper) => Some(helper),
        },
        _ => None,
    };
    sys::unshare(libc::CLONE_NEWUSER).tried(|| "make a user namespace")?;
    if let Some(helper) = helper {
        fs::File::from(tell).write_all(b"!").tried(|| "have the ids mapped")?;
        if sys::wait_for(helper).tried(|| "wait for the ids")? == 0 {
            return Ok(());
        }
    }
    let write = |file: &str, text: String| {
        let path = format!("/proc/self/{file}");
        // newuidmap may have done so where newgidmap could not.
        if fs::read_to_string(&path).is_ok_and(|there| there.is_empty() || file == "setgroups") {
            fs::write(&path, text).tried(|| format!("write {path}"))?;
        }
        Ok(())
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("0 {} 1", own[0]))?;
    write("gid_map", format!("0 {} 1", own[1]))
}

/// Whether the parent's maps could be written, once it says that it is in its namespace.
fn map_ranges(begin: OwnedFd, own: [u32; 2], more: [&str; 2]) -> bool {
    if fs::File::from(begin).read_exact(&mut [0]).is_err() {
        return false;
    }
    // SAFETY: cannot fail.
    let parent = unsafe { libc::getppid() }.to_string();
    ["newuidmap", "newgidmap"].into_iter().zip(own).zip(more).all(|((program, own), more)| {
        let (first, count) = more.split_once(':').unwrap_or_default();
        let words = [parent.as_str(), "0", &own.to_string(), "1", "1", first, count].map(str::to_owned);
        Command::new(program).args(words).status().is_ok_and(|status| status.success())
    })
}

fn inside(control: fs::File, id: &str, lifeline: &OwnedFd) -> Outcome<Infallible> {
    sys::die_with_parent(lifeline).tried(|| "stay with the keeper")?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        sys::set_signal(signal, libc::SIG_DFL);
    }
    sys::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS)
        .tried(|| "make mount, network, IPC and UTS namespaces")?;
    mounts::make_private_root()?;
    mounts::mount("proc", "proc", "/proc", mounts::NO_DEVICES, "")?;
    fresh_sys()?;
    sys::bring_up("lo").tried(|| "bring up lo")?;
    sys::set_hostname(&format!("lab-{id}")).tried(|| "set the hostname")?;
    agent::serve_both(control, Ending::Exit, None)
}

/// Removes what the lab leaves outside of its namespaces. All of it is tried before the first failure is reported.
fn clean(scratch: Option<&str>, cgroups: &[String]) -> Outcome<()> {
    let deadline = Instant::now() + CLEANING_LIMIT;
    let mut outcome = Ok(());
    for dir in cgroups {
        let removed = remove_cgroup(Path::new(dir), deadline);
        outcome = outcome.and(removed.tried(|| format!("remove cgroup {dir}")));
    }
    if let Some(dir) = scratch {
        let removed = remove_tree(Path::new(dir));
        outcome = outcome.and(removed.tried(|| format!("remove scratch folder {dir}")));
    }
    outcome
}

/// Processes leave their cgroups only when they are reaped, a little after they are killed.
fn remove_cgroup(root: &Path, deadline: Instant) -> std::io::Result<()> {
    if !root.exists() {
        return Ok(());
    }
    // Only cgroup v2 has this file. A process that stays alive without it shows as a failure below.
    let kill = root.join("cgroup.kill");
    if kill.exists() {
        let _ = fs::write(kill, "1");
    }
    loop {
        match remove_cgroup_once(root) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                thread::sleep(CLEANING_POLL);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            removed => return removed,
        }
    }
}

fn remove_cgroup_once(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroup_once(&entry.path())?;
        }
    }
    fs::remove_dir(dir)
}
