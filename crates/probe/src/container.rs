//! `container`: an agent in namespaces of its own inside the lab, on an overlay over a shared root folder. With `--first-id N`
//! it is root of a user namespace besides, whose ids are the machine's from N on; without `--connect` it only shows whether
//! that can be.
//!
//! The outer process enters the network namespace itself before it forks, so that `/proc/PID/ns/net`
//! of the process that the lab's agent started is the container's.

use std::convert::Infallible;
use std::fs::{self, File};
use std::os::fd::OwnedFd;

use crate::agent;
use crate::arguments::Arguments;
use crate::boundary;
use crate::failure::{complain, Failure, Outcome, Tried};
use crate::root::{Bind, Prepared, Root, DEVICES};
use crate::session::Ending;
use crate::sys::{self, Forked};
use crate::system_folders;
use crate::user_namespace::UserNamespace;

struct Container {
    /// The machine's id for its root, if it is in a user namespace of its own.
    first_id: Option<u32>,
    root: String,
    scratch: String,
    hostname: String,
    binds: Vec<Bind>,
    key: Option<String>,
}

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let first_id = arguments.value("--first-id")?;
    let first_id = first_id.map(|word| word.parse().map_err(|_| Failure::new(format!("--first-id {word}: no number"))));
    let container = Container {
        first_id: first_id.transpose()?,
        root: arguments.required("--root")?,
        scratch: arguments.required("--scratch")?,
        hostname: arguments.required("--hostname")?,
        binds: arguments.values("--bind")?.iter().map(|text| Bind::parse(text)).collect::<Outcome<_>>()?,
        key: arguments.value("--key")?,
    };
    let cgroups = arguments.values("--cgroup")?;
    let path = match arguments.value("--connect")? {
        Some(path) => path,
        // Only whether its root can be made here, of which nothing stays.
        None => {
            arguments.finish()?;
            return container.prepare().map(drop);
        }
    };
    arguments.finish()?;
    let control = agent::connect(&path)?;
    match container.begin(&cgroups) {
        Err(failure) => {
            agent::report(control, &failure);
            Err(failure)
        }
        Ok((Forked::Child, root, lifeline)) => {
            let stream = control.try_clone().tried(|| "duplicate the control socket");
            let Err(failure) = stream.and_then(|stream| container.inside(root, stream, &lifeline));
            agent::report(control, &failure);
            complain(&failure);
            sys::exit_now(1)
        }
        Ok((Forked::Parent(child), _root, _lifeline)) => {
            drop(control);
            sys::exit_now(sys::wait_for(child).tried(|| "wait for the container")?)
        }
    }
}

impl Container {
    fn begin(&self, cgroups: &[String]) -> Outcome<(Forked, Prepared<'_>, OwnedFd)> {
        for dir in cgroups {
            let path = format!("{dir}/cgroup.procs");
            fs::write(&path, "0").tried(|| format!("join cgroup {dir}"))?;
        }
        let root = self.prepare()?;
        let (read, write) = sys::pipe().tried(|| "make a pipe")?;
        // These are the user namespace's.
        sys::unshare(
            libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC,
        )
        .tried(|| "make namespaces")?;
        Ok(match sys::fork().tried(|| "fork")? {
            Forked::Child => (Forked::Child, root, read),
            parent => (parent, root, write),
        })
    }

    /// From here on this process is the user namespace's root, if there is one.
    fn prepare(&self) -> Outcome<Prepared<'_>> {
        let ids = self.first_id.map(UserNamespace::of).transpose()?;
        sys::unshare(libc::CLONE_NEWNS).tried(|| "make a mount namespace")?;
        let root = Root { lower: &self.root, scratch: &self.scratch, devices: &DEVICES, binds: &self.binds };
        let root = root.prepare(ids.as_ref())?;
        if let Some(ids) = ids {
            sys::allow_run_first(true);
            ids.enter()?;
        }
        Ok(root)
    }

    /// PID 1 of the container.
    fn inside(&self, root: Prepared, control: File, lifeline: &OwnedFd) -> Outcome<Infallible> {
        sys::die_with_parent(lifeline).tried(|| "stay with the outer process")?;
        root.enter()?;
        sys::set_hostname(&self.hostname).tried(|| "set the hostname")?;
        sys::bring_up("lo").tried(|| "bring up lo")?;
        boundary::draw()?;
        system_folders::in_container_image()?;
        agent::serve_both(control, Ending::Exit, self.key.clone())
    }
}
