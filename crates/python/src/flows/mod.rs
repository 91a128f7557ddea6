//! `flows`, `flows_to_parquet`: captures into one row per TCP connection, with tcptrace's statistics.

pub mod columns;
mod joined;
mod lane;
mod output;
mod read;
mod share;
mod threads;

use std::net::IpAddr;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
pub use twinbed_core::readers::tcptrace::BINS;
use twinbed_core::readers::tcptrace::{Options, Row};
use twinbed_core::table::Column;

use crate::arrow::{batch, schema, table_or_rows};
use crate::capture::summary_dict;
use crate::captures::truncated;
use columns::columns;
use lane::Part;
use read::{read, Reading, Source};
use share::{to_folder, Share};

/// Rows as Arrow batches.
struct Batches<'a> {
    columns: &'a [Column<Row>],
    schema: &'a SchemaRef,
    batches: Vec<Result<RecordBatch, ArrowError>>,
}

impl Part for Batches<'_> {
    fn push(&mut self, rows: &[Row]) {
        self.batches.push(batch(self.columns, self.schema, rows));
    }
}

/// What is asked of the engine, checked.
fn options(
    tunnels: bool,
    port: Option<u16>,
    host: Option<&str>,
    from_ns: Option<i64>,
    until_ns: Option<i64>,
    max_connections: Option<usize>,
) -> PyResult<Options> {
    let host = host.map(|host| host.parse::<IpAddr>()).transpose();
    let host = host.map_err(|_| PyValueError::new_err("host is no IP address"))?;
    let max_connections = max_connections.unwrap_or(Options::default().max_connections);
    if max_connections == 0 {
        return Err(PyValueError::new_err("max_connections is 0, expected at least 1"));
    }
    Ok(Options { tunnels, max_connections, port, host, from_ns, until_ns })
}

fn checked_threads(threads: usize) -> PyResult<usize> {
    match threads {
        0 => Err(PyValueError::new_err("threads is 0, expected at least 1")),
        _ => Ok(threads),
    }
}

#[pyfunction]
#[pyo3(signature = (paths, *, tunnels=false, port=None, host=None, from_ns=None, until_ns=None, max_connections=None, threads=1, as_rows=false))]
#[allow(clippy::too_many_arguments)]
pub fn flows<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    tunnels: bool,
    port: Option<u16>,
    host: Option<&str>,
    from_ns: Option<i64>,
    until_ns: Option<i64>,
    max_connections: Option<usize>,
    threads: usize,
    as_rows: bool,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let options = options(tunnels, port, host, from_ns, until_ns, max_connections)?;
    let threads = checked_threads(threads)?;
    let (rows, reading) = in_memory(py, Source::Captures { paths, options: &options, threads }, as_rows)?;
    Ok((rows, summary(py, &reading)?))
}

fn in_memory<'py>(py: Python<'py>, source: Source, as_rows: bool) -> PyResult<(Bound<'py, PyAny>, Reading)> {
    let (batches, reading) = py.detach(|| {
        let columns: Vec<Column<Row>> = columns();
        let schema = schema(&columns);
        let mut batches = Vec::new();
        let empty = || Batches { columns: &columns, schema: &schema, batches: Vec::new() };
        let reading = read(source, empty, |part| batches.append(&mut part.batches))?;
        if batches.is_empty() {
            batches.push(batch(&columns, &schema, &[]));
        }
        Ok::<_, PyErr>((batches.into_iter().collect(), reading))
    })?;
    Ok((table_or_rows(py, batches, as_rows)?, reading))
}

#[pyfunction]
#[pyo3(signature = (paths, output_path, *, tunnels=false, port=None, host=None, from_ns=None, until_ns=None, max_connections=None, threads=1))]
#[allow(clippy::too_many_arguments)]
pub fn flows_to_parquet<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    output_path: PathBuf,
    tunnels: bool,
    port: Option<u16>,
    host: Option<&str>,
    from_ns: Option<i64>,
    until_ns: Option<i64>,
    max_connections: Option<usize>,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let options = options(tunnels, port, host, from_ns, until_ns, max_connections)?;
    let threads = checked_threads(threads)?;
    let source = Source::Captures { paths, options: &options, threads };
    let reading = py.detach(|| output::to_parquet(&output_path, &columns(), source))?;
    summary(py, &reading)
}

#[pyfunction]
#[pyo3(signature = (folders, *, as_rows=false))]
pub fn flows_joined(py: Python<'_>, folders: Vec<PathBuf>, as_rows: bool) -> PyResult<Bound<'_, PyAny>> {
    Ok(in_memory(py, Source::Shares(folders), as_rows)?.0)
}

#[pyfunction]
pub fn flows_joined_to_parquet(py: Python<'_>, folders: Vec<PathBuf>, output_path: PathBuf) -> PyResult<()> {
    py.detach(|| output::to_parquet(&output_path, &columns(), Source::Shares(folders))).map(drop)
}

#[pyfunction]
#[pyo3(signature = (paths, folder, share, shares, *, tunnels=false, port=None, host=None, from_ns=None, until_ns=None, max_connections=None))]
#[allow(clippy::too_many_arguments)]
pub fn flows_share<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    folder: PathBuf,
    share: usize,
    shares: usize,
    tunnels: bool,
    port: Option<u16>,
    host: Option<&str>,
    from_ns: Option<i64>,
    until_ns: Option<i64>,
    max_connections: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = options(tunnels, port, host, from_ns, until_ns, max_connections)?;
    let which = Share { number: share, of: shares };
    if !which.is_possible() {
        return Err(PyValueError::new_err(format!(
            "share {share} of {shares}, expected one of at most {BINS}, from 0"
        )));
    }
    let reading = py.detach(|| to_folder(&folder, which, paths, &options))?;
    summary(py, &reading)
}

fn summary<'py>(py: Python<'py>, reading: &Reading) -> PyResult<Bound<'py, PyDict>> {
    let dict = summary_dict(py, &reading.summary)?;
    dict.set_item("rows", reading.rows)?;
    dict.set_item("truncated", truncated(py, &reading.stops)?)?;
    Ok(dict)
}
