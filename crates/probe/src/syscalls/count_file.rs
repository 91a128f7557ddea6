//! Writes a count: the text file of SYSCALLS.md.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::call::{moves_bytes, Cell, History, Part, Stream, StreamNumber};
use super::header::Header;
use super::options::Times;
use super::probe_files::{COUNT_MAGIC, COUNT_VERSION};
use crate::failure::{Outcome, Tried};

type Totals = BTreeMap<(StreamNumber, Part, u16), Cell>;

pub struct CountFile {
    out: BufWriter<File>,
    path: String,
    times: Times,
    calls: u64,
    lost: u64,
}

pub struct Counted {
    pub stream: StreamNumber,
    pub part: Part,
    pub history: History,
    pub cell: Cell,
}

impl CountFile {
    pub fn create(path: &str, header: &Header) -> Outcome<CountFile> {
        let out = BufWriter::new(File::create(path).tried(|| format!("create {path}"))?);
        let mut file = CountFile { out, path: path.to_owned(), times: header.times, calls: 0, lost: 0 };
        file.write(|out| write!(out, "{COUNT_MAGIC} {COUNT_VERSION}\n{}\n", header.lines()))?;
        file.slice(0, header.start_ns)?;
        Ok(file)
    }

    fn write(&mut self, what: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Outcome<()> {
        what(&mut self.out).tried(|| format!("write {}", self.path))
    }

    /// What follows belongs to the slice; what came before is in the file.
    pub fn slice(&mut self, index: u64, start_ns: u64) -> Outcome<()> {
        self.write(|out| {
            writeln!(out, "@ {index} {start_ns}")?;
            out.flush()
        })
    }

    pub fn stream(&mut self, number: StreamNumber, stream: &Stream) -> Outcome<()> {
        self.write(|out| {
            write!(out, "s {number} {} ", stream.tid)?;
            match stream.tgid {
                Some(tgid) => write!(out, "{tgid} ")?,
                None => write!(out, "- ")?,
            }
            if stream.name.is_empty() {
                return writeln!(out, "-");
            }
            for byte in &stream.name {
                match byte {
                    b'\\' | 0..=31 | 127 => write!(out, "\\x{byte:02x}")?,
                    byte => out.write_all(&[*byte])?,
                }
            }
            writeln!(out)
        })
    }

    pub fn ended(&mut self, number: StreamNumber) -> Outcome<()> {
        self.write(|out| writeln!(out, "x {number}"))
    }

    pub fn counts(&mut self, mut counted: Vec<Counted>) -> Outcome<()> {
        counted.sort_unstable_by_key(|one| (one.stream, one.part, one.history));
        let mut totals = Totals::new();
        let mut calls = 0;
        let times = self.times;
        self.write(|out| {
            for Counted { stream, part, history, cell } in &counted {
                write!(out, "t {stream} {}", part.letter())?;
                for back in [3, 2, 1] {
                    match history.before(back) {
                        Some(number) => write!(out, " {number}")?,
                        None => write!(out, " -")?,
                    }
                }
                writeln!(out, " {} {}", history.current(), cell.calls)?;
                *totals.entry((*stream, *part, history.current())).or_default() += *cell;
                calls += cell.calls;
            }
            for ((stream, part, number), cell) in totals {
                let Cell { calls, returned, errors, bytes, timed, time_ns, squares_ns2 } = cell;
                write!(out, "c {stream} {} {number} {calls} {returned} {errors} ", part.letter())?;
                match moves_bytes(number) {
                    true => write!(out, "{bytes}")?,
                    false => write!(out, "-")?,
                }
                match times {
                    Times::Sampled => writeln!(out, " {timed} {time_ns} {squares_ns2}")?,
                    Times::All => writeln!(out, " {returned} {time_ns} -")?,
                    Times::None => writeln!(out, " 0 - -")?,
                }
            }
            Ok(())
        })?;
        self.calls += calls;
        Ok(())
    }

    pub fn lost(&mut self, calls: u64) -> Outcome<()> {
        if calls == 0 {
            return Ok(());
        }
        self.lost += calls;
        self.write(|out| writeln!(out, "lost {calls}"))
    }

    pub fn end(mut self, end_ns: u64) -> Outcome<()> {
        let (calls, lost) = (self.calls, self.lost);
        self.write(|out| {
            writeln!(out, "end {end_ns} {calls} {lost}")?;
            out.flush()
        })
    }
}
