//! Safe names for the few system calls that std has none for.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use libc::c_int;

pub const NS_PER_S: i64 = 1_000_000_000;
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A path or name for the kernel; one with a NUL inside cannot exist.
pub fn c_string(text: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn clock_s(clock: libc::clockid_t) -> f64 {
    let (seconds, nanoseconds) = clock_parts(clock);
    seconds as f64 + nanoseconds as f64 / 1e9
}

/// Whole seconds and nanoseconds.
pub fn clock_parts(clock: libc::clockid_t) -> (i64, i64) {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec; reading these clocks cannot fail.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec, now.tv_nsec)
}

pub fn clock_ns(clock: libc::clockid_t) -> i64 {
    let (seconds, nanoseconds) = clock_parts(clock);
    seconds * NS_PER_S + nanoseconds
}

pub fn monotonic_ns() -> i64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

pub fn monotonic_s() -> f64 {
    clock_s(libc::CLOCK_MONOTONIC)
}

/// The kernel's boot id: hosts that have the same share a kernel.
pub fn boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string(BOOT_ID)?.trim().to_owned())
}

/// A moment on the monotonic clock. A moment before its beginning becomes its beginning.
pub fn monotonic_time(seconds: f64) -> libc::timespec {
    let seconds = seconds.clamp(0.0, i32::MAX.into());
    libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: (seconds.fract() * 1e9) as libc::c_long }
}

/// A signal does not cut it short.
pub fn sleep_until(time: &libc::timespec) {
    // SAFETY: the time outlives the call, and nothing is written.
    unsafe {
        while libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, time, std::ptr::null_mut())
            == libc::EINTR
        {}
    }
}

pub fn realtime_s() -> f64 {
    clock_s(libc::CLOCK_REALTIME)
}

pub fn set_realtime(seconds: f64) -> io::Result<()> {
    let time = libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: (seconds.fract() * 1e9) as libc::c_long };
    // SAFETY: the time outlives the call.
    check(unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &time) }).map(drop)
}

pub fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

pub enum Forked {
    Parent(libc::pid_t),
    Child,
}

/// Only for a process that has one thread: the child may then do anything.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: callers have not started a thread yet.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// Forks the first process of a new PID namespace; children that come after it are in the old one again.
pub fn fork_as_pid_1() -> io::Result<Forked> {
    let own = File::open("/proc/self/ns/pid")?;
    unshare(libc::CLONE_NEWPID)?;
    let forked = fork()?;
    if let Forked::Parent(child) = forked {
        // SAFETY: no memory is involved.
        if let Err(error) = check(unsafe { libc::setns(own.as_raw_fd(), libc::CLONE_NEWPID) }) {
            kill(child, libc::SIGKILL)?;
            return Err(error);
        }
    }
    Ok(forked)
}

/// Waits for a child of this single-threaded process; gives its code, or 128 + signal.
pub fn wait_for(pid: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid for writing.
        match check(unsafe { libc::waitpid(pid, &mut status, 0) }) {
            Ok(_) if libc::WIFEXITED(status) => return Ok(libc::WEXITSTATUS(status)),
            Ok(_) => return Ok(128 + libc::WTERMSIG(status)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A pipe, close-on-exec: (read end, write end).
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors, which are then ours alone.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

pub fn event() -> io::Result<File> {
    // SAFETY: the new descriptor is ours alone.
    unsafe { Ok(File::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC))?)) }
}

