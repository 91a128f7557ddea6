//! Captures into rows, in parts. The connections are in shards, each with an engine of its own, so that threads can
//! share them; which rows there are, and their order, does not depend on how many threads do.

use std::io::Read;
use std::path::PathBuf;

use pyo3::prelude::*;
use twinbed_core::capture::{read_merged, Stop, Unreadable};
use twinbed_core::flow::Summary;
use twinbed_core::readers::tcptrace::{merged, shard_of, Options, Router, SHARDS};

use super::joined::join;
use super::lane::{Frames, Lane, Part, Rows};
use super::threads::read_on_threads;
use crate::captures::{self, Ending};

/// What is known of captures beside their rows.
pub struct Reading {
    pub summary: Summary,
    pub rows: u64,
    /// Captures that broke off.
    pub stops: Vec<(PathBuf, Stop)>,
}

/// Where rows come from.
pub enum Source<'a> {
    Captures {
        paths: Vec<PathBuf>,
        options: &'a Options,
        threads: usize,
    },
    /// Folders with all shares of a capture: what is known beside rows was said when they were made.
    Shares(Vec<PathBuf>),
}

/// Hands over rows. `out` takes a part, and leaves an empty one.
pub fn read<P: Part>(
    source: Source,
    empty: impl Fn() -> P + Sync,
    out: impl FnMut(&mut P) + Send,
) -> PyResult<Reading> {
    match source {
        Source::Captures { paths, options, threads } => captures_as_one(paths, options, threads, empty, out),
        Source::Shares(folders) => {
            let rows = join(&folders, empty, out)?;
            Ok(Reading { summary: Summary::default(), rows, stops: Vec::new() })
        }
    }
}

fn captures_as_one<P: Part>(
    mut paths: Vec<PathBuf>,
    options: &Options,
    threads: usize,
    empty: impl Fn() -> P + Sync,
    mut out: impl FnMut(&mut P) + Send,
) -> PyResult<Reading> {
    let mut readers = captures::open(&mut paths)?;
    let mut lanes = options.engines().map(|engine| Lane { engine, rows: Rows::new(empty()) });
    let read = match readers.pop() {
        // Several are merged here: reading them is not what takes the time.
        Some(reader) if threads > 1 && readers.is_empty() => {
            read_on_threads(reader, options, threads, &mut lanes, &empty, &mut out)
                .map_err(|error| Unreadable { which: 0, error })
        }
        last => {
            readers.extend(last);
            read_here(readers, options, &mut lanes, &mut out)
        }
    };
    let Frames { ended, last_ns } = read.map_err(|unreadable| captures::refused(&paths, unreadable))?;
    let Ending { origin, stops } = captures::ending(paths, ended);

    let mut rows = 0;
    let engines = lanes.map(|lane| {
        rows += lane.rows.rest(&mut out);
        lane.engine
    });
    let mut rest = Rows::new(empty());
    let summary = merged(engines, last_ns, origin, &mut |row| rest.push(row, &mut out));
    rows += rest.rest(&mut out);
    Ok(Reading { summary, rows, stops })
}

fn read_here<P: Part>(
    readers: Vec<impl Read>,
    options: &Options,
    lanes: &mut [Lane<P>; SHARDS],
    out: &mut impl FnMut(&mut P),
) -> Result<Frames, Unreadable> {
    let (mut router, mut number, mut last_ns) = (Router::default(), 0, None);
    let ended = read_merged(readers, |frame| {
        number += 1;
        last_ns = frame.time_ns.or(last_ns);
        match options.usual(frame) {
            Some(packet) => {
                let bin = Router::bin_of_usual(&packet);
                lanes[shard_of(bin)].count(number, frame, Some(&packet), bin, &mut *out);
            }
            None => {
                let bin = router.bin_of(frame, options);
                lanes[shard_of(bin)].count(number, frame, None, bin, &mut *out);
            }
        }
    })?;
    Ok(Frames { ended, last_ns })
}
