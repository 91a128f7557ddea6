//! Serves the protocol on one control stream: reads requests, and gives each channel its thread.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::Arc;

use crate::arguments::{number, Arguments};
use crate::exec;
use crate::failure::{Failure, Outcome, Tried};
use crate::files;
use crate::frame::{read_frame, Broken, Frame, Kind, Output};
use crate::inbox::Inbox;
use crate::program::Program;
use crate::request::{self, Clocks, Hello, Nothing};
use crate::session::{in_thread, Channel, Ending, Session};
use crate::sys::Forked;
use crate::{listening, loopback, nic, port, reach, resumed, sys, usage};

const WRITE_INBOX_BYTES: usize = 8 << 20;

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let fd = arguments.value("--fd")?;
    let path = arguments.value("--connect")?;
    let name = arguments.value("--port")?;
    let loopback = arguments.value("--loopback")?;
    let mut key = arguments.value("--key")?;
    let stdio = arguments.flag("--stdio");
    let mut detached = arguments.flag("--detached");
    arguments.finish()?;
    let (input, output) = match (fd, path, name, loopback, stdio) {
        (Some(fd), None, None, None, false) => both(adopt(&fd)?)?,
        (None, Some(path), None, None, false) => both(connect(&path)?)?,
        (None, None, Some(name), None, false) => {
            let port = port::found(&name)?;
            if std::mem::take(&mut detached) {
                detach()?;
            }
            both(port::await_host(port)?)?
        }
        (None, None, None, Some(port), false) => {
            // Here the controller shows the key: anybody may connect to the port.
            let key = key.take().ok_or_else(|| Failure::new("--loopback needs --key KEY"))?;
            let listener = loopback::listen(number("--loopback", &port)?)?;
            if std::mem::take(&mut detached) {
                detach()?;
            }
            both(loopback::accept(&listener, key.as_bytes())?)?
        }
        (None, None, None, None, true) => (
            sys::take_standard(0).tried(|| "take standard input")?,
            sys::take_standard(1).tried(|| "take standard output")?,
        ),
        _ => {
            return Err(Failure::new(
                "agent takes exactly one of --fd N, --connect PATH, --port NAME, --loopback PORT, --stdio",
            ))
        }
    };
    if detached {
        detach()?;
    }
    let Err(failure) = serve(input, output, Ending::Exit, key);
    Err(failure)
}

/// Goes on in a session of its own, without the standard streams, when it has said its version: who started it waits for no
/// more.
fn detach() -> Outcome<()> {
    writeln!(io::stdout(), "{}", env!("CARGO_PKG_VERSION")).tried(|| "write to standard output")?;
    if let Forked::Parent(_) = sys::fork().tried(|| "fork")? {
        sys::exit_now(0);
    }
    // SAFETY: no memory is involved.
    unsafe { libc::setsid() };
    for fd in 0..3 {
        sys::take_standard(fd).tried(|| "leave the standard streams")?;
    }
    Ok(())
}

pub fn adopt(fd: &str) -> Outcome<File> {
    sys::adopt(number("--fd", fd)?).tried(|| format!("use descriptor {fd} as control stream"))
}

pub fn connect(path: &str) -> Outcome<File> {
    let stream = UnixStream::connect(path).tried(|| format!("connect to {path}"))?;
    Ok(File::from(OwnedFd::from(stream)))
}

fn both(stream: File) -> Outcome<(File, File)> {
    let twin = stream.try_clone().tried(|| "duplicate the control stream")?;
    Ok((stream, twin))
}

/// Reports to the controller, if it still listens, why there will be no agent.
pub fn report(stream: File, failure: &Failure) {
    let _ = Output::new(stream).send_json(0, Kind::Error, failure);
}

/// Serves on a stream that goes both ways.
pub fn serve_both(stream: File, ending: Ending, key: Option<String>) -> Outcome<Infallible> {
    let (input, output) = both(stream)?;
    serve(input, output, ending, key)
}

/// `key` is what the greeting says, so that nobody else is taken for this agent.
pub fn serve(input: impl Read, output: File, ending: Ending, key: Option<String>) -> Outcome<Infallible> {
    let session = Arc::new(Session::new(output, ending));
    if process::id() != 1 {
        sys::become_subreaper().tried(|| "become the reaper of orphans")?;
    }
    let reaping = Arc::clone(&session);
    in_thread(move || reaping.children.reap_forever())?;
    session.send(0, Kind::Hello, &hello(key));
    let mut input = BufReader::with_capacity(64 * 1024, input);
    loop {
        match read_frame(&mut input) {
            Ok(frame) => handle(&session, frame),
            Err(Broken::Stream) => session.end(0),
            Err(Broken::Protocol(why)) => {
                session.fail(0, &Failure::new(why));
                session.end(1)
            }
        }
    }
}

