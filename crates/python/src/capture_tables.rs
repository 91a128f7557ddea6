//! `capture_tables`: all that is asked of one capture, in one pass over it.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::capture::{Counts, Ended};
use twinbed_core::flow::Summary;
use twinbed_core::readers::http;
use twinbed_core::readers::observer::Observer;
use twinbed_core::readers::packetisation as packets;
use twinbed_core::readers::stalls;
use twinbed_core::readers::tcptrace::{self, Row};
use twinbed_core::readers::udp;
use twinbed_core::readers::{zeek as log, Reader};
use twinbed_core::table::Column;

use crate::arrow::{batch, schema, table, table_of};
use crate::captures::{self, truncated, Ending};
use crate::flows::columns::columns;
use crate::observer::{host_columns, window_columns};
use crate::packetisation::{direction_columns, exchange_columns, size_columns, whole};
use crate::stalls::stall_columns;
use crate::steps::{packet_columns, step_columns, wait_columns};
use crate::udp::rows as stream_rows;
use crate::zeek::{summary_dict, Reading, Wanted};

const TABLES: [&str; 8] =
    ["connections", "flows", "packetisation", "exchanges", "steps", "stalls", "streams", "observer"];

#[pyfunction]
#[pyo3(signature = (path, wanted=None, *, ignore_checksums=false, tunnels=false, turns=Vec::new()))]
pub fn capture_tables<'py>(
    py: Python<'py>,
    path: PathBuf,
    wanted: Option<Vec<String>>,
    ignore_checksums: bool,
    tunnels: bool,
    turns: Vec<u16>,
) -> PyResult<(Bound<'py, PyDict>, Option<Bound<'py, PyDict>>)> {
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|names| names.iter().any(|each| each == name));
    if let Some(unknown) = wanted.iter().flatten().find(|name| !TABLES.contains(&name.as_str())) {
        let message = format!("{unknown:?} is no table of a capture, expected {}", TABLES.join(", "));
        return Err(PyValueError::new_err(message));
    }
    let options = log::Options { tunnels, ignore_checksums, ..log::Options::default() };
    let http_options =
        || http::Options { tunnels, steps: is_wanted("steps"), turns: turns.clone(), ..http::Options::default() };
    let packet_options = packets::Options { tunnels, ..packets::Options::default() };
    let mut readers = (
        is_wanted("connections").then(|| Reading::new(options, Wanted::all(true))),
        (
            is_wanted("flows")
                .then(|| tcptrace::Rows::new(tcptrace::Options { tunnels, ..tcptrace::Options::default() })),
            (
                is_wanted("packetisation").then(|| packets::Analyzer::new(packet_options.clone())),
                (
                    (is_wanted("exchanges") || is_wanted("steps")).then(|| http::Analyzer::new(http_options())),
                    (
                        is_wanted("streams")
                            .then(|| udp::Engine::new(udp::Options { tunnels, ..udp::Options::default() })),
                        (
                            is_wanted("stalls").then(|| stalls::Analyzer::new(tunnels)),
                            is_wanted("observer").then(|| Observer::new(tunnels)),
                        ),
                    ),
                ),
            ),
        ),
    );
    let read = py.detach(|| {
        let Ending { origin, stops } = captures::read(vec![path.clone()], |frame| readers.frame(frame))?;
        let stop = stops.first().map(|(_, stop)| stop.clone());
        let (log, (flows, (mut packetisation, (mut requests, (streams, (stalls, observed)))))) =
            readers.finish(Ended { origin, stop });
        if !stops.is_empty() {
            // These take no damaged capture: they say what is wrong, or that only its last record is cut off.
            packetisation =
                packetisation.map(|_| whole(&path, packets::Analyzer::new(packet_options.clone()))).transpose()?;
            requests = requests.map(|_| whole(&path, http::Analyzer::new(http_options()))).transpose()?;
        }
        Ok::<_, PyErr>((log, flows.map(flow_batch), packetisation, requests, streams, stalls, observed, stops))
    })?;
    let (log, flows, packetisation, requests, streams, stalls, observed, stops) = read;
    let tables = PyDict::new(py);
    let mut about = None;
    if let Some(log) = log {
        let (batches, summary) = log.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        tables.set_item("connections", table_of(py, Ok(batches))?)?;
        let mut summary = summary;
        if let Some((_, notes)) = &flows {
            // The log does not look at the order of times.
            let dated = notes.iter().filter(|(note, _)| note.starts_with("dated_"));
            summary.notes.extend(dated.map(|(note, count)| (*note, *count)));
        }
        let dict = summary_dict(py, &summary)?;
        dict.set_item("truncated", truncated(py, &stops)?)?;
        about = Some(dict);
    }
    if let Some((flows, _)) = flows {
        tables.set_item("flows", table(py, flows)?)?;
    }
    if let Some(done) = packetisation {
        tables.set_item("packetisation", table(py, direction_columns(&done).batch())?)?;
        tables.set_item("segment_sizes", table(py, size_columns(&done.sizes).batch())?)?;
    }
    if let Some(done) = requests {
        if is_wanted("exchanges") {
            tables.set_item("exchanges", table(py, exchange_columns(&done).batch())?)?;
        }
        if is_wanted("steps") {
            tables.set_item("steps", table(py, step_columns(&done).batch())?)?;
            tables.set_item("step_waits", table(py, wait_columns(&done).batch())?)?;
            tables.set_item("step_packets", table(py, packet_columns(&done).batch())?)?;
        }
    }
    if let Some(done) = streams {
        tables.set_item("streams", table(py, stream_rows(&done.rows))?)?;
    }
    if let Some(done) = stalls {
        tables.set_item("stalls", table(py, stall_columns(&done.rows).batch())?)?;
    }
    if let Some(done) = observed {
        tables.set_item("fingerprints", table(py, host_columns(&done).batch())?)?;
        tables.set_item("windows", table(py, window_columns(&done.windows).batch())?)?;
    }
    Ok((tables, about))
}

fn flow_batch((rows, summary): (Vec<Row>, Summary)) -> (Result<RecordBatch, ArrowError>, Counts) {
    let columns: Vec<Column<Row>> = columns();
    (batch(&columns, &schema(&columns), &rows), summary.notes)
}
