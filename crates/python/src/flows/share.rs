//! A share of a capture's connections, for several machines: each reads the whole capture, and counts the connections of
//! some bins. The rows are in files, each in an order by which those of all shares can be merged to what one pass gives.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use twinbed_core::capture::read_merged;
use twinbed_core::readers::tcptrace::{merged, shard_of, Options, Router, Row, RowWriter, BINS, SHARDS};

use super::joined::{early, last};
use super::read::Reading;
use crate::artifact::named;
use crate::captures::{self, Ending};

/// The share `number` of `of`, from 0.
#[derive(Clone, Copy)]
pub struct Share {
    pub number: usize,
    pub of: usize,
}

impl Share {
    /// Of no more shares than there are bins.
    pub fn is_possible(self) -> bool {
        self.number < self.of && self.of <= BINS
    }

    fn has(self, bin: u8) -> bool {
        usize::from(bin) % self.of == self.number
    }
}

/// Writes the rows of a share below `folder`.
pub fn to_folder(folder: &Path, share: Share, mut paths: Vec<PathBuf>, options: &Options) -> PyResult<Reading> {
    let readers = captures::open(&mut paths)?;
    let in_folder = |error: io::Error| named(error, folder);
    let create = |path: PathBuf| RowWriter::new(BufWriter::new(File::create(path)?));
    let mut files =
        (0..SHARDS).map(|shard| create(early(folder, shard))).collect::<io::Result<Vec<_>>>().map_err(in_folder)?;
    let mut engines = options.engines();
    let (mut rows, mut written) = (0, Ok(()));
    let mut push = |file: &mut RowWriter<_>, row: Row| {
        rows += 1;
        if written.is_ok() {
            written = file.push(&row);
        }
    };
    let (mut router, mut number, mut last_ns) = (Router::default(), 0, None);
    let ended = read_merged(readers, |frame| {
        number += 1;
        last_ns = frame.time_ns.or(last_ns);
        let bin = router.bin_of(frame, options);
        if share.has(bin) {
            let shard = shard_of(bin);
            let file = &mut files[shard];
            let usual = options.usual(frame);
            engines[shard].frame_of(number, frame, usual.as_ref(), bin, &mut |row| push(file, row));
        }
    })
    .map_err(|unreadable| captures::refused(&paths, unreadable))?;
    let Ending { mut origin, stops } = captures::ending(paths, ended);
    if share.number > 0 {
        // Records that are no packets count once.
        origin.skipped.clear();
    }
    files.push(create(last(folder)).map_err(in_folder)?);
    let summary = merged(engines, last_ns, origin, &mut |row| push(&mut files[SHARDS], row));
    written.map_err(in_folder)?;
    let finish = |file: RowWriter<BufWriter<File>>| file.finish()?.into_inner().map_err(io::IntoInnerError::into_error);
    files.into_iter().try_for_each(|file| finish(file).map(drop)).map_err(in_folder)?;
    Ok(Reading { summary, rows, stops })
}
