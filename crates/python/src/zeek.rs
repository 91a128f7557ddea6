//! `connection_log`: captures into one row per connection as Zeek's conn.log has it, and a summary.

use std::net::IpAddr;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::capture::{Ended, Frame, Stop};
use twinbed_core::readers::zeek::{self, Log, Options, Row, Summary, Verdicts};
use twinbed_core::readers::Reader;

use crate::arrow::{table_or_rows, Columns};
use crate::capture::seconds;
use crate::captures::{self, truncated, Ending};

#[pyfunction]
#[pyo3(signature = (paths, *, tunnels=false, ignore_checksums=false, unfinished_are_bad=false, port=None, host=None,
    from_ns=None, until_ns=None, max_connections=1_000_000, as_rows=false))]
#[allow(clippy::too_many_arguments)]
pub fn connection_log<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    tunnels: bool,
    ignore_checksums: bool,
    unfinished_are_bad: bool,
    port: Option<u16>,
    host: Option<&str>,
    from_ns: Option<i64>,
    until_ns: Option<i64>,
    max_connections: usize,
    as_rows: bool,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    if max_connections == 0 {
        return Err(PyValueError::new_err("max_connections is 0, expected at least 1"));
    }
    let host = host.map(|host| host.parse::<IpAddr>()).transpose();
    let host = host.map_err(|_| PyValueError::new_err("host is no IP address"))?;
    let options = Options { tunnels, ignore_checksums, unfinished_are_bad, max_connections };
    let wanted = Wanted { no_rows: false, port, host, from_ns, until_ns };
    let (batches, summary, stops) = py.detach(|| read(paths, options, wanted))?;
    let dict = summary_dict(py, &summary)?;
    dict.set_item("truncated", truncated(py, &stops)?)?;
    Ok((table_or_rows(py, Ok(batches), as_rows)?, dict))
}

/// Which packets count, and which connections are rows.
#[derive(Default)]
pub struct Wanted {
    /// The summary alone.
    no_rows: bool,
    port: Option<u16>,
    host: Option<IpAddr>,
    from_ns: Option<i64>,
    until_ns: Option<i64>,
}

impl Wanted {
    pub fn all(with_rows: bool) -> Self {
        Wanted { no_rows: !with_rows, ..Wanted::default() }
    }

    /// A packet without a time is in every span.
    fn counts(&self, frame: &Frame) -> bool {
        frame.time_ns.is_none_or(|time| {
            self.from_ns.is_none_or(|from| time >= from) && self.until_ns.is_none_or(|until| time < until)
        })
    }

    fn is_row(&self, row: &Row) -> bool {
        let port = |port| row.originator_port == port || row.responder_port == port;
        let host = |host| row.originator_address == host || row.responder_address == host;
        !self.no_rows && self.port.is_none_or(port) && self.host.is_none_or(host)
    }
}

/// Rows become columns as soon as there are enough of them.
pub struct Reading {
    log: Log,
    wanted: Wanted,
    batches: Result<Vec<RecordBatch>, ArrowError>,
}

impl Reading {
    /// Rows of a batch: as many as stay in a core's cache while each column goes over them.
    const ROWS: usize = 2048;

    pub fn new(options: Options, wanted: Wanted) -> Self {
        Reading { log: Log::new(options), wanted, batches: Ok(Vec::new()) }
    }

    fn take(&mut self) {
        let Ok(batches) = &mut self.batches else { return };
        let mut taken = self.log.take();
        taken.retain(|row| self.wanted.is_row(row));
        for some in taken.chunks(Self::ROWS) {
            match rows(some) {
                Ok(batch) => batches.push(batch),
                Err(error) => {
                    self.batches = Err(error);
                    return;
                }
            }
        }
    }
}

impl Reader for Reading {
    type Tables = Result<(Vec<RecordBatch>, Summary), ArrowError>;

    fn frame(&mut self, frame: &Frame) {
        if !self.wanted.counts(frame) {
            return;
        }
        self.log.frame(frame);
        if self.log.waiting() >= Self::ROWS {
            self.take();
        }
    }

    fn finish(mut self, ended: Ended) -> Self::Tables {
        while self.log.close(Self::ROWS) {
            self.take();
        }
        self.take();
        let summary = self.log.finish(ended.origin).summary;
        let mut batches = self.batches?;
        if batches.is_empty() {
            batches.push(rows(&[])?);
        }
        Ok((batches, summary))
    }
}

type Read = (Vec<RecordBatch>, Summary, Vec<(PathBuf, Stop)>);

fn read(paths: Vec<PathBuf>, options: Options, wanted: Wanted) -> PyResult<Read> {
    let mut reading = Reading::new(options, wanted);
    let Ending { origin, stops } = captures::read(paths, |frame| reading.frame(frame))?;
    let done = reading.finish(Ended { origin, stop: None });
    let (batches, summary) = done.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok((batches, summary, stops))
}

