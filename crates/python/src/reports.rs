//! `ab`, `ab_requests`, `ab_percentiles`, `wrk`: what load generators print.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::reports::{ab as ab_report, ab_requests as requests, wrk as wrk_report};
use twinbed_core::Error;

use crate::arrow::{table, Columns};
use crate::artifact::ArtifactError;

fn wrong(error: Error) -> PyErr {
    ArtifactError::new_err(error.to_string())
}

/// A dict with the named fields of a record.
macro_rules! fields {
    ($py:expr, $record:expr, $($name:ident),+ $(,)?) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(stringify!($name), &$record.$name)?;)+
        dict
    }};
}

#[pyfunction]
pub fn ab<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let report = py.detach(|| ab_report::parse(text)).map_err(wrong)?;
    let dict = fields!(
        py,
        report,
        version,
        server_software,
        server_hostname,
        server_port,
        tls_protocol,
        tls_server_key,
        tls_server_name,
        document_path,
        document_bytes,
        document_length_varies,
        workers,
        concurrency,
        concurrency_achieved,
        ramp_s,
        duration_s,
        complete_requests,
        failed_requests,
        write_errors,
        non_2xx_responses,
        keep_alive_requests,
        keep_alive_aborts,
        transferred_bytes,
        html_bytes,
        body_sent_bytes,
        requests_per_second,
        time_per_request_s,
        time_per_request_across_all_s,
        received_bytes_per_second,
        sent_bytes_per_second,
        total_bytes_per_second,
        percentiles,
        warnings,
        messages,
        aborted_after_requests,
    );
    let failures = match report.failures {
        Some(failures) => Some(fields!(py, failures, connect, receive, length, exceptions)),
        None => None,
    };
    dict.set_item("failures", failures)?;
    let tables = [
        ("connect", report.connect),
        ("processing", report.processing),
        ("waiting", report.waiting),
        ("total", report.total),
    ];
    for (name, times) in tables {
        let times = match times {
            Some(times) => Some(fields!(py, times, min_s, mean_s, deviation_s, median_s, max_s)),
            None => None,
        };
        dict.set_item(name, times)?;
    }
    Ok(dict)
}

#[pyfunction]
pub fn ab_requests<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let batch = py
        .detach(|| {
            let rows = requests::parse(text)?;
            let mut columns = Columns::default();
            columns.integer("start_s", rows.iter().map(|row| row.start_s));
            columns.real("connect_s", rows.iter().map(|row| row.connect_s));
            columns.real("processing_s", rows.iter().map(|row| row.processing_s));
            columns.real("total_s", rows.iter().map(|row| row.total_s));
            columns.real("waiting_s", rows.iter().map(|row| row.waiting_s));
            Ok(columns.batch())
        })
        .map_err(wrong)?;
    table(py, batch)
}

#[pyfunction]
pub fn ab_percentiles<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let rows = py.detach(|| ab_report::parse_percentiles(text)).map_err(wrong)?;
    let mut columns = Columns::default();
    columns.integer("percent", rows.iter().map(|row| i64::from(row.0)));
    columns.real("total_s", rows.iter().map(|row| row.1));
    table(py, columns.batch())
}

#[pyfunction]
pub fn wrk<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let report = py.detach(|| wrk_report::parse(text)).map_err(wrong)?;
    let dict = fields!(
        py,
        report,
        requested_duration_s,
        url,
        threads,
        connections,
        percentiles,
        requests,
        duration_s,
        read_bytes,
        non_2xx_or_3xx_responses,
        requests_per_second,
        read_bytes_per_second,
    );
    let errors = match report.socket_errors {
        Some(errors) => Some(fields!(py, errors, connect, read, write, timeout)),
        None => None,
    };
    dict.set_item("socket_errors", errors)?;
    let latency = match report.latency {
        Some(spread) => {
            let latency = PyDict::new(py);
            latency.set_item("mean_s", spread.mean)?;
            latency.set_item("deviation_s", spread.deviation)?;
            latency.set_item("max_s", spread.max)?;
            latency.set_item("within_deviation", spread.within_deviation)?;
            Some(latency)
        }
        None => None,
    };
    dict.set_item("latency", latency)?;
    let rate = match report.thread_requests_per_second {
        Some(spread) => Some(fields!(py, spread, mean, deviation, max, within_deviation)),
        None => None,
    };
    dict.set_item("thread_requests_per_second", rate)?;
    Ok(dict)
}
