//! `lease`: an agent on a host that is not ours, for a while, and a keeper that puts everything back.
//!
//! The keeper outlives the agent, whatever ends it: the control stream's end, a controller of which nothing is heard for
//! longer than the lease, a signal. It then undoes what the controller entered into the lease's `undo` folder before it
//! changed anything (see `undo`), removes the lease's folder and ends. A keeper that was killed leaves its folder behind:
//! whoever holds the host next, or `lease --sweep`, undoes that first. One lock holds a host for one lease at a time.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::agent;
use crate::arguments::{number, Arguments};
use crate::failure::{complain, Failure, Outcome, Tried};
use crate::leased_host::{self, leases, undo_all, About, NOT_UNDONE};
use crate::root::{self, Bind, Root, DEVICES};
use crate::session::Ending;
use crate::sys::{self, Forked};
use crate::system_folders;

/// The agent tells the keeper that something was sent to it, at most this many times in the time of the lease.
const BEATS: u32 = 16;
/// Where the agent finds what is the lease's, in its own mount namespace.
const ARTIFACTS: &str = "/run/twinbed";
const UNDO: &str = "/run/twinbed-undo";
const PROGRAMS: &str = "/run/twinbed-bin";

struct Lease {
    id: String,
    folder: PathBuf,
    time: Duration,
    wait: Duration,
    root: Option<String>,
    programs: String,
    /// Whose it is: what sshd says of the connection.
    from: Option<String>,
}

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let folder = PathBuf::from(arguments.required("--folder")?);
    if arguments.flag("--sweep") {
        let only_list = arguments.flag("--list");
        arguments.finish()?;
        return leased_host::sweep(&folder, only_list);
    }
    let seconds = |name: &str, text: String| -> Outcome<Duration> {
        Duration::try_from_secs_f64(number(name, &text)?)
            .map_err(|_| Failure::new(format!("{name} takes seconds, not {text}")))
    };
    let lease = Lease {
        id: arguments.required("--id")?,
        folder,
        time: seconds("--seconds", arguments.required("--seconds")?)?,
        wait: seconds("--wait", arguments.required("--wait")?)?,
        root: arguments.value("--root")?,
        programs: arguments.required("--programs")?,
        from: arguments.value("--from")?,
    };
    arguments.finish()?;
    let input = sys::take_standard(0).tried(|| "take standard input")?;
    let output = sys::take_standard(1).tried(|| "take standard output")?;
    // SAFETY: no memory is involved.
    unsafe { libc::setsid() };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        sys::set_signal(signal, libc::SIG_IGN);
    }
    let refuse = |failure: Failure| -> ! {
        if let Ok(output) = output.try_clone() {
            agent::report(output, &failure);
        }
        complain(&failure);
        sys::exit_now(1)
    };
    let lock = match leased_host::lock(&lease.folder, lease.wait) {
        Ok(lock) => lock,
        Err(failure) => refuse(failure),
    };
    for failure in undo_all(&leases(&lease.folder)) {
        complain(&failure);
    }
    let started = lease.prepare().and_then(|()| lease.begin());
    let outcome = match started {
        Err(failure) => {
            lease.put_back();
            refuse(failure)
        }
        Ok(Side::Agent { lifeline, beats }) => {
            drop(lock);
            let twin = output.try_clone();
            let Err(failure) = lease.inside(input, output, &lifeline, beats);
            if let Ok(twin) = twin {
                agent::report(twin, &failure);
            }
            complain(&failure);
            sys::exit_now(1)
        }
        Ok(Side::Keeper { child, beats, _lifeline }) => {
            drop((input, output));
            lease.watch(child, &beats);
            lease.put_back()
        }
    };
    drop(lock);
    sys::exit_now(if outcome { 0 } else { NOT_UNDONE })
}

enum Side {
    Agent { lifeline: OwnedFd, beats: File },
    Keeper { child: libc::pid_t, beats: File, _lifeline: OwnedFd },
}

impl Lease {
    fn path(&self) -> PathBuf {
        leased_host::folder_of_leases(&self.folder).join(&self.id)
    }

