//! `flows`, `flows_to_parquet`: captures into one row per TCP connection, with tcptrace's statistics.

mod batches;
pub mod columns;
mod encoders;
mod output;
mod read;

use std::net::IpAddr;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::readers::tcptrace::{Options, Row};
use twinbed_core::table::Column;

use crate::arrow::{batch, schema, table_or_rows};
use crate::capture::summary_dict;
use crate::captures::truncated;
use columns::columns;
use output::Blocks;
use read::{read, Reading};

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
    let (batches, reading) = py.detach(|| {
        let columns: Vec<Column<Row>> = columns();
        let schema = schema(&columns);
        let mut batches = Vec::new();
        let mut take = |rows: &mut Vec<Row>| {
            batches.push(batch(&columns, &schema, rows));
            rows.clear();
        };
        let mut rows = Blocks::new(&mut take);
        let reading = read(paths, options, threads, &mut rows)?;
        rows.finish();
        if batches.is_empty() {
            batches.push(batch(&columns, &schema, &[]));
        }
        Ok::<_, PyErr>((batches.into_iter().collect(), reading))
    })?;
    Ok((table_or_rows(py, batches, as_rows)?, summary(py, &reading)?))
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
    let reading = py
        .detach(|| output::to_parquet(&output_path, &columns(), threads, |rows| read(paths, options, threads, rows)))?;
    summary(py, &reading)
}

fn summary<'py>(py: Python<'py>, reading: &Reading) -> PyResult<Bound<'py, PyDict>> {
    let dict = summary_dict(py, &reading.summary)?;
    dict.set_item("rows", reading.rows)?;
    dict.set_item("truncated", truncated(py, &reading.stops)?)?;
    Ok(dict)
}
