//! Serves the protocol on one control stream: reads requests, and gives each channel its thread.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde::Serialize;

use crate::arguments::{number, Arguments};
use crate::exec::{self, Program};
use crate::failure::{Failure, Outcome, Tried};
use crate::files;
use crate::frame::{read_frame, Broken, Buffer, Frame, Kind, Output};
use crate::inbox::Inbox;
use crate::reap::{kill_descendants, Children};
use crate::request::{self, Clocks, Hello, Nothing};
use crate::{listening, port, sys};

/// The thread of a channel keeps its data on the heap.
const STACK_BYTES: usize = 128 * 1024;
const WRITE_INBOX_BYTES: usize = 8 << 20;

/// What the end of the control stream means here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// End this process and everything below it.
    Exit,
    /// This is a guest's PID 1: stop the machine.
    PowerOff,
}

/// A channel that the controller may still send to.
enum Channel {
    Program(Arc<Program>),
    Write(Arc<Inbox>),
    Other,
}

pub struct Session {
    output: Output,
    ending: Ending,
    ended: Mutex<()>,
    channels: Mutex<HashMap<u32, Channel>>,
    pub children: Children,
}

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let fd = arguments.value("--fd")?;
    let path = arguments.value("--connect")?;
    let name = arguments.value("--port")?;
    let stdio = arguments.flag("--stdio");
    arguments.finish()?;
    let (input, output) = match (fd, path, name, stdio) {
        (Some(fd), None, None, false) => both(adopt(&fd)?)?,
        (None, Some(path), None, false) => both(connect(&path)?)?,
        (None, None, Some(name), false) => both(port::open(&name)?)?,
        (None, None, None, true) => (
            sys::take_standard(0).tried(|| "take standard input")?,
            sys::take_standard(1).tried(|| "take standard output")?,
        ),
        _ => return Err(Failure::new("agent takes exactly one of --fd N, --connect PATH, --port NAME, --stdio")),
    };
    let Err(failure) = serve(input, output, Ending::Exit);
    Err(failure)
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

/// Tells the controller, if it still listens, why there will be no agent.
pub fn report(stream: File, failure: &Failure) {
    let _ = Output::new(stream).send_json(0, Kind::Error, failure);
}

/// Serves on a stream that goes both ways.
pub fn serve_both(stream: File, ending: Ending) -> Outcome<Infallible> {
    let (input, output) = both(stream)?;
    serve(input, output, ending)
}

pub fn serve(input: impl Read, output: File, ending: Ending) -> Outcome<Infallible> {
    let session = Arc::new(Session {
        output: Output::new(output),
        ending,
        ended: Mutex::default(),
        channels: Mutex::default(),
        children: Children::default(),
    });
    if process::id() != 1 {
        sys::become_subreaper().tried(|| "become the reaper of orphans")?;
    }
    let reaping = Arc::clone(&session);
    in_thread(move || reaping.children.reap_forever())?;
    session.send(0, Kind::Hello, &hello());
    let mut input = BufReader::with_capacity(64 * 1024, input);
    loop {
        match read_frame(&mut input) {
            Ok(frame) => session.handle(frame),
            Err(Broken::Stream) => session.end(0),
            Err(Broken::Protocol(why)) => {
                session.fail(0, &Failure::new(why));
                session.end(1)
            }
        }
    }
}

