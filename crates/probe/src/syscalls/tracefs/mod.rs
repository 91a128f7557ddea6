//! System calls by the events of a private tracefs instance, read from trace_pipe_raw in whole passes.
//!
//! No descriptor can hold the instance, so it outlives a killed probe. The next probe that starts removes it.

mod events;
mod format;
mod instance;
mod page;
mod sinks;
mod threads;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};

use super::count_file::CountFile;
use super::follow::{Event, Follower, Kind, Sink};
use super::header::Header;
use super::options::{Command, Options};
use super::recorder::{say_ready, Recorder, TICK_NS};
use super::scope::Within;
use super::trace_file::TraceFile;
use crate::failure::{Failure, Outcome, Tried};
use crate::waiting::{now_ns, StopDescriptor};
use events::{Events, WANTED};
use instance::Instance;
use page::{Missed, PageFormat};
use sinks::{CountSink, TraceSink};

/// The reader is woken when so much of a processor's buffer is filled.
const WAKE_PERCENT: &str = "25";

pub fn attach(options: &Options) -> Outcome<Box<dyn Recorder>> {
    if !options.scope.namespace.is_first() {
        return Err(Failure::new("tracefs numbers processes as the first PID namespace does, and this is another"));
    }
    let instance = Instance::new()?;
    instance.set("trace_clock", "mono")?;
    instance.set("buffer_size_kb", &(options.buffer_bytes / 1024).to_string())?;
    instance.set("buffer_percent", WAKE_PERCENT)?;
    instance.set("events/raw_syscalls/filter", &format!("common_pid != {}", std::process::id()))?;
    if let Within::Cgroup(_) | Within::Pids(_) = &options.scope.within {
        instance.set("options/event-fork", "1")?;
        let members = threads::members(&options.scope.within)?;
        let text: String = members.iter().map(|tid| format!("{tid} ")).collect();
        instance.set("set_event_pid", &text)?;
    }
    let pages = PageFormat::new(&instance.page_format()?)?;
    let events = Events::new(&instance)?;
    // Threads are looked for before the events, since some end meanwhile, and after: from then on beginnings are events.
    let mut known = threads::known();
    for event in WANTED {
        instance.set(&format!("events/{event}/enable"), "1")?;
    }
    known.extend(threads::known());
    let skip = match options.command {
        Command::Count { skip, .. } => skip,
        Command::Trace => 0,
    };
    let follower = Follower::new(known, threads::groups(&options.scope), skip);
    let reader = Reader { instance, pages, events, held_back: Vec::new(), reported_lost: 0 };
    Ok(Box::new(Tracefs { reader, follower, out: options.out.clone(), command: options.command }))
}

struct Tracefs {
    reader: Reader,
    follower: Follower,
    out: String,
    command: Command,
}

impl Recorder for Tracefs {
    fn record(mut self: Box<Self>, header: &Header, stop: &StopDescriptor) -> Outcome<()> {
        match self.command {
            Command::Count { slice_ns, .. } => {
                let file = CountFile::create(&self.out, header)?;
                let mut sink = CountSink::new(file, header.start_ns, slice_ns);
                let end_ns = self.run(stop, &mut sink)?;
                let unreported = self.reader.unreported_lost()?;
                sink.end(end_ns, unreported)
            }
            Command::Trace => {
                let mut sink = TraceSink::new(TraceFile::create(&self.out, header)?);
                let end_ns = self.run(stop, &mut sink)?;
                let unreported = self.reader.unreported_lost()?;
                sink.end(end_ns, unreported)
            }
        }
    }
}

impl Tracefs {
    /// Returns the time at which it was told to stop.
    fn run(&mut self, stop: &StopDescriptor, sink: &mut impl Sink) -> Outcome<u64> {
        say_ready()?;
        let pipes: Vec<RawFd> = self.reader.instance.pipes().iter().map(AsRawFd::as_raw_fd).collect();
        while !stop.wait(now_ns() + TICK_NS, &pipes).tried(|| "wait")? {
            self.reader.pass(&mut self.follower, sink, now_ns())?;
            sink.pass_over()?;
        }
        self.reader.instance.set("tracing_on", "0")?;
        let end_ns = now_ns();
        self.reader.pass(&mut self.follower, sink, u64::MAX)?;
        self.follower.finish(end_ns, sink)?;
        Ok(end_ns)
    }
}

struct Reader {
    instance: Instance,
    pages: PageFormat,
    events: Events,
    /// Events that were read and are later than the time up to which all are there.
    held_back: Vec<Event>,
    reported_lost: u64,
}

impl Reader {
    /// Reads what is in the buffers, and follows all events up to the time. By then the events of all processors are
    /// there, so they can be put in order.
    fn pass(&mut self, follower: &mut Follower, sink: &mut impl Sink, until_ns: u64) -> Outcome<()> {
        let mut page = vec![0; self.pages.bytes];
        for pipe in self.instance.pipes() {
            let mut pipe: &File = pipe;
            loop {
                match pipe.read(&mut page) {
                    Ok(0) => break,
                    Ok(length) => {
                        let page = &page[..length];
                        let first = self.held_back.len();
                        let (events, held_back) = (&self.events, &mut self.held_back);
                        let missed = self.pages.events(page, |time_ns, content| {
                            held_back.extend(events.read(time_ns, content));
                        });
                        let known = match missed {
                            Missed::None => None,
                            Missed::Unknown => Some(0),
                            Missed::Events(count) => Some(count),
                        };
                        if let Some(events) = known {
                            self.reported_lost += events;
                            let time_ns = held_back.get(first).map_or_else(now_ns, |event| event.time_ns);
                            held_back.insert(first, Event { time_ns, tid: 0, kind: Kind::Lost { events } });
                        }
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(Failure::because("read tracefs's trace_pipe_raw", &error)),
                }
                // Whatever was there before the time has been read by now.
                if self.held_back.last().is_some_and(|last| last.time_ns > until_ns) {
                    break;
                }
            }
        }
        // Stable: events of one processor stay in their order.
        self.held_back.sort_by_key(|event| event.time_ns);
        let complete = self.held_back.partition_point(|event| event.time_ns <= until_ns);
        for event in self.held_back.drain(..complete) {
            follower.take(&event, sink)?;
        }
        Ok(())
    }

    /// Lost events that no page has reported.
    fn unreported_lost(&self) -> Outcome<u64> {
        Ok(self.instance.lost()?.saturating_sub(self.reported_lost))
    }
}
