//! `udp_streams`: a capture's UDP flows, one row a direction.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::delays::Spread;
use twinbed_core::readers::udp::{
    streams, HeaderStatistics, Headers, JitterEstimate, Options, Row, SequenceCounts, Streams, Width,
};

use crate::arrow::{table, Columns};
use crate::artifact::{open, unreadable, with_reader};
use crate::capture::seconds;

#[pyfunction]
#[pyo3(signature = (path, *, headers="auto", udp_timeout_s=60.0, tunnels=false))]
pub fn udp_streams<'py>(
    py: Python<'py>,
    path: PathBuf,
    headers: &str,
    udp_timeout_s: f64,
    tunnels: bool,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let headers = match headers {
        "auto" => Headers::Recognised,
        "iperf3" => Headers::Forced(Width::Bits32),
        "iperf3-64bit" => Headers::Forced(Width::Bits64),
        "none" => Headers::Ignore,
        other => {
            let message = format!("headers is {other:?}, expected auto, iperf3, iperf3-64bit or none");
            return Err(PyValueError::new_err(message));
        }
    };
    if !(0.0..=1e9).contains(&udp_timeout_s) {
        return Err(PyValueError::new_err(format!("udp_timeout_s is {udp_timeout_s}, expected 0 to 1e9")));
    }
    let options = Options { headers, timeout_ns: (udp_timeout_s * 1e9) as i64, tunnels };
    let (batch, outcome) = py.detach(|| {
        let outcome = with_reader(open(&path)?, |reader| streams(reader, &options));
        let outcome = outcome.map_err(|error| unreadable(error, &path))?;
        Ok::<_, PyErr>((rows(&outcome.rows), outcome))
    })?;
    Ok((table(py, batch)?, summary(py, &outcome)?))
}

pub fn rows(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    columns.integer("flow", rows.iter().map(|row| row.flow as i64));
    columns.ends(rows.iter().map(|row| (row.source, row.destination)));
    columns.optional_real("start_s", rows.iter().map(|row| seconds(row.carried.first_ns)));
    columns.optional_integer("start_ns", rows.iter().map(|row| row.carried.first_ns));
    let duration = |row: &Row| seconds(Some(row.carried.last_ns?.saturating_sub(row.carried.first_ns?)));
    columns.optional_real("duration_s", rows.iter().map(duration));
    columns.integer("packets", rows.iter().map(|row| row.carried.packets as i64));
    columns.integer("bytes", rows.iter().map(|row| row.carried.bytes as i64));
    columns.integer("datagrams", rows.iter().map(|row| row.carried.datagrams as i64));
    columns.integer("payload_bytes", rows.iter().map(|row| row.carried.payload_bytes as i64));
    columns.integer("other_datagrams", rows.iter().map(|row| row.carried.other_datagrams as i64));
    columns.integer("cut_off_datagrams", rows.iter().map(|row| row.carried.cut_off as i64));
    let header = |row: &Row| {
        statistics(row).map(|headers| match headers.width {
            Width::Bits32 => "iperf3",
            Width::Bits64 => "iperf3-64bit",
        })
    };
    columns.optional_text("header", rows.iter().map(header));
    columns.optional_text("unread", rows.iter().map(|row| row.statistics.as_ref().err().map(|reason| reason.name())));
    for (name, value) in SEQUENCE {
        let value = |row: &Row| value(&statistics(row)?.sequence);
        columns.optional_integer(name, rows.iter().map(value));
    }
    columns.optional_real("loss", rows.iter().map(|row| Some(statistics(row)?.sequence.loss())));
    for (name, value) in JITTER {
        columns.optional_real(name, rows.iter().map(|row| Some(value(statistics(row)?.jitter.as_ref()?))));
    }
    for (name, value) in DELAY {
        let value = |row: &Row| seconds(Some(value(statistics(row)?.delay.as_ref()?)));
        columns.optional_real(name, rows.iter().map(value));
    }
    columns.batch()
}

fn statistics(row: &Row) -> Option<&HeaderStatistics> {
    row.statistics.as_ref().ok()
}

type Sequence = (&'static str, fn(&SequenceCounts) -> Option<i64>);
const SEQUENCE: [Sequence; 14] = [
    ("first_sequence", |c| Some(c.first)),
    ("highest_sequence", |c| Some(c.highest)),
    ("expected_datagrams", |c| Some(c.expected as i64)),
    ("distinct_datagrams", |c| Some(c.distinct as i64)),
    ("lost_datagrams", |c| Some(c.lost as i64)),
    ("lost_rfc3550", |c| Some(c.lost_rfc3550)),
    ("duplicate_datagrams", |c| Some(c.duplicates as i64)),
    ("reordered_datagrams", |c| Some(c.reordered as i64)),
    ("reordering_extent_max", |c| c.reordering_extent_max.map(|extent| extent as i64)),
    ("loss_bursts", |c| Some(c.loss_bursts as i64)),
    ("loss_burst_max", |c| Some(c.loss_burst_max as i64)),
    ("iperf3_lost", |c| Some(c.iperf3_lost as i64)),
    ("iperf3_out_of_order", |c| Some(c.iperf3_out_of_order as i64)),
    ("beyond_memory", |c| Some(c.beyond_memory as i64)),
];

type Jitter = (&'static str, fn(&JitterEstimate) -> f64);
const JITTER: [Jitter; 3] =
    [("jitter_s", |j| j.last_s), ("jitter_mean_s", |j| j.mean_s), ("jitter_max_s", |j| j.max_s)];

type Delay = (&'static str, fn(&Spread) -> i64);
const DELAY: [Delay; 3] = [
    ("delay_p95_p50_s", |d| d.p95_ns.saturating_sub(d.p50_ns)),
    ("delay_range_s", |d| d.max_ns.saturating_sub(d.min_ns)),
    ("delay_resolution_s", |d| d.resolution_ns),
];

fn summary<'py>(py: Python<'py>, streams: &Streams) -> PyResult<Bound<'py, PyDict>> {
    let mut unread: BTreeMap<&str, u64> = BTreeMap::new();
    for reason in streams.rows.iter().filter_map(|row| row.statistics.as_ref().err()) {
        *unread.entry(reason.name()).or_default() += 1;
    }
    let dict = PyDict::new(py);
    dict.set_item("packets", streams.packets)?;
    dict.set_item("udp_packets", streams.udp_packets)?;
    dict.set_item("unread", unread)?;
    dict.set_item("skipped", &streams.skipped)?;
    dict.set_item("notes", &streams.notes)?;
    dict.set_item("stopped", streams.stopped.as_ref().map(|stop| &stop.reason))?;
    Ok(dict)
}
