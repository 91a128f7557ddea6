//! Reading traces into counts, for tests.
#![allow(dead_code)] // each test file uses its part

use twinbed_core::chain::{tally_slice, Cut, Source, Tallied};
use twinbed_core::syscall::Architecture;

pub fn read_cut(bytes: &[u8], cut: Cut) -> Result<(Vec<Tallied>, Source), String> {
    tally_slice(bytes, Architecture::X86_64, cut).map_err(|error| error.to_string())
}

pub fn read(bytes: &[u8]) -> (Vec<Tallied>, Source) {
    read_cut(bytes, Cut::default()).expect("a trace")
}

pub fn names(programs: &[Tallied]) -> Vec<&str> {
    programs.iter().map(|one| one.program.as_deref().unwrap_or("-")).collect()
}
