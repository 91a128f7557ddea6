//! EXEC: starts a program, passes its streams, and says how it ended.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libc::pid_t;

use crate::command;
use crate::failure::{Failure, Outcome, Tried};
use crate::frame::{Buffer, Kind};
use crate::program::Program;
use crate::reap::Ended;
use crate::request::{Exec, Exit, Started};
use crate::session::{in_thread, Session};
use crate::{held, sys};

const CHUNK_BYTES: usize = 256 * 1024;
/// How long to wait, after a program's end, for silent streams that its descendants hold open.
const GRACE: Duration = Duration::from_millis(100);

/// Answers one EXEC, from start to EXIT.
pub fn run(session: &Session, channel: u32, request: &Exec, program: &Arc<Program>) {
    match start(session, channel, request, program) {
        Ok((streams, ended)) => pump(session, channel, program, streams, &ended),
        Err(failure) => session.finish(channel, Err::<(Kind, Exit), _>(failure)),
    }
}

fn start(
    session: &Session,
    channel: u32,
    request: &Exec,
    program: &Arc<Program>,
) -> Outcome<(Vec<Stream>, Arc<Ended>)> {
    let mut command = command::build(request)?;
    let (stdout, stderr) = files(request)?;
    command.stdout(stdout.map_or_else(Stdio::piped, Stdio::from));
    command.stderr(stderr.map_or_else(Stdio::piped, Stdio::from));
    command.stdin(if request.stdin { Stdio::piped() } else { Stdio::null() });
    let (mut child, ended) = session.children.spawn(&mut command).map_err(|error| command::failure(request, &error))?;
    let pid = child.id() as pid_t;
    if request.held {
        held::await_stop(pid).tried(|| "hold a program")?;
        let event = sys::event().tried(|| "make an event")?;
        program.moment.get_or_init(|| event);
    }
    session.send(channel, Kind::Started, &Started { pid: child.id() });
    if let Err(failure) = program.running(&session.children, pid) {
        session.fail(0, &failure);
    }
    if let Some(moment) = program.moment.get() {
        held::let_go(pid, moment, &ended).tried(|| "wait for a program's release")?;
    }
    let streams = [
        child.stdout.take().map(|s| (OwnedFd::from(s), Kind::Stdout)),
        child.stderr.take().map(|s| (OwnedFd::from(s), Kind::Stderr)),
    ];
    let streams = streams.into_iter().flatten().map(Stream::new).collect();
    if let Some(mut stdin) = child.stdin.take() {
        let feeding = Arc::clone(program);
        in_thread(move || {
            while let Some(bytes) = feeding.stdin.take() {
                if stdin.write_all(&bytes).is_err() {
                    break;
                }
            }
            feeding.stdin.abandon();
        })?;
    } else {
        program.stdin.abandon();
    }
    Ok((streams, ended))
}

/// Opens the files that take the output. Both streams may go to one file, in the order written.
fn files(request: &Exec) -> Outcome<(Option<File>, Option<File>)> {
    let open = |path: &String| File::create(path).tried(|| format!("create {path}"));
    let stdout = request.stdout.as_ref().map(open).transpose()?;
    let stderr = match (&request.stderr, &stdout) {
        (Some(path), Some(file)) if request.stdout.as_ref() == Some(path) => {
            Some(file.try_clone().tried(|| format!("share {path}"))?)
        }
        (path, _) => path.as_ref().map(open).transpose()?,
    };
    Ok((stdout, stderr))
}

struct Stream {
    pipe: Option<File>,
    kind: Kind,
    /// Bytes that were in the pipe when the program ended. They may be its own, so they are waited for.
    owed: usize,
}

impl Stream {
    fn new((pipe, kind): (OwnedFd, Kind)) -> Self {
        // A wider pipe lets a capture run on while the control stream is busy. It is not vital.
        // SAFETY: no memory is involved.
        unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, CHUNK_BYTES) };
        Stream { pipe: Some(File::from(pipe)), kind, owed: 0 }
    }

    fn fd(&self) -> RawFd {
        // poll passes over negative descriptors.
        self.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    fn note_owed(&mut self) {
        let mut waiting: libc::c_int = 0;
        if let Some(pipe) = &self.pipe {
            // SAFETY: FIONREAD writes one int.
            unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut waiting) };
        }
        self.owed = waiting.max(0) as usize;
    }

    /// Reads what is there; at the end of the stream closes it.
    fn read(&mut self, into: &mut [u8]) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        match pipe.read(into) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                self.owed = self.owed.saturating_sub(length);
                return length;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
        0
    }
}

fn pump(session: &Session, channel: u32, program: &Program, mut streams: Vec<Stream>, ended: &Ended) {
    let mut buffer = Buffer::new(CHUNK_BYTES);
    let mut exit: Option<(Exit, Instant)> = None;
    loop {
        let open = streams.iter().any(|s| s.pipe.is_some());
        if let Some((_, deadline)) = &exit {
            let owed = streams.iter().any(|s| s.pipe.is_some() && s.owed > 0);
            if !open || (!owed && Instant::now() >= *deadline) {
                break;
            }
        }
        let mut entries: Vec<_> = streams.iter().map(|s| sys::poll_entry(s.fd(), libc::POLLIN)).collect();
        let event = exit.as_ref().map_or(ended.event.as_raw_fd(), |_| -1);
        entries.push(sys::poll_entry(event, libc::POLLIN));
        let limit = exit.as_ref().map(|(_, deadline)| {
            let left = deadline.saturating_duration_since(Instant::now());
            left.as_millis() as i32 + 1
        });
        if let Err(error) = sys::poll(&mut entries, limit) {
            let failure = Failure::because("wait for a program's output", &error);
            return session.finish(channel, Err::<(Kind, Exit), _>(failure));
        }
        for (stream, entry) in streams.iter_mut().zip(&entries) {
            if entry.revents != 0 {
                let length = stream.read(buffer.payload());
                if length > 0 {
                    session.send_buffer(channel, stream.kind, &mut buffer, length);
                }
            }
        }
        if exit.is_none() {
            if let Some(end) = ended.take() {
                program.stdin.abandon();
                streams.iter_mut().for_each(Stream::note_owed);
                exit = Some((end, Instant::now() + GRACE));
            }
        }
    }
    if let Some((exit, _)) = exit {
        session.finish(channel, Ok((Kind::Exit, exit)));
    }
    discard(streams, &mut buffer);
}

/// Goes on reading what descendants still write: closing the pipes would kill them with SIGPIPE.
fn discard(mut streams: Vec<Stream>, buffer: &mut Buffer) {
    while streams.iter().any(|s| s.pipe.is_some()) {
        let mut entries: Vec<_> = streams.iter().map(|s| sys::poll_entry(s.fd(), libc::POLLIN)).collect();
        if sys::poll(&mut entries, None).is_err() {
            return;
        }
        for (stream, entry) in streams.iter_mut().zip(&entries) {
            if entry.revents != 0 {
                stream.read(buffer.payload());
            }
        }
    }
}