fn hello(key: Option<String>) -> Hello {
    let (hostname, kernel) = sys::identity();
    Hello {
        key,
        version: env!("CARGO_PKG_VERSION"),
        pid: process::id(),
        hostname,
        kernel,
        // SAFETY: cannot fail.
        uid: unsafe { libc::getuid() },
        netns: std::fs::metadata("/proc/self/ns/net").ok().map(|m| m.ino()),
        monotonic_s: sys::monotonic_s(),
        realtime_s: sys::realtime_s(),
    }
}

fn handle(session: &Arc<Session>, frame: Frame) {
    match frame.kind {
        Kind::Stdin => session.to_stdin(frame),
        Kind::Data => session.to_write(frame.channel, |inbox| inbox.push(frame.payload)),
        Kind::End => session.to_write(frame.channel, |inbox| inbox.close()),
        Kind::Signal => session.signal(&frame),
        Kind::Release => session.release(&frame),
        Kind::Ping => session.send(frame.channel, Kind::End, &clocks()),
        Kind::PowerOff => {
            // SAFETY: always safe.
            unsafe { libc::sync() };
            session.send(frame.channel, Kind::End, &Nothing {});
            session.end(0)
        }
        _ => {
            let channel = frame.channel;
            if let Err(failure) = open(session, frame) {
                session.finish(channel, Err::<(Kind, Nothing), _>(failure));
            }
        }
    }
}

/// Opens a channel: reads the request, then lets a thread of its own answer it.
fn open(session: &Arc<Session>, frame: Frame) -> Outcome<()> {
    let Frame { channel, kind, payload } = frame;
    if session.has(channel) {
        session.fail(0, &Failure::new(format!("channel {channel} is in use")));
        return Ok(());
    }
    match kind {
        Kind::Exec => {
            let request: request::Exec = request::parse("EXEC", &payload)?;
            let program = Arc::new(Program::default());
            session.begin(channel, Channel::Program(Arc::clone(&program)), move |session| {
                exec::run(session, channel, &request, &program)
            })
        }
        Kind::Write => {
            let request: request::Write = request::parse("WRITE", &payload)?;
            let inbox = Arc::new(Inbox::new(WRITE_INBOX_BYTES));
            session.begin(channel, Channel::Write(Arc::clone(&inbox)), move |session| {
                let written = files::write(&request, &inbox);
                inbox.abandon();
                session.finish(channel, written.map(|body| (Kind::End, body)))
            })
        }
        Kind::Read => {
            let request: request::Path = request::parse("READ", &payload)?;
            session.begin(channel, Channel::Other, move |session| {
                let sent = files::read(session, channel, &request.path);
                session.finish(channel, sent.map(|body| (Kind::End, body)))
            })
        }
        Kind::List => {
            let request: request::Path = request::parse("LIST", &payload)?;
            session.begin(channel, Channel::Other, move |session| {
                let listing = files::list(&request.path);
                session.finish(channel, listing.map(|body| (Kind::End, body)))
            })
        }
        Kind::Listening => {
            let request: request::Listening = request::parse("LISTENING", &payload)?;
            session.begin(channel, Channel::Other, move |session| {
                let waited = listening::wait(&request);
                session.finish(channel, waited.map(|body| (Kind::End, body)))
            })
        }
        Kind::Nic => {
            let request: request::Nic = request::parse("NIC", &payload)?;
            session.begin(channel, Channel::Other, move |session| {
                let state = nic::read(&request.device);
                session.finish(channel, state.map(|body| (Kind::End, body)))
            })
        }
        Kind::Reach => {
            let request: request::Reach = request::parse("REACH", &payload)?;
            session.begin(channel, Channel::Other, move |session| {
                let answered = reach::ask(&request);
                session.finish(channel, answered.map(|body| (Kind::End, body)))
            })
        }
        Kind::Usage => {
            let request: request::UsageOf = request::parse("USAGE", &payload)?;
            session.begin(channel, Channel::Other, move |session| {
                let used = usage::answer(session.children.is_living(request.pid), request.pid);
                session.finish(channel, used.map(|body| (Kind::End, body)))
            })
        }
        // Anywhere else the clock and the random numbers are the machine's.
        Kind::Resumed if session.is_of_guest() => {
            let request: request::Resumed = request::parse("RESUMED", &payload)?;
            session.begin(channel, Channel::Other, move |session| {
                let settled = resumed::settle(&request);
                session.finish(channel, settled.map(|body| (Kind::End, body)))
            })
        }
        _ => Err(Failure::new(format!("{kind:?} is not a request"))),
    }
}

fn clocks() -> Clocks {
    Clocks { monotonic_s: sys::monotonic_s(), realtime_s: sys::realtime_s() }
}
