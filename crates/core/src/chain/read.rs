//! A trace or a count file into counts.

use std::io::Read;

use super::probe_counts;
use super::tally::{Cut, Source, Tallied, Tally};
use crate::error::ReadError;
use crate::syscall::{self, Architecture, Kind};

/// Counts a trace or reads a count file. Programs are sorted by name.
pub fn tally(reader: impl Read, architecture: Architecture, cut: Cut) -> Result<(Vec<Tallied>, Source), ReadError> {
    let (kind, reader) = syscall::recognised(reader)?;
    let mut tally = Tally::new(cut);
    let trace = match kind {
        Kind::ProbeCounts => probe_counts::read(reader, architecture, cut, &mut tally)?,
        _ => syscall::read_kind(reader, kind, architecture, &mut tally)?,
    };
    Ok(tally.into_parts(trace))
}

/// As [`tally`], for a file whose bytes are all at hand.
pub fn tally_slice(bytes: &[u8], architecture: Architecture, cut: Cut) -> Result<(Vec<Tallied>, Source), ReadError> {
    if !bytes.starts_with(syscall::perf_data::MAGIC) {
        return tally(bytes, architecture, cut);
    }
    let mut tally = Tally::new(cut);
    let trace = syscall::read_slice(bytes, architecture, &mut tally)?;
    Ok(tally.into_parts(trace))
}
