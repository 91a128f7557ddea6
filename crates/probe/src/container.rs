//! `container`: an agent in namespaces of its own inside the lab, on an overlay over a shared root folder.
//!
//! The outer process enters the network namespace itself before it forks, so that `/proc/PID/ns/net`
//! of the process that the lab's agent started is the container's.

use std::convert::Infallible;
use std::fs::{self, File};
use std::os::fd::OwnedFd;

use crate::agent;
use crate::arguments::Arguments;
use crate::boundary;
use crate::failure::{complain, Outcome, Tried};
use crate::root::{Bind, Root, DEVICES};
use crate::session::Ending;
use crate::sys::{self, Forked};

struct Container {
    root: String,
    scratch: String,
    hostname: String,
    binds: Vec<Bind>,
    key: Option<String>,
}

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let container = Container {
        root: arguments.required("--root")?,
        scratch: arguments.required("--scratch")?,
        hostname: arguments.required("--hostname")?,
        binds: arguments.values("--bind")?.iter().map(|text| Bind::parse(text)).collect::<Outcome<_>>()?,
        key: arguments.value("--key")?,
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
        let root = Root { lower: &self.root, scratch: &self.scratch, devices: &DEVICES, binds: &self.binds };
        root.enter()?;
        sys::set_hostname(&self.hostname).tried(|| "set the hostname")?;
        sys::bring_up_loopback().tried(|| "bring up lo")?;
        boundary::draw()?;
        agent::serve_both(control, Ending::Exit, self.key.clone())
    }
}