/// Waits for any of the descriptors; `None` waits for ever. An interruption counts as nothing ready.
pub fn poll(descriptors: &mut [libc::pollfd], limit_ms: Option<c_int>) -> io::Result<usize> {
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: pointer and length are of one slice.
    match check(unsafe { libc::poll(descriptors.as_mut_ptr(), count, limit_ms.unwrap_or(-1)) }) {
        Ok(ready) => Ok(ready as usize),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            descriptors.iter_mut().for_each(|d| d.revents = 0);
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

pub fn poll_entry(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// Takes over an inherited descriptor: blocking, and not passed on to programs.
pub fn adopt(fd: RawFd) -> io::Result<File> {
    // SAFETY: F_GETFD fails on a number that is not open, so what is adopted exists;
    // it was given to us by number to be ours.
    unsafe {
        check(libc::fcntl(fd, libc::F_GETFD))?;
        check(libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC))?;
        let flags = check(libc::fcntl(fd, libc::F_GETFL))?;
        check(libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK))?;
        Ok(File::from_raw_fd(fd))
    }
}

/// Takes the stream from descriptor `fd` and leaves /dev/null there, so that nothing printed by mistake gets between the
/// frames.
pub fn take_standard(fd: RawFd) -> io::Result<File> {
    // SAFETY: plain descriptor calls; the duplicate is ours alone.
    let taken = unsafe { OwnedFd::from_raw_fd(check(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3))?) };
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: both descriptors are open.
    check(unsafe { libc::dup2(null.as_raw_fd(), fd) })?;
    adopt(taken.into_raw_fd())
}

pub fn set_hostname(name: &str) -> io::Result<()> {
    // SAFETY: pointer and length are of one string.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Host name and kernel release.
pub fn identity() -> (String, String) {
    // SAFETY: utsname is plain arrays, which uname fills with NUL-terminated text.
    unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&mut names);
        let text = |field: &[libc::c_char]| CStr::from_ptr(field.as_ptr()).to_string_lossy().into_owned();
        (text(&names.nodename), text(&names.release))
    }
}

pub fn bring_up(device: &str) -> io::Result<()> {
    // SAFETY: the request is a zeroed ifreq, whose name keeps a NUL at its end.
    unsafe {
        let socket =
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request))?;
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request)).map(drop)
    }
}

/// Has the kernel kill this process when its parent dies. `lifeline` is the read end of a pipe whose write end only the parent
/// has: it shows whether the parent died before the request. (The parent's id does not show it: from inside a new PID namespace
/// it is always 0.)
pub fn die_with_parent(lifeline: &OwnedFd) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    let mut entry = [poll_entry(lifeline.as_raw_fd(), 0)];
    poll(&mut entry, Some(0))?;
    if entry[0].revents & libc::POLLHUP != 0 {
        return Err(io::Error::from_raw_os_error(libc::EOWNERDEAD));
    }
    Ok(())
}

/// Makes orphans among our descendants our children, as they would become PID 1's.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }).map(drop)
}

pub fn set_signal(signal: c_int, handler: libc::sighandler_t) {
    // SAFETY: only called with SIG_IGN and SIG_DFL.
    unsafe { libc::signal(signal, handler) };
}

/// Lets this process, and what it starts, use `run_first` without the machine's root; or never again. Not vital either: to allow
/// it takes CAP_SYS_RESOURCE, which root may lack.
pub fn allow_run_first(allow: bool) {
    let limit = libc::rlimit { rlim_cur: allow.into(), rlim_max: allow.into() };
    // SAFETY: the struct outlives the call.
    unsafe { libc::setrlimit(libc::RLIMIT_RTPRIO, &limit) };
}

/// Has the calling thread run before all others that are not of real time, or no longer. Not vital: it may be refused.
pub fn run_first(first: bool) {
    let (policy, priority) = if first { (libc::SCHED_FIFO, 1) } else { (libc::SCHED_OTHER, 0) };
    // SAFETY: sched_param is plain numbers, and the pointer is valid during the call.
    unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        libc::sched_setscheduler(0, policy, &parameters);
    }
}

/// Has the calling thread woken when it asked to be, not up to 50 us later with others.
pub fn wake_exactly() {
    // SAFETY: no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Waits for a state of one child, by the flags of waitid(2).
pub fn wait_id(pid: libc::pid_t, flags: c_int) -> io::Result<()> {
    loop {
        // SAFETY: siginfo_t is plain data which waitid fills.
        let result = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            check(libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags))
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(drop),
        }
    }
}

pub fn kill(pid: libc::pid_t, signal: c_int) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Ends the process at once, without running anything that could wait.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: always safe.
    unsafe { libc::_exit(code) }
}

pub fn power_off() -> ! {
    // SAFETY: the kernel of a guest is ours to stop.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    exit_now(1)
}