fn hello() -> Hello {
    let (hostname, kernel) = sys::identity();
    Hello {
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

impl Session {
    pub fn send(&self, channel: u32, kind: Kind, body: &impl Serialize) {
        if self.output.send_json(channel, kind, body).is_err() {
            self.end(1);
        }
    }

    pub fn send_buffer(&self, channel: u32, kind: Kind, buffer: &mut Buffer, length: usize) {
        if self.output.send_buffer(channel, kind, buffer, length).is_err() {
            self.end(1);
        }
    }

    pub fn fail(&self, channel: u32, failure: &Failure) {
        self.send(channel, Kind::Error, failure);
    }

    /// Forgets the channel, then sends its last frame: the controller may use the number again.
    pub fn finish(&self, channel: u32, answer: Outcome<(Kind, impl Serialize)>) {
        self.channels().remove(&channel);
        match answer {
            Ok((kind, body)) => self.send(channel, kind, &body),
            Err(failure) => self.fail(channel, &failure),
        }
    }

    /// Ends this process, and so everything that was started through it.
    fn end(&self, code: i32) -> ! {
        // Threads whose writes fail meanwhile come here too; only the first says how it ended.
        let _first = self.ended.lock();
        if self.ending == Ending::PowerOff {
            sys::power_off();
        }
        if process::id() != 1 {
            kill_descendants();
        }
        sys::exit_now(code)
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<u32, Channel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(self: &Arc<Self>, frame: Frame) {
        match frame.kind {
            Kind::Stdin => self.to_stdin(frame),
            Kind::Data => self.to_write(frame.channel, |inbox| inbox.push(frame.payload)),
            Kind::End => self.to_write(frame.channel, |inbox| inbox.close()),
            Kind::Signal => self.signal(&frame),
            Kind::Ping => self.send(frame.channel, Kind::End, &clocks()),
            Kind::PowerOff => {
                // SAFETY: always safe.
                unsafe { libc::sync() };
                self.send(frame.channel, Kind::End, &Nothing {});
                self.end(0)
            }
            _ => {
                let channel = frame.channel;
                if let Err(failure) = self.open(frame) {
                    self.finish(channel, Err::<(Kind, Nothing), _>(failure));
                }
            }
        }
    }

    /// A frame that opens a channel: read the request, then let a thread of its own answer it.
    fn open(self: &Arc<Self>, frame: Frame) -> Outcome<()> {
        let Frame { channel, kind, payload } = frame;
        if self.channels().contains_key(&channel) {
            self.fail(0, &Failure::new(format!("channel {channel} is in use")));
            return Ok(());
        }
        let session = Arc::clone(self);
        match kind {
            Kind::Exec => {
                let request: request::Exec = request::parse("EXEC", &payload)?;
                let program = Arc::new(Program::default());
                self.begin(channel, Channel::Program(Arc::clone(&program)), move || {
                    exec::run(&session, channel, &request, &program)
                })
            }
            Kind::Write => {
                let request: request::Write = request::parse("WRITE", &payload)?;
                let inbox = Arc::new(Inbox::new(WRITE_INBOX_BYTES));
                self.begin(channel, Channel::Write(Arc::clone(&inbox)), move || {
                    let written = files::write(&request, &inbox);
                    inbox.abandon();
                    session.finish(channel, written.map(|body| (Kind::End, body)))
                })
            }
            Kind::Read => {
                let request: request::Path = request::parse("READ", &payload)?;
                self.begin(channel, Channel::Other, move || {
                    let sent = files::read(&session, channel, &request.path);
                    session.finish(channel, sent.map(|body| (Kind::End, body)))
                })
            }
            Kind::List => {
                let request: request::Path = request::parse("LIST", &payload)?;
                self.begin(channel, Channel::Other, move || {
                    let listing = files::list(&request.path);
                    session.finish(channel, listing.map(|body| (Kind::End, body)))
                })
            }
            Kind::Listening => {
                let request: request::Listening = request::parse("LISTENING", &payload)?;
                self.begin(channel, Channel::Other, move || {
                    let waited = listening::wait(&request);
                    session.finish(channel, waited.map(|body| (Kind::End, body)))
                })
            }
            _ => Err(Failure::new(format!("{kind:?} is not a request"))),
        }
    }

    fn begin(&self, channel: u32, entry: Channel, work: impl FnOnce() + Send + 'static) -> Outcome<()> {
        self.channels().insert(channel, entry);
        in_thread(work)
    }

    /// What is sent to a channel that has ended was on its way when it did: dropped.
    fn to_stdin(&self, frame: Frame) {
        let program = match self.channels().get(&frame.channel) {
            Some(Channel::Program(program)) => Arc::clone(program),
            _ => return,
        };
        if frame.payload.is_empty() {
            program.stdin.close();
        } else {
            program.stdin.push(frame.payload);
        }
    }

    fn to_write(&self, channel: u32, act: impl FnOnce(&Inbox)) {
        let inbox = match self.channels().get(&channel) {
            Some(Channel::Write(inbox)) => Arc::clone(inbox),
            _ => return,
        };
        act(&inbox);
    }

    fn signal(&self, frame: &Frame) {
        let program = match self.channels().get(&frame.channel) {
            Some(Channel::Program(program)) => Arc::clone(program),
            _ => return,
        };
        let sent = request::parse("SIGNAL", &frame.payload).and_then(|request| program.signal(&self.children, request));
        if let Err(failure) = sent {
            self.fail(0, &failure);
        }
    }
}

fn clocks() -> Clocks {
    Clocks { monotonic_s: sys::monotonic_s(), realtime_s: sys::realtime_s() }
}

pub fn in_thread(work: impl FnOnce() + Send + 'static) -> Outcome<()> {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(work).map(drop).tried(|| "start a thread")
}
