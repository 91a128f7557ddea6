//! One control stream: its channels, and what is sent on them.

use std::collections::HashMap;
use std::fs::File;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde::Serialize;

use crate::failure::{Failure, Outcome, Tried};
use crate::frame::{Buffer, Frame, Kind, Output};
use crate::inbox::Inbox;
use crate::program::Program;
use crate::reap::{kill_descendants, Children};
use crate::{request, sys};

/// The thread of a channel keeps its data on the heap.
const STACK_BYTES: usize = 128 * 1024;

/// What the end of the control stream means here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// End this process and everything below it.
    Exit,
    /// This is a guest's PID 1: stop the machine.
    PowerOff,
}

/// A channel that the controller may still send to.
pub enum Channel {
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

impl Session {
    pub fn new(output: File, ending: Ending) -> Self {
        Session {
            output: Output::new(output),
            ending,
            ended: Mutex::default(),
            channels: Mutex::default(),
            children: Children::default(),
        }
    }

    pub fn is_of_guest(&self) -> bool {
        self.ending == Ending::PowerOff
    }

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
    pub fn end(&self, code: i32) -> ! {
        // Threads whose writes fail meanwhile come here too. Only the first decides how the process ends.
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

    /// Whether the controller may still send to the channel.
    pub fn has(&self, channel: u32) -> bool {
        self.channels().contains_key(&channel)
    }

    /// Opens a channel, whose work has a thread of its own.
    pub fn begin(
        self: &Arc<Self>,
        channel: u32,
        entry: Channel,
        work: impl FnOnce(&Session) + Send + 'static,
    ) -> Outcome<()> {
        let session = Arc::clone(self);
        self.channels().insert(channel, entry);
        in_thread(move || work(&session))
    }

    /// Bytes for a channel that has ended were on their way when it did: they are dropped.
    pub fn to_stdin(&self, frame: Frame) {
        let Some(program) = self.program(frame.channel) else { return };
        if frame.payload.is_empty() {
            program.stdin.close();
        } else {
            program.stdin.push(frame.payload);
        }
    }

    pub fn to_write(&self, channel: u32, act: impl FnOnce(&Inbox)) {
        let inbox = match self.channels().get(&channel) {
            Some(Channel::Write(inbox)) => Arc::clone(inbox),
            _ => return,
        };
        act(&inbox);
    }

    pub fn signal(&self, frame: &Frame) {
        let Some(program) = self.program(frame.channel) else { return };
        let sent = request::parse("SIGNAL", &frame.payload).and_then(|request| program.signal(&self.children, request));
        if let Err(failure) = sent {
            self.fail(0, &failure);
        }
    }

    pub fn release(&self, frame: &Frame) {
        let Some(program) = self.program(frame.channel) else { return };
        let released = request::parse("RELEASE", &frame.payload).and_then(|request| program.release(&request));
        if let Err(failure) = released {
            self.fail(0, &failure);
        }
    }

    fn program(&self, channel: u32) -> Option<Arc<Program>> {
        match self.channels().get(&channel) {
            Some(Channel::Program(program)) => Some(Arc::clone(program)),
            _ => None,
        }
    }
}

pub fn in_thread(work: impl FnOnce() + Send + 'static) -> Outcome<()> {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(work).map(drop).tried(|| "start a thread")
}
