//! Plain sequences: calls by number or name, separated by spaces, commas or lines. An empty line ends a sequence. The rest of a
//! line after `#` is a comment. Where each line is a number and a call, the number is the process that made the call.

use super::event::Sink;
use super::lines::{LineReader, EMPTY_LINE};
use super::names::{Call, CallNames, Program};
use super::numbers::decimal;
use super::state::{State, TOO_MANY_NAMES};
use super::threads::Entered;

const THREAD: u64 = 0;

#[derive(Default)]
pub struct Reader {}

impl Reader {
    /// Whether a line is nothing but numbers and names of calls.
    pub fn recognises(line: &[u8], calls: &CallNames) -> bool {
        let mut words = words(line).peekable();
        words.peek().is_some() && words.all(|word| decimal(word).is_some() || calls.known(word).is_some())
    }
}

impl LineReader for Reader {
    const LAYER: &'static str = "sequence of system calls";
    const ENDS_WITHOUT_NEWLINE: bool = true;

    #[inline]
    fn line(&mut self, line: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), &'static str> {
        let mut refused = None;
        if line.trim_ascii().is_empty() {
            state.threads.end(THREAD, sink);
            return Ok(());
        }
        for word in words(line) {
            match call_of(word, state) {
                Ok(call) => report(THREAD, call, state, sink),
                Err(reason) => refused = Some(reason),
            }
        }
        match (refused, words(line).next()) {
            (Some(reason), _) => Err(reason),
            (None, None) => Err(EMPTY_LINE),
            (None, Some(_)) => Ok(()),
        }
    }
}

/// As [`Reader`], where each line is a process and one of its calls.
#[derive(Default)]
pub struct ByProcess {}

impl ByProcess {
    /// Whether each line, of two at least, is a number and a call.
    pub fn recognises(start: &[u8], calls: &CallNames) -> bool {
        let mut lines = 0;
        let is_pair = |line: &[u8]| {
            let mut words = words(line);
            let (process, call) = (words.next(), words.next());
            let is_call = |word| decimal(word).is_some() || calls.known(word).is_some();
            process.is_none()
                || process.and_then(decimal).is_some() && call.is_some_and(is_call) && words.next().is_none()
        };
        start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).all(|line| {
            lines += usize::from(words(line).next().is_some());
            is_pair(line)
        }) && lines > 1
    }
}

impl LineReader for ByProcess {
    const LAYER: &'static str = "processes and their system calls";
    const ENDS_WITHOUT_NEWLINE: bool = true;

    #[inline]
    fn line(&mut self, line: &[u8], state: &mut State, sink: &mut impl Sink) -> Result<(), &'static str> {
        let mut words = words(line.trim_ascii());
        match (words.next(), words.next(), words.next()) {
            (None, _, _) => Err(EMPTY_LINE),
            (Some(process), Some(call), None) => {
                let process = decimal(process).ok_or("not_a_process_and_a_call")?;
                let call = call_of(call, state)?;
                report(process, call, state, sink);
                if state.calls.exits().contains(&Some(call)) {
                    state.threads.end(process, sink);
                }
                Ok(())
            }
            _ => Err("not_a_process_and_a_call"),
        }
    }
}

/// The call that a word names or numbers; the error is why it is none.
#[inline]
fn call_of(word: &[u8], state: &mut State) -> Result<Call, &'static str> {
    let call = match decimal(word) {
        Some(number) => {
            state.note("call_by_number");
            state.calls.number(number)
        }
        None if is_name(word) => state.calls.name(word),
        None => return Err("not_a_call"),
    };
    call.ok_or(TOO_MANY_NAMES)
}

#[inline]
fn report(thread: u64, call: Call, state: &mut State, sink: &mut impl Sink) {
    let slot = state.threads.slot(thread);
    state.threads.report(slot, Entered { call, program: Program::UNKNOWN, time_ns: None }, None, None, sink);
}

fn is_name(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = memchr::memchr(b'#', line).unwrap_or(line.len());
    line[..end].split(|byte| matches!(byte, b' ' | b'\t' | b',' | b';')).filter(|word| !word.is_empty())
}
