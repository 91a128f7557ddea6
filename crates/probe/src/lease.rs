//! `lease`: a host that is not ours, used for a while. An agent on it, and a keeper that puts everything back.
//!
//! The keeper outlives the agent, whatever ends it: the control stream's end, a controller of which nothing is heard for
//! longer than the lease, a signal. It then undoes what the controller entered into the lease's `undo` folder before it
//! changed anything (see `undo`), removes the lease's folder and ends. A keeper that was killed leaves its folder behind:
//! whoever holds the host next, or `lease --sweep`, undoes that first. One lock holds a host for one lease at a time.
//!
//! The folder: `lock`; `leases/ID/` with `about.json`, `undo/`, `artifacts/` and `root/`, the agent's writable layer;
//! `not-undone.log`, a line for whatever could not be put back.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::agent;
use crate::arguments::{number, Arguments};
use crate::failure::{complain, Failure, Outcome, Tried};
use crate::root::{self, Bind, Root, DEVICES};
use crate::session::Ending;
use crate::sys::{self, Forked};
use crate::{mounts, undo};

const LOCK_POLL: Duration = Duration::from_millis(20);
/// The agent tells the keeper that it was spoken to, at most this many times in the time of the lease.
const BEATS: u32 = 16;
/// The exit code when something could not be put back.
const NOT_UNDONE: i32 = 4;

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

/// What the next one needs to know of a lease whose keeper is gone.
#[derive(Serialize, Deserialize)]
struct About {
    boot: String,
    root: Option<String>,
    began_s: f64,
    from: Option<String>,
}

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let folder = PathBuf::from(arguments.required("--folder")?);
    if arguments.flag("--sweep") {
        let only_list = arguments.flag("--list");
        arguments.finish()?;
        return sweep(&folder, only_list);
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
    let lock = match held(&lease.folder, lease.wait) {
        Ok(lock) => lock,
        Err(failure) => refuse(failure),
    };
    for failure in undo_all(&of(&lease.folder.join("leases"))) {
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
            let told = output.try_clone();
            let Err(failure) = lease.inside(input, output, &lifeline, beats);
            if let Ok(told) = told {
                agent::report(told, &failure);
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
        self.folder.join("leases").join(&self.id)
    }

    fn within(&self, name: &str) -> String {
        self.path().join(name).to_string_lossy().into_owned()
    }

    fn prepare(&self) -> Outcome<()> {
        let about =
            About { boot: boot_id()?, root: self.root.clone(), began_s: sys::realtime_s(), from: self.from.clone() };
        let path = self.path();
        for folder in [path.clone(), path.join("undo"), path.join("artifacts")] {
            fs::create_dir_all(&folder).tried(|| format!("create folder {}", folder.display()))?;
        }
        let text = serde_json::to_string(&about).map_err(io::Error::from).tried(|| "describe the lease")?;
        fs::write(path.join("about.json"), text).tried(|| format!("write {}", path.join("about.json").display()))
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
        let bind = |source: String, target: &str, read_only| Bind { source, target: target.to_owned(), read_only };
        let binds = [
            bind(self.within("artifacts"), ARTIFACTS, false),
            bind(self.within("undo"), UNDO, false),
            bind(self.programs.clone(), PROGRAMS, true),
        ];
        let scratch = self.within("root");
        match &self.root {
            Some(lower) => {
                let devices = [&DEVICES[..], &["kmsg"]].concat();
                Root { lower, scratch: &scratch, devices: &devices, binds: &binds }.enter()?;
            }
            None => root::keep_own(&scratch, &binds)?,
        }
        let heard = Heard { stream: input, keeper: beats, told: None, pause: self.time / BEATS };
        agent::serve(heard, output, Ending::Exit)
    }

    /// Until the agent has ended. It is killed when it has not been spoken to for the time of the lease.
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

    /// Undoes and removes everything; whether all of that worked.
    fn put_back(&self) -> bool {
        let failures = put_back(&self.path());
        failures.iter().for_each(complain);
        failures.is_empty()
    }
}

/// The control stream; what is read from it is told to the keeper as a sign of life.
struct Heard {
    stream: File,
    keeper: File,
    told: Option<Instant>,
    pause: Duration,
}

impl Read for Heard {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.stream.read(buffer)?;
        if length > 0 && self.told.is_none_or(|told| told.elapsed() >= self.pause) {
            self.keeper.write_all(&[1])?;
            self.told = Some(Instant::now());
        }
        Ok(length)
    }
}