fn rows(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    let texts = |text: fn(&Row) -> String| -> Vec<String> { rows.iter().map(text).collect() };
    let addresses =
        |address: fn(&Row) -> IpAddr| -> Vec<String> { rows.iter().map(|row| address(row).to_string()).collect() };
    let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    columns.text("uid", texts(Row::uid).iter().map(String::as_str));
    columns.optional_real("start_s", rows.iter().map(|row| seconds(row.start_ns)));
    columns.optional_integer("start_ns", rows.iter().map(|row| row.start_ns));
    columns.text("originator_address", addresses(|row| row.originator_address).iter().map(String::as_str));
    columns.port("originator_port", rows.iter().map(|row| row.originator_port));
    columns.text("responder_address", addresses(|row| row.responder_address).iter().map(String::as_str));
    columns.port("responder_port", rows.iter().map(|row| row.responder_port));
    columns.text("protocol", rows.iter().map(|row| row.protocol.name()));
    columns.integer("ip_protocol", rows.iter().map(|row| i64::from(row.ip_protocol)));
    columns.optional_real("duration_s", rows.iter().map(|row| seconds(row.duration_ns)));
    columns.optional_integer("duration_ns", rows.iter().map(|row| row.duration_ns));
    columns.optional_integer("originator_bytes", rows.iter().map(|row| row.originator_bytes.map(integer)));
    columns.optional_integer("responder_bytes", rows.iter().map(|row| row.responder_bytes.map(integer)));
    columns.text("state", rows.iter().map(|row| row.state.name()));
    columns.integer("missed_bytes", rows.iter().map(|row| integer(row.missed_bytes)));
    columns.integer("unseen_bytes", rows.iter().map(|row| integer(row.unseen_bytes)));
    let history = |row: &Row| (!row.history.letters().is_empty()).then(|| row.history.as_str().to_owned());
    let histories: Vec<Option<String>> = rows.iter().map(history).collect();
    columns.optional_text("history", histories.iter().map(Option::as_deref));
    type Side = fn(&Row) -> &zeek::Counts;
    let sides: [(&str, Side); 2] = [("originator", |row| &row.originator), ("responder", |row| &row.responder)];
    for (name, side) in sides {
        for (count, value) in COUNTS {
            columns.integer(format!("{name}_{count}"), rows.iter().map(|row| integer(value(side(row)))));
        }
    }
    columns.optional_bool("tunnelled", rows.iter().map(|row| Some(row.is_tunnelled)));
    columns.batch()
}

/// A direction's columns: name and value.
type Count = (&'static str, fn(&zeek::Counts) -> u64);
const COUNTS: [Count; 4] = [
    ("packets", |counts| counts.packets),
    ("ip_bytes", |counts| counts.ip_bytes),
    ("frame_bytes", |counts| counts.frame_bytes),
    ("payload_bytes", |counts| counts.payload_bytes),
];

pub fn summary_dict<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("packets", summary.packets)?;
    dict.set_item("bytes", summary.bytes)?;
    dict.set_item("captured_bytes", summary.captured_bytes)?;
    dict.set_item("first_s", seconds(summary.first_ns))?;
    dict.set_item("last_s", seconds(summary.last_ns))?;
    dict.set_item("first_ns", summary.first_ns)?;
    dict.set_item("last_ns", summary.last_ns)?;
    dict.set_item("not_ip", &summary.not_ip)?;
    dict.set_item("connections", summary.connections)?;
    dict.set_item("evicted_connections", summary.evicted_connections)?;
    let checksums = PyDict::new(py);
    let of = &summary.checksums;
    for (name, verdicts) in
        [("ipv4", of.ipv4), ("tcp", of.tcp), ("udp", of.udp), ("icmp", of.icmp), ("icmpv6", of.icmpv6)]
    {
        checksums.set_item(name, verdicts_dict(py, verdicts)?)?;
    }
    dict.set_item("checksums", checksums)?;
    dict.set_item("ignored_packets", summary.ignored_packets)?;
    dict.set_item("interfaces", summary.interfaces)?;
    dict.set_item("dropped_packets", summary.dropped_packets)?;
    dict.set_item("skipped", &summary.skipped)?;
    dict.set_item("notes", &summary.notes)?;
    Ok(dict)
}

fn verdicts_dict(py: Python<'_>, verdicts: Verdicts) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("good", verdicts.good)?;
    dict.set_item("bad", verdicts.bad)?;
    dict.set_item("partial", verdicts.partial)?;
    dict.set_item("not_checked", verdicts.not_checked)?;
    Ok(dict)
}
