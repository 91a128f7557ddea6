//! Captures through the engine. With two threads or more, one reads and decompresses while another counts.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinbed_core::capture::{read_merged, Frame, Stop, Unreadable};
use twinbed_core::flow::Summary;
use twinbed_core::readers::tcptrace::{Engine, Options};

use super::batches::read_ahead;
use super::output::Blocks;
use crate::artifact::open_stream;
use crate::captures::{self, Ending};

/// What is known of captures beside their rows.
pub struct Reading {
    pub summary: Summary,
    pub rows: u64,
    /// Captures that broke off.
    pub stops: Vec<(PathBuf, Stop)>,
}

/// Reads captures as one, and hands over their `rows`.
pub fn read(mut paths: Vec<PathBuf>, options: Options, threads: usize, rows: &mut Blocks) -> PyResult<Reading> {
    if paths.is_empty() {
        return Err(PyValueError::new_err("no capture given"));
    }
    // So that the order in which they are given changes nothing.
    paths.sort();
    let mut readers = paths.iter().map(|path| open_stream(path)).collect::<PyResult<Vec<_>>>()?;
    let mut engine = Engine::new(options.clone());
    let ended = match readers.pop() {
        // Several are merged here: reading them is not what takes the time.
        Some(reader) if threads > 1 && readers.is_empty() => {
            let dissect = |frame: &Frame| options.dissect(frame);
            let count = |frame: &Frame, dissected: &_| engine.dissected(frame, dissected, &mut |row| rows.push(row));
            let ended = read_ahead(reader, dissect, count);
            ended.map(|ended| vec![ended]).map_err(|error| Unreadable { which: 0, error })
        }
        last => {
            readers.extend(last);
            read_merged(readers, |frame| engine.frame(frame, &mut |row| rows.push(row)))
        }
    };
    let ended = ended.map_err(|unreadable| captures::refused(&paths, unreadable))?;
    let Ending { origin, stops } = captures::ending(paths, ended);
    let summary = engine.finish(origin, &mut |row| rows.push(row));
    Ok(Reading { summary, rows: rows.count, stops })
}
