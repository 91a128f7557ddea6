//! raw_syscalls:sys_enter and sys_exit as text, in the three forms that the kernel's tracers print:
//!
//! ```text
//! ab  1234 [001] 12567.746194: raw_syscalls:sys_enter: NR 0 (3, 7fff, 20, 0, 0, 0)      perf script
//!           ab-1234  [001] 12567.746194: sys_exit:             NR 0 = 832               trace-cmd report
//!           ab-1234  [001] ..... 12567.746194: sys_enter: NR 0 (3, 7fff, ...)           a trace file of tracefs
//! ```
//!
//! Sources: perf-script(1), trace-cmd-report(1), the kernel's Documentation/trace/ftrace.rst, and runs of each.
//! Numbers are those of the machine that was traced, which the text does not say.

use super::event::Sink;
use super::lines::{LineReader, EMPTY_LINE};
use super::names::{Call, CallNames};
use super::numbers::{decimal, digits_at_end, seconds, signed};
use super::state::{State, TOO_MANY_NAMES};

pub struct Reader {
    exits: [Option<Call>; 2],
}

/// Which of the two events a line is.
enum Point<'a> {
    Enter(&'a [u8]),
    Exit(&'a [u8]),
}

impl Reader {
    pub fn new(calls: &CallNames) -> Self {
        Reader { exits: calls.exits() }
    }

    pub fn recognises(line: &[u8]) -> bool {
        point(line).is_some_and(|(before, _)| header(before).is_some())
    }

    /// perf names the event's group.
    pub fn is_perf(line: &[u8]) -> bool {
        memchr::memmem::find(line, b"raw_syscalls:sys_").is_some()
    }
}

impl LineReader for Reader {
    const LAYER: &'static str = "trace of raw_syscalls";

    #[inline]
    fn line(&mut self, line: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), &'static str> {
        let Some((before, point)) = point(line) else { return other(line, state, sink) };
        let Some(header) = header(before) else { return Err("header_not_read") };
        let slot = state.threads.slot(header.thread);
        let (number, value) = match point {
            Point::Enter(rest) => {
                let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
                (&rest[..end], None)
            }
            Point::Exit(rest) => {
                let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
                let value = rest[end..].trim_ascii().strip_prefix(b"= ").and_then(signed);
                let Some(value) = value else { return Err("no_return_value") };
                (&rest[..end], Some(value))
            }
        };
        match value {
            None => {
                // -1: a call that a tracer of the program has taken back.
                let Some(number) = decimal(number) else { return Err("no_call_number") };
                let Some(call) = state.calls.number(number) else { return Err(TOO_MANY_NAMES) };
                let program = state.programs.of(header.program);
                state.threads.set_program(slot, program);
                state.threads.enter(slot, call, header.time_ns, sink);
                if self.exits.contains(&Some(call)) {
                    state.threads.end(header.thread, sink);
                }
                Ok(())
            }
            Some(value) => {
                let Some(entered) = state.threads.entered(slot) else { return Err("exit_without_entry") };
                // -1: rt_sigreturn, which has put back the registers of the call that the signal interrupted.
                if decimal(number).is_some_and(|number| state.calls.number(number) != Some(entered.call)) {
                    state.note("returned_from_another_call");
                }
                let duration = header.time_ns.zip(entered.time_ns).and_then(|(end, start)| end.checked_sub(start));
                let duration = duration.and_then(|ns| u64::try_from(ns).ok());
                state.threads.report(slot, entered, duration, Some(value), sink);
                Ok(())
            }
        }
    }
}

/// What stands before the event's name, and the event with what follows `NR `.
#[inline]
fn point(line: &[u8]) -> Option<(&[u8], Point<'_>)> {
    // The event's name comes after the header and before the arguments; a program may be called anything.
    for at in memchr::memmem::find_iter(line, b"sys_e") {
        let (rest, enter) = match &line[at..] {
            rest if rest.starts_with(b"sys_enter:") => (&rest[10..], true),
            rest if rest.starts_with(b"sys_exit:") => (&rest[9..], false),
            _ => continue,
        };
        let Some(rest) = rest.trim_ascii_start().strip_prefix(b"NR ") else { continue };
        let before = line[..at].strip_suffix(b"raw_syscalls:").unwrap_or(&line[..at]);
        return Some((before, if enter { Point::Enter(rest) } else { Point::Exit(rest) }));
    }
    None
}

struct Header<'a> {
    program: &'a [u8],
    thread: u64,
    time_ns: Option<i64>,
}

/// `program thread [cpu] time: ` or `program-thread (process) [cpu] flags time: `; perf leaves the CPU away when it was
/// not recorded.
#[inline]
fn header(text: &[u8]) -> Option<Header<'_>> {
    let text = text.trim_ascii_end().strip_suffix(b":")?;
    let start = text.iter().rposition(|byte| *byte == b' ')? + 1;
    let time_ns = Some(seconds(&text[start..])?);
    let mut rest = text[..start].trim_ascii_end();
    if let Some(open) = memchr::memrchr(b'[', rest) {
        let cpu = rest[open + 1..].split(|byte| *byte == b']').next()?;
        decimal(cpu)?;
        rest = rest[..open].trim_ascii_end();
    }
    if let Some(inside) = rest.strip_suffix(b")") {
        rest = inside[..memchr::memrchr(b'(', inside)?].trim_ascii_end();
    }
    let digits = digits_at_end(rest);
    let thread = decimal(&rest[digits..])?;
    let before = &rest[..digits];
    let program = match before.last()? {
        b'-' => &before[..digits - 1],
        b'/' => &before[..digits_at_end(&before[..digits - 1])],
        b' ' => before,
        _ => return None,
    };
    Some(Header { program: program.trim_ascii(), thread, time_ns })
}

/// A line that is neither event.
#[cold]
fn other(line: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), &'static str> {
    if line.trim_ascii().is_empty() {
        return Err(EMPTY_LINE);
    }
    if let Some(count) = lost(line) {
        state.lost(count, sink);
        return Err("lost_events_record");
    }
    if line.starts_with(b"#") || line.starts_with(b"cpus=") || line.starts_with(b"version = ") {
        return Err("header_line");
    }
    Err("other_event")
}

/// `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [12 EVENTS DROPPED]`, `... PERF_RECORD_LOST lost 12`.
fn lost(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    let (before, number) = match text.split_once("PERF_RECORD_LOST") {
        Some((_, rest)) => ("CPU:", rest.split_once("lost ")?.1),
        None => match text.split_once("[LOST ") {
            Some((before, rest)) => (before, rest),
            None => {
                let (before, rest) = text.split_once('[')?;
                rest.ends_with("EVENTS DROPPED]").then_some((before, rest))?
            }
        },
    };
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    if !before.trim_start().starts_with("CPU:") {
        return None;
    }
    number[..digits].parse().ok()
}