fn boot_id() -> Outcome<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    Ok(fs::read_to_string(path).tried(|| format!("read {path}"))?.trim().to_owned())
}

/// The lock of the host, waited for as long as another lease may take to end.
fn held(folder: &Path, wait: Duration) -> Outcome<File> {
    let leases = folder.join("leases");
    fs::create_dir_all(&leases).tried(|| format!("create folder {}", leases.display()))?;
    let path = folder.join("lock");
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .tried(|| format!("open {}", path.display()))?;
    let start = Instant::now();
    loop {
        // SAFETY: no memory is involved.
        match sys::check(unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
            Ok(_) => return Ok(lock),
            Err(error) if error.raw_os_error() != Some(libc::EWOULDBLOCK) => {
                return Err(Failure::because(format!("lock {}", path.display()), &error));
            }
            Err(_) if start.elapsed() > wait => {
                return Err(Failure::new(format!("this host is leased{}", by(&leases))))
            }
            Err(_) => thread::sleep(LOCK_POLL),
        }
    }
}

/// Who leases the host, as far as that is known.
fn by(leases: &Path) -> String {
    let about = of(leases).into_iter().find_map(|path| about(&path));
    about.and_then(|about| about.from).map_or_else(String::new, |from| format!(" by a controller at {from}"))
}

fn of(leases: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(leases).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    entries.unwrap_or_default()
}

fn about(lease: &Path) -> Option<About> {
    serde_json::from_slice(&fs::read(lease.join("about.json")).ok()?).ok()
}

/// Undoes leases. Only for the holder of the lock, so that none of them has a keeper.
fn undo_all(leases: &[PathBuf]) -> Vec<Failure> {
    leases.iter().flat_map(|path| put_back(path)).collect()
}

/// Undoes what dead leases left, or only says which there are.
fn sweep(folder: &Path, only_list: bool) -> Outcome<()> {
    if !folder.join("leases").exists() {
        return Ok(());
    }
    let _lock = held(folder, Duration::ZERO)?;
    let dead = of(&folder.join("leases"));
    for path in &dead {
        writeln!(io::stdout(), "{}", path.display()).tried(|| "write to standard output")?;
    }
    if only_list {
        return Ok(());
    }
    let failures = undo_all(&dead);
    failures.iter().for_each(complain);
    sys::exit_now(if failures.is_empty() { 0 } else { NOT_UNDONE })
}

/// Undoes one lease and removes its folder. A host that was started anew since has nothing left to undo.
fn put_back(lease: &Path) -> Vec<Failure> {
    let about = about(lease);
    let same_boot = about.as_ref().is_some_and(|about| boot_id().is_ok_and(|boot| boot == about.boot));
    let mut failures = match about {
        Some(about) if same_boot => undo::run(&lease.join("undo"), about.root.as_deref()),
        _ => Vec::new(),
    };
    log(lease, &failures);
    if let Err(failure) = mounts::remove_tree(lease).tried(|| format!("remove {}", lease.display())) {
        failures.push(failure);
    }
    failures
}

/// What could not be put back stays on record on the host; where that cannot be written there is nothing more to be done.
fn log(lease: &Path, failures: &[Failure]) {
    let Some(folder) = lease.parent().and_then(Path::parent) else {
        return;
    };
    if failures.is_empty() {
        return;
    }
    if let Ok(mut log) = File::options().create(true).append(true).open(folder.join("not-undone.log")) {
        for failure in failures {
            let _ = writeln!(log, "{:.3} {}: {failure}", sys::realtime_s(), lease.display());
        }
    }
}
