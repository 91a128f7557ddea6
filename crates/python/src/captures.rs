//! Captures given as files, read as one in the order of their packets' times.

use std::io::{ErrorKind, Read};
use std::path::{absolute, Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::capture::{self, read_merged, Ended, Frame, Origin, Stop, Unreadable};
use twinbed_core::error::ReadError;

use crate::artifact::{named, open_stream, wrong, ArtifactError};

/// What is known of captures beside their packets.
pub struct Ending {
    pub origin: Origin,
    /// Captures that broke off.
    pub stops: Vec<(PathBuf, Stop)>,
}

/// Hands the frames of all captures to `sink`.
pub fn read(mut paths: Vec<PathBuf>, sink: impl FnMut(&Frame)) -> PyResult<Ending> {
    let readers = open(&mut paths)?;
    let ended = read_merged(readers, sink).map_err(|unreadable| refused(&paths, unreadable))?;
    Ok(ending(paths, ended))
}

/// Opens the captures, and puts the paths in the same order: one that neither depends on how they are given nor on whether
/// they are given from here on or from the root, so that it is the same for workers elsewhere.
pub fn open(paths: &mut [PathBuf]) -> PyResult<Vec<impl Read>> {
    if paths.is_empty() {
        return Err(PyValueError::new_err("no capture given"));
    }
    paths.sort_by_cached_key(|path| absolute(path).unwrap_or_else(|_| path.clone()));
    paths.iter().map(|path| open_stream(path)).collect()
}

/// Adds up what is known of each.
pub fn ending(paths: Vec<PathBuf>, ended: Vec<Ended>) -> Ending {
    let mut origin = Origin::default();
    let mut stops = Vec::new();
    for (path, Ended { origin: of_one, stop }) in paths.into_iter().zip(ended) {
        origin.interfaces += of_one.interfaces;
        if let Some(dropped) = of_one.dropped_packets {
            origin.dropped_packets = Some(origin.dropped_packets.unwrap_or(0).saturating_add(dropped));
        }
        capture::add(&mut origin.skipped, of_one.skipped);
        stops.extend(stop.map(|stop| (path, stop)));
    }
    Ending { origin, stops }
}

pub fn refused(paths: &[PathBuf], Unreadable { which, error }: Unreadable) -> PyErr {
    let path = paths.get(which).map_or(Path::new("-"), PathBuf::as_path);
    match error {
        ReadError::Format(error) => wrong(path, &error),
        ReadError::Io(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
            ArtifactError::new_err(format!("{}: compressed data: {error}", path.display()))
        }
        ReadError::Io(error) => named(error, path),
    }
}

/// The value of `truncated` in a summary.
pub fn truncated<'py>(py: Python<'py>, stops: &[(PathBuf, Stop)]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let truncated = stops.iter().map(|(path, stop)| {
        let dict = PyDict::new(py);
        dict.set_item("file", path.display().to_string())?;
        dict.set_item("byte", stop.byte)?;
        dict.set_item("reason", &stop.reason)?;
        Ok(dict)
    });
    truncated.collect()
}
