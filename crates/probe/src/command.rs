//! Turns an EXEC request into a command whose failures say which step failed.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::failure::{Failure, Outcome, Tried};
use crate::request::Exec;
use crate::{boundary, held, sys};

const DEFAULT_ENVIRONMENT: [(&str, &str); 3] =
    [("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("LANG", "C"), ("HOME", "/root")];

/// What the child does between fork and exec. std brings only an error number back from there, so the step is put into its
/// upper half. The exec itself is step 0.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Step {
    Cgroup = 1,
    Netns = 2,
    Cpus = 3,
    Cwd = 4,
    Hold = 5,
    Boundary = 6,
}

const STEP_SHIFT: i32 = 16;

impl Step {
    fn check(self, result: libc::c_int) -> io::Result<()> {
        self.result(sys::check(result).map(drop))
    }

    fn result(self, result: io::Result<()>) -> io::Result<()> {
        result.map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            io::Error::from_raw_os_error(errno | (self as i32) << STEP_SHIFT)
        })
    }
}

/// Everything that can be opened is opened here, before the fork.
pub fn build(request: &Exec) -> Outcome<Command> {
    let Some((name, rest)) = request.argv.split_first() else {
        return Err(Failure::new("cannot run an empty argv"));
    };
    let cgroups = request
        .cgroups
        .iter()
        .flatten()
        .map(|dir| {
            let path = format!("{dir}/cgroup.procs");
            File::options().write(true).open(&path).tried(|| format!("open {path}"))
        })
        .collect::<Outcome<Vec<File>>>()?;
    let netns = request
        .netns_of
        .map(|pid| {
            let path = format!("/proc/{pid}/ns/net");
            File::open(&path).tried(|| format!("open {path}"))
        })
        .transpose()?;
    let cpus = request.cpus.as_deref().map(cpu_set).transpose()?;
    let cwd = request
        .cwd
        .as_ref()
        .map(|dir| sys::c_string(dir.as_str()).tried(|| format!("change to {dir:?}")))
        .transpose()?;

    let (path, filter) = boundary::of(name);
    let mut command = Command::new(path);
    command.arg0(name).args(rest).env_clear().envs(DEFAULT_ENVIRONMENT);
    command.envs(request.env.iter().flatten());
    command.process_group(0);
    let held = request.held;
    let mut filter = filter;
    let prepare = move || {
        prepare(&cgroups, netns.as_ref(), cpus.as_ref(), cwd.as_ref())?;
        if held {
            Step::Hold.check(held::hold() as libc::c_int)?;
        }
        if let Some(filter) = &mut filter {
            Step::Boundary.result(boundary::cross(filter))?;
        }
        Ok(())
    };
    // SAFETY: `prepare` makes only system calls.
    unsafe { command.pre_exec(prepare) };
    Ok(command)
}

fn prepare(
    cgroups: &[File],
    netns: Option<&File>,
    cpus: Option<&libc::cpu_set_t>,
    cwd: Option<&CString>,
) -> io::Result<()> {
    // The program is not to inherit the signals that our own parent had set to be ignored (as nohup does).
    for signal in 1..=libc::SIGRTMAX() {
        sys::set_signal(signal, libc::SIG_DFL);
    }
    // SAFETY: descriptors, set and path outlive the calls.
    unsafe {
        for cgroup in cgroups {
            let written = libc::write(cgroup.as_raw_fd(), b"0\n".as_ptr().cast(), 2);
            Step::Cgroup.check(written as libc::c_int)?;
        }
        if let Some(netns) = netns {
            Step::Netns.check(libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET))?;
        }
        if let Some(set) = cpus {
            Step::Cpus.check(libc::sched_setaffinity(0, size_of_val(set), set))?;
        }
        if let Some(dir) = cwd {
            Step::Cwd.check(libc::chdir(dir.as_ptr()))?;
        }
    }
    Ok(())
}

pub fn cpu_set(cpus: &[usize]) -> Outcome<libc::cpu_set_t> {
    // SAFETY: a cpu_set_t is an array of bits; CPU_SET stays within CPU_SETSIZE.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            if *cpu >= libc::CPU_SETSIZE as usize {
                return Err(Failure::new(format!("there can be no CPU {cpu}")));
            }
            libc::CPU_SET(*cpu, &mut set);
        }
        Ok(set)
    }
}

/// What a failed spawn means.
pub fn failure(request: &Exec, error: &io::Error) -> Failure {
    let raw = error.raw_os_error().unwrap_or(0);
    let is = |step: Step| raw >> STEP_SHIFT == step as i32;
    let why = if is(Step::Cgroup) {
        format!("join the cgroups {:?}", request.cgroups)
    } else if is(Step::Netns) {
        format!("enter the netns of process {:?}", request.netns_of)
    } else if is(Step::Cpus) {
        format!("be put on CPUs {:?}", request.cpus)
    } else if is(Step::Cwd) {
        format!("change to {:?}", request.cwd)
    } else if is(Step::Hold) {
        "be held by ptrace (is kernel.yama.ptrace_scope 3?)".to_owned()
    } else if is(Step::Boundary) {
        "be kept within the container".to_owned()
    } else {
        return Failure::because(format!("run {:?}", request.argv), error);
    };
    let cause = io::Error::from_raw_os_error(raw & ((1 << STEP_SHIFT) - 1));
    let mut failure = Failure::because(why, &cause);
    failure.message = format!("cannot run {:?}: {}", request.argv, failure.message);
    failure
}
