//! Plain sequences: calls by number or name, separated by spaces, commas or lines. An empty line ends a sequence. The rest of a
//! line after `#` is a comment.

use super::event::Sink;
use super::lines::{LineReader, EMPTY_LINE};
use super::names::{CallNames, Program};
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
            let call = match decimal(word) {
                Some(number) => state.calls.number(number),
                None if is_name(word) => state.calls.name(word),
                None => {
                    refused = Some("not_a_call");
                    continue;
                }
            };
            let Some(call) = call else {
                refused = Some(TOO_MANY_NAMES);
                continue;
            };
            let slot = state.threads.slot(THREAD);
            let entered = Entered { call, program: Program::UNKNOWN, time_ns: None };
            state.threads.report(slot, entered, None, None, sink);
        }
        match (refused, words(line).next()) {
            (Some(reason), _) => Err(reason),
            (None, None) => Err(EMPTY_LINE),
            (None, Some(_)) => Ok(()),
        }
    }
}

fn is_name(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = memchr::memchr(b'#', line).unwrap_or(line.len());
    line[..end].split(|byte| matches!(byte, b' ' | b'\t' | b',' | b';')).filter(|word| !word.is_empty())
}
