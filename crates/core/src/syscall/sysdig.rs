//! What `sysdig -r FILE` prints in its default format, from its manual:
//!
//! ```text
//! %evt.num %evt.outputtime %evt.cpu %proc.name (%thread.tid) %evt.dir %evt.type %evt.info
//! 1234 17:08:41.386123456 1 ab (25188) > read fd=3(<4t>127.0.0.1:40000->127.0.0.1:80) size=8192
//! 1235 17:08:41.386125002 1 ab (25188) < read res=832 data=HTTP/1.1 200 OK
//! ```
//!
//! `>` is an entry and `<` an exit. Names are sysdig's own, which differ from the kernel's for a few calls (pread for
//! pread64). Releases that print exits alone are read by their exits. What is no call (switch, procexit) is skipped.

use super::event::Sink;
use super::lines::{LineReader, EMPTY_LINE};
use super::numbers::{decimal, signed, time, word};
use super::state::{State, TOO_MANY_NAMES};
use super::threads::Entered;

/// Events of sysdig's that are no system calls.
const OTHERS: [&[u8]; 17] = [
    b"switch",
    b"procinfo",
    b"signaldeliver",
    b"page_fault",
    b"scapevent",
    b"container",
    b"tracer",
    b"notification",
    b"infra",
    b"cpu_hotplug",
    b"k8s",
    b"mesos",
    b"pluginevent",
    b"asyncevent",
    b"useradded",
    b"groupadded",
    b"sched_switch",
];

#[derive(Default)]
pub struct Reader {
    /// This trace has entries, so that an exit without one is the end of a call made before, or of the child's side of
    /// clone.
    entries: bool,
}

struct Line<'a> {
    time_ns: Option<i64>,
    program: &'a [u8],
    thread: u64,
    enters: bool,
    event: &'a [u8],
    rest: &'a [u8],
}

impl Reader {
    pub fn recognises(line: &[u8]) -> bool {
        split(line).is_some()
    }
}

impl LineReader for Reader {
    const LAYER: &'static str = "sysdig";

    fn line(&mut self, line: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), &'static str> {
        if line.trim_ascii().is_empty() {
            return Err(EMPTY_LINE);
        }
        let Some(line) = split(line) else { return Err("not_an_event") };
        match line.event {
            b"procexit" => {
                state.threads.end(line.thread, sink);
                return Err("exit");
            }
            b"drop" => {
                state.lost(1, sink);
                return Err("drop");
            }
            event if OTHERS.contains(&event) => return Err("no_system_call"),
            _ => {}
        }
        let Some(call) = state.calls.name(name(&line)) else { return Err(TOO_MANY_NAMES) };
        let slot = state.threads.slot(line.thread);
        if line.enters {
            self.entries = true;
            let program = state.programs.of(line.program);
            state.threads.set_program(slot, program);
            state.threads.enter(slot, call, line.time_ns, sink);
            return Ok(());
        }
        let value = result(line.rest);
        if self.entries {
            if state.threads.leave(slot, line.time_ns, value, sink) {
                return Ok(());
            }
            return Err("exit_without_entry");
        }
        let program = state.programs.of(line.program);
        state.threads.set_program(slot, program);
        state.threads.report(slot, Entered { call, program, time_ns: line.time_ns }, None, value, sink);
        Ok(())
    }
}

fn split(line: &[u8]) -> Option<Line<'_>> {
    let (number, rest) = word(line.trim_ascii_start());
    decimal(number)?;
    let (at, rest) = word(rest);
    let time_ns = Some(time(at)?);
    let (cpu, rest) = word(rest);
    decimal(cpu)?;
    // A program's name may have spaces and parentheses in it, but no more than the kernel keeps of it.
    const LONGEST_BYTES: usize = 128;
    let start = &rest[..rest.len().min(LONGEST_BYTES)];
    let (open, arrow) = memchr::memmem::find_iter(start, b") ").find_map(|close| {
        let direction = rest.get(close + 2..close + 4)?;
        let open = memchr::memrchr(b'(', &rest[..close])?;
        (matches!(direction, b"> " | b"< ") && decimal(thread(&rest[open + 1..close])).is_some())
            .then_some((open, close + 2))
    })?;
    let (event, info) = word(rest[arrow + 1..].trim_ascii_start());
    Some(Line {
        time_ns,
        program: rest[..open].trim_ascii(),
        thread: decimal(thread(&rest[open + 1..arrow - 2]))?,
        enters: rest[arrow] == b'>',
        event,
        rest: info,
    })
}

/// `thread`, or `process.thread` or `process:thread` as formats have it.
fn thread(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| matches!(byte, b'.' | b':')).next().unwrap_or(text)
}

/// A call that sysdig has no event for is `syscall ID=155(sched_yield)`.
fn name<'a>(line: &Line<'a>) -> &'a [u8] {
    if line.event != b"syscall" {
        return line.event;
    }
    let inside = line.rest.strip_prefix(b"ID=").and_then(|id| {
        let open = memchr::memchr(b'(', id)?;
        let close = memchr::memchr(b')', id)?;
        id.get(open + 1..close)
    });
    inside.filter(|name| !name.is_empty()).unwrap_or(line.event)
}

/// `res=832`, `res=-2(ENOENT)`, `fd=5(<f>/etc/hosts)` of calls that give a descriptor.
fn result(info: &[u8]) -> Option<i64> {
    let (first, _) = word(info);
    let value = first.strip_prefix(b"res=").or_else(|| first.strip_prefix(b"fd="))?;
    let end = memchr::memchr(b'(', value).unwrap_or(value.len());
    signed(&value[..end])
}
