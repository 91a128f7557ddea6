//! The count file of `twinbed-probe syscalls count`: docs/probe/SYSCALLS.md, section Count. Slices and streams of one
//! program add up.

use std::collections::HashMap;
use std::io::Read;

use super::tally::{Cut, Tally};
use super::totals::CallTotals;
use crate::error::{Error, ReadError, Result};
use crate::escapes::unescaped;
use crate::syscall::lines::{Line, Lines};
use crate::syscall::names::{Call, Program};
use crate::syscall::numbers::{decimal, word};
use crate::syscall::probe_files::COUNT_VERSION;
use crate::syscall::probe_trace::header_line;
use crate::syscall::state::State;
use crate::syscall::{Architecture, Kind, Trace};

const LAYER: &str = "count file";
/// Version 1 timed all calls that returned.
const VERSIONS: [&[u8]; 2] = [b"1", COUNT_VERSION.as_bytes()];

pub fn read(
    reader: impl Read,
    architecture: Architecture,
    cut: Cut,
    tally: &mut Tally,
) -> std::result::Result<Trace, ReadError> {
    let mut lines = Lines::new(reader);
    let mut state = State::new(Kind::ProbeCounts, architecture);
    let all_timed = head(&mut lines, &mut state)? == VERSIONS[0];
    let cut_at = state.summary.facts.iter().find(|(name, _)| name == "skip");
    let cut_at = cut_at.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut reader =
        Reader { after_cut: cut.of_counts(cut_at)?, all_timed, streams: HashMap::new(), lost: 0, ended: false };
    while let Some(line) = lines.next()? {
        let taken = match line {
            Line::Whole(line) => reader.line(line, &mut state, tally),
            Line::Last(_) => break,
            Line::TooLong => None,
        };
        if taken.is_none() {
            state.skip("line_not_read");
        }
        if reader.ended {
            break;
        }
    }
    state.summary.lost_events = Some(reader.lost);
    if !reader.ended {
        state.summary.cut_off = Some(Error::Missing {
            layer: LAYER,
            expected: "a last line `end`".to_owned(),
            found: format!("the file's end after line {}", lines.number()),
        });
    }
    Ok(state.finish(tally))
}

/// Reads the first line and the header, up to the empty line. Returns the version.
fn head(lines: &mut Lines<impl Read>, state: &mut State) -> std::result::Result<&'static [u8], ReadError> {
    let mut read = None;
    while let Some(Line::Whole(line)) = lines.next()? {
        if read.is_none() {
            let (_, version) = word(line);
            read = VERSIONS.into_iter().find(|known| *known == version);
            if read.is_none() {
                let expected = "twinbed-syscalls-count 1 or 2";
                return Err(Error::line(LAYER, 1, &String::from_utf8_lossy(line), expected).into());
            }
        } else if line.is_empty() {
            break;
        } else {
            header_line(&String::from_utf8_lossy(line), state);
        }
    }
    Ok(read.unwrap_or(VERSIONS[0]))
}

struct Reader {
    /// Only what comes after the cut counts.
    after_cut: bool,
    all_timed: bool,
    streams: HashMap<u64, Program>,
    lost: u64,
    ended: bool,
}

impl Reader {
    /// `None` for a line that is not as it should be.
    fn line(&mut self, line: &[u8], state: &mut State, tally: &mut Tally) -> Option<()> {
        let (kind, rest) = word(line);
        match kind {
            b"t" => self.transition(rest, state, tally),
            b"c" => self.totals(rest, state, tally),
            b"s" => {
                let (stream, rest) = word(rest);
                let (thread, rest) = word(rest);
                let (_, name) = word(rest);
                decimal(thread)?;
                let program = if name == b"-" { Program::UNKNOWN } else { state.programs.of(&unescaped(name)) };
                self.streams.insert(decimal(stream)?, program);
                Some(())
            }
            b"x" => self.streams.remove(&decimal(rest)?).map(|_| ()),
            b"@" => Some(()),
            b"lost" => {
                self.lost = self.lost.saturating_add(decimal(rest)?);
                Some(())
            }
            b"end" => {
                let (_, rest) = word(rest);
                let (_, lost) = word(rest);
                self.lost = decimal(lost)?;
                self.ended = true;
                Some(())
            }
            _ => None,
        }
    }

    fn transition(&self, rest: &[u8], state: &mut State, tally: &mut Tally) -> Option<()> {
        let mut words = rest.split(|byte| *byte == b' ');
        let program = *self.streams.get(&decimal(words.next()?)?)?;
        let Some(known) = self.known(words.next()?)? else { return Some(()) };
        let mut gram: [Option<Call>; 4] = [None; 4];
        for (place, call) in gram.iter_mut().enumerate() {
            let word = words.next()?;
            // Calls before the cut are as if they had not been made.
            if word != b"-" && place + known >= 3 {
                *call = Some(state.calls.number(decimal(word)?)?);
            }
        }
        gram[3]?;
        tally.add(program, gram, decimal(words.next()?)?);
        Some(())
    }

    fn totals(&self, rest: &[u8], state: &mut State, tally: &mut Tally) -> Option<()> {
        let mut words = rest.split(|byte| *byte == b' ');
        let program = *self.streams.get(&decimal(words.next()?)?)?;
        if self.known(words.next()?)?.is_none() {
            return Some(());
        }
        let call = state.calls.number(decimal(words.next()?)?)?;
        let [calls, returned, errors] = [words.next()?, words.next()?, words.next()?].map(decimal);
        let (calls, returned, errors) = (calls?, returned?, errors?);
        let positive = known_or_none(words.next()?, decimal)?;
        let timed = if self.all_timed { returned } else { decimal(words.next()?)? };
        let duration_ns = known_or_none(words.next()?, decimal)?;
        let squares_ns2 = if self.all_timed { 0 } else { known_or_none(words.next()?, wide)? };
        let totals = CallTotals { calls, timed, duration_ns, represented: returned, squares_ns2, errors, positive };
        tally.add_totals(program, call, &totals);
        Some(())
    }

    /// How many previous calls of a part's lines count; none at all for what lies before the cut.
    fn known(&self, part: &[u8]) -> Option<Option<usize>> {
        Some(match (part, self.after_cut) {
            (b"a" | b"0" | b"1" | b"2" | b"b", false) | (b"b", true) => Some(3),
            (b"a", true) => None,
            (b"0", true) => Some(0),
            (b"1", true) => Some(1),
            (b"2", true) => Some(2),
            _ => return None,
        })
    }
}

/// `-` is a number that is not kept, which adds nothing.
fn known_or_none<T: Default>(word: &[u8], number: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    if word == b"-" {
        return Some(T::default());
    }
    number(word)
}

/// A number of more than 64 bits.
fn wide(word: &[u8]) -> Option<u128> {
    let digits = word.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()
}

impl Cut {
    /// Whether only the counts after a count file's own cut are wanted. A count file was cut when it was written, if at all, so
    /// no other cut can be made.
    fn of_counts(self, cut_at: u64) -> Result<bool> {
        if self.limit.is_none() && (self.skip == 0 || self.skip == cut_at) {
            return Ok(self.skip > 0);
        }
        Err(Error::Missing {
            layer: LAYER,
            expected: match self.limit {
                Some(limit) => format!("a trace, to take {limit} calls of it"),
                None => format!("a cut after {} calls", self.skip),
            },
            found: format!("counts with a cut after {cut_at} calls"),
        })
    }
}