    fn within(&self, name: &str) -> String {
        self.path().join(name).to_string_lossy().into_owned()
    }

    fn prepare(&self) -> Outcome<()> {
        let about = About::now(self.root.clone(), self.from.clone())?;
        let path = self.path();
        for folder in [path.clone(), path.join("undo"), path.join("artifacts")] {
            fs::create_dir_all(&folder).tried(|| format!("create folder {}", folder.display()))?;
        }
        about.write(&path)
    }

    fn begin(&self) -> Outcome<Side> {
        let (read_life, write_life) = sys::pipe().tried(|| "make a pipe")?;
        let (read_beats, write_beats) = sys::pipe().tried(|| "make a pipe")?;
        Ok(match sys::fork_as_pid_1().tried(|| "make a PID namespace")? {
            Forked::Child => Side::Agent { lifeline: read_life, beats: File::from(write_beats) },
            Forked::Parent(child) => Side::Keeper { child, beats: File::from(read_beats), _lifeline: write_life },
        })
    }

    /// PID 1 of the lease.
    fn inside(&self, input: File, output: File, lifeline: &OwnedFd, beats: File) -> Outcome<Infallible> {
        sys::die_with_parent(lifeline).tried(|| "stay with the keeper")?;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            sys::set_signal(signal, libc::SIG_DFL);
        }
        sys::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWIPC).tried(|| "make mount and IPC namespaces")?;
        let bind = |source: String, target: &str, programs| Bind {
            source,
            target: target.to_owned(),
            read_only: programs,
            programs,
        };
        let binds = [
            bind(self.within("artifacts"), ARTIFACTS, false),
            bind(self.within("undo"), UNDO, false),
            bind(self.programs.clone(), PROGRAMS, true),
        ];
        let scratch = self.within("root");
        match &self.root {
            Some(lower) => {
                let devices = [&DEVICES[..], &["kmsg"]].concat();
                Root { lower, scratch: &scratch, devices: &devices, binds: &binds }.prepare(None)?.enter()?;
                system_folders::in_container_image()?;
            }
            None => root::keep_own(&scratch, &binds)?,
        }
        let watched = Watched { stream: input, keeper: beats, last_beat: None, pause: self.time / BEATS };
        agent::serve(watched, output, Ending::Exit, None)
    }

    /// Waits until the agent has ended. Kills it when nothing was sent to it for the time of the lease.
    fn watch(&self, child: libc::pid_t, mut beats: &File) {
        let mut last = Instant::now();
        loop {
            let left = self.time.saturating_sub(last.elapsed());
            if left.is_zero() {
                complain(&Failure::new(format!("nothing was heard of the controller for {:?}", self.time)));
                break;
            }
            let mut entry = [sys::poll_entry(beats.as_raw_fd(), libc::POLLIN)];
            let milliseconds = left.as_millis().min(i32::MAX as u128 - 1) as i32 + 1;
            if sys::poll(&mut entry, Some(milliseconds)).is_err() {
                break;
            }
            if entry[0].revents & libc::POLLIN != 0 {
                if beats.read(&mut [0; 64]).is_err() {
                    break;
                }
                last = Instant::now();
            } else if entry[0].revents != 0 {
                break;
            }
        }
        let _ = sys::kill(child, libc::SIGKILL);
        let _ = sys::wait_for(child);
    }

    /// Undoes and removes everything. Returns whether all of that worked.
    fn put_back(&self) -> bool {
        let failures = leased_host::put_back(&self.path());
        failures.iter().for_each(complain);
        failures.is_empty()
    }
}

/// The control stream. Each read from it is a sign of life for the keeper.
struct Watched {
    stream: File,
    keeper: File,
    last_beat: Option<Instant>,
    pause: Duration,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.stream.read(buffer)?;
        if length > 0 && self.last_beat.is_none_or(|beat| beat.elapsed() >= self.pause) {
            self.keeper.write_all(&[1])?;
            self.last_beat = Some(Instant::now());
        }
        Ok(length)
    }
}
