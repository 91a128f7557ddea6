//! `packetisation` and `requests`: a capture into tables of directions, payload sizes and HTTP exchanges.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::capture::Counts;
use twinbed_core::flow::Protocol;
use twinbed_core::readers::http::{self, Delimited, Exchange, Requests, Way};
use twinbed_core::readers::packetisation::{self as packets, Connection, Direction, Packetisation, Size};
use twinbed_core::readers::{read_slice, read_stream, Reader};

use crate::arrow::{table, Columns};
use crate::artifact::{open, unreadable, wrong, Artifact};
use crate::capture::{check_mtu, seconds};

type Tables<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyDict>);

#[pyfunction]
#[pyo3(signature = (path, *, mtu=1500, tunnels=false, burst_gap_s=0.001))]
pub fn packetisation<'py>(
    py: Python<'py>,
    path: PathBuf,
    mtu: u32,
    tunnels: bool,
    burst_gap_s: f64,
) -> PyResult<Tables<'py>> {
    check_mtu(mtu)?;
    if !(0.0..=1e9).contains(&burst_gap_s) {
        return Err(PyValueError::new_err(format!("burst_gap_s is {burst_gap_s}, expected 0 to 1e9")));
    }
    let options = packets::Options { mtu, tunnels, burst_gap_ns: (burst_gap_s * 1e9).round() as i64 };
    let (directions, sizes, done) = py.detach(|| {
        let done = whole(&path, packets::Analyzer::new(options))?;
        Ok::<_, PyErr>((direction_columns(&done), size_columns(&done.sizes), done.summary))
    })?;
    let summary = PyDict::new(py);
    summary.set_item("packets", done.packets)?;
    summary.set_item("connections_without_payload", done.connections_without_payload)?;
    summary.set_item("packets_without_payload_connection", done.packets_without_payload_connection)?;
    end(&summary, done.connections_finished_early, done.dropped_packets, &done.skipped)?;
    Ok((table(py, directions.batch())?, table(py, sizes.batch())?, summary))
}

#[pyfunction]
#[pyo3(signature = (path, *, mtu=1500, tunnels=false))]
pub fn requests(
    py: Python<'_>,
    path: PathBuf,
    mtu: u32,
    tunnels: bool,
) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyDict>)> {
    check_mtu(mtu)?;
    let options = http::Options { mtu, tunnels, ..http::Options::default() };
    let (columns, done) = py.detach(|| {
        let done = whole(&path, http::Analyzer::new(options))?;
        Ok::<_, PyErr>((exchange_columns(&done), done.summary))
    })?;
    let summary = PyDict::new(py);
    summary.set_item("packets", done.packets)?;
    summary.set_item("other_connections", done.other_connections)?;
    end(&summary, done.connections_finished_early, done.dropped_packets, &done.skipped)?;
    Ok((table(py, columns.batch())?, summary))
}

/// What a reader makes of a whole capture; one that is damaged is an error.
pub fn whole<R: Reader>(path: &Path, reader: R) -> PyResult<R::Tables> {
    match open(path)? {
        Artifact::Mapped(map) => read_slice(reader, &map).map_err(|error| wrong(path, &error)),
        Artifact::Stream(stream) => read_stream(reader, stream).map_err(|error| unreadable(error, path)),
    }
}

/// What both summaries end with.
fn end(summary: &Bound<'_, PyDict>, finished_early: u64, dropped: Option<u64>, skipped: &Counts) -> PyResult<()> {
    summary.set_item("connections_finished_early", finished_early)?;
    summary.set_item("dropped_packets", dropped)?;
    summary.set_item("skipped", skipped)
}

/// A row for each direction, the originator's first.
#[derive(Clone, Copy)]
struct Row<'a> {
    connection: &'a Connection,
    from_originator: bool,
    own: &'a Direction,
    peer: &'a Direction,
}

impl Row<'_> {
    fn is_tcp(&self) -> bool {
        self.connection.protocol == Protocol::Tcp
    }
}

fn direction_name(from_originator: bool) -> &'static str {
    match from_originator {
        true => "originator",
        false => "responder",
    }
}

pub fn direction_columns(done: &Packetisation) -> Columns {
    let rows = || {
        done.connections.iter().flat_map(|connection| {
            let (own, peer) = (&connection.originator, &connection.responder);
            [
                Row { connection, from_originator: true, own, peer },
                Row { connection, from_originator: false, own: peer, peer: own },
            ]
        })
    };
    let mut columns = Columns::default();
    columns.text("protocol", rows().map(|row| row.connection.protocol.name()));
    let originators: Vec<String> = rows().map(|row| row.connection.originator_address.to_string()).collect();
    columns.text("originator_address", originators.iter().map(String::as_str));
    columns.port("originator_port", rows().map(|row| row.connection.originator_port));
    let responders: Vec<String> = rows().map(|row| row.connection.responder_address.to_string()).collect();
    columns.text("responder_address", responders.iter().map(String::as_str));
    columns.port("responder_port", rows().map(|row| row.connection.responder_port));
    columns.integer("first_packet", rows().map(|row| row.connection.first_packet as i64));
    columns.text("direction", rows().map(|row| direction_name(row.from_originator)));
    columns.optional_integer("start_ns", rows().map(|row| row.connection.start_ns));
    columns.optional_real(
        "duration_s",
        rows().map(|row| seconds(Some(row.connection.end_ns?.saturating_sub(row.connection.start_ns?)))),
    );
    columns.optional_real("handshake_s", rows().map(|row| seconds(row.connection.handshake_ns)));
    for (name, count, tcp_only) in COUNTS {
        if tcp_only {
            columns.optional_integer(name, rows().map(|row| row.is_tcp().then(|| count(row.own) as i64)));
        } else {
            columns.integer(name, rows().map(|row| count(row.own) as i64));
        }
    }
    for (name, count) in BURSTS {
        // Without times there are data packets and no bursts.
        let is_timed = |row: &Row| row.own.bursts.count > 0 || row.own.counts.data_segments == 0;
        columns.optional_integer(name, rows().map(|row| is_timed(&row).then(|| count(row.own) as i64)));
    }
    for (name, value, tcp_only) in VALUES {
        columns.optional_real(name, rows().map(|row| value(row.own, row.peer).filter(|_| row.is_tcp() || !tcp_only)));
    }
    columns
}

/// Name, value, whether only TCP has it.
type Count = (&'static str, fn(&Direction) -> u64, bool);
const COUNTS: [Count; 17] = [
    ("packets", |d| d.counts.packets, false),
    ("bytes", |d| d.counts.bytes, false),
    ("payload_bytes", |d| d.counts.payload_bytes, false),
    ("data_segments", |d| d.counts.data_segments, false),
    ("super_packets", |d| d.counts.super_packets, false),
    ("wire_packets", |d| d.counts.wire_packets, false),
    ("wire_data_packets", |d| d.counts.wire_data_packets, false),
    ("pure_acks", |d| d.counts.pure_acks, true),
    ("in_flight_max_bytes", |d| d.in_flight.max_bytes, true),
    ("retransmitted_packets", |d| d.disorder.retransmitted_packets, true),
    ("retransmitted_bytes", |d| d.disorder.retransmitted_bytes, true),
    ("recovered_packets", |d| d.disorder.recovered_packets, true),
    ("recovered_bytes", |d| d.disorder.recovered_bytes, true),
    ("reordered_packets", |d| d.disorder.reordered_packets, true),
    ("reordering_extent_sum", |d| d.disorder.extents, true),
    ("reordering_extent_max", |d| d.disorder.extent_max, true),
    ("nagle_waits", |d| d.nagle_waits.count, true),
];

type Burst = (&'static str, fn(&Direction) -> u64);
const BURSTS: [Burst; 3] = [
    ("bursts", |d| d.bursts.count),
    ("burst_packets_max", |d| d.bursts.packets_max),
    ("burst_bytes_max", |d| d.bursts.bytes_max),
];

/// As [`Count`], of the direction and the other one.
type Value = (&'static str, fn(&Direction, &Direction) -> Option<f64>, bool);
const VALUES: [Value; 12] = [
    ("burst_packets_mean", |d, _| d.bursts.packets_mean(), false),
    ("burst_bytes_mean", |d, _| d.bursts.bytes_mean(), false),
    ("gap_mean_s", |d, _| d.bursts.gap_mean_s(), false),
    ("gap_max_s", |d, _| d.bursts.gap_max_s(), false),
    ("in_flight_mean_bytes", |d, _| d.in_flight.mean_bytes(), true),
    ("data_phase_s", |d, _| (d.counts.data_segments > 0).then_some(d.in_flight.phase_ns as f64 / 1e9), true),
    ("in_flight_s", |d, _| (d.counts.data_segments > 0).then_some(d.in_flight.busy_ns as f64 / 1e9), true),
    ("nagle_wait_s", |d, _| (d.counts.data_segments > 0).then_some(d.nagle_waits.ns as f64 / 1e9), true),
    ("acks_per_data_packet", |d, peer| d.acks_per_data_packet(peer), true),
    ("retransmission_rate", |d, _| d.retransmission_rate(), true),
    ("retransmission_byte_rate", |d, _| d.retransmission_byte_rate(), true),
    ("reordering_extent_mean", |d, _| d.disorder.extent_mean(), true),
];

pub fn size_columns(sizes: &[Size]) -> Columns {
    let mut columns = Columns::default();
    columns.integer("first_packet", sizes.iter().map(|row| row.first_packet as i64));
    columns.text("direction", sizes.iter().map(|row| direction_name(row.from_originator)));
    columns.integer("least_payload_bytes", sizes.iter().map(|row| i64::from(row.count.least_bytes)));
    columns.integer("most_payload_bytes", sizes.iter().map(|row| i64::from(row.count.most_bytes)));
    columns.integer("segments", sizes.iter().map(|row| row.count.segments as i64));
    columns.integer("wire_packets", sizes.iter().map(|row| row.count.wire_packets as i64));
    columns
}

pub fn exchange_columns(done: &Requests) -> Columns {
    // What is encrypted has steps alone: no answer of it is known for one.
    let rows: Vec<&Exchange> = done.exchanges.iter().filter(|row| row.delimited != Delimited::Records).collect();
    let connection = |row: &Exchange| done.connections.get(row.connection as usize);
    let clients: Vec<String> = done.connections.iter().map(|row| row.client_address.to_string()).collect();
    let servers: Vec<String> = done.connections.iter().map(|row| row.server_address.to_string()).collect();
    fn address<'a>(list: &'a [String], row: &Exchange) -> &'a str {
        list.get(row.connection as usize).map_or("", String::as_str)
    }
    let mut columns = Columns::default();
    columns.text("client_address", rows.iter().map(|row| address(&clients, row)));
    columns.port("client_port", rows.iter().map(|row| connection(row).map_or(0, |connection| connection.client_port)));
    columns.text("server_address", rows.iter().map(|row| address(&servers, row)));
    columns.port("server_port", rows.iter().map(|row| connection(row).map_or(0, |connection| connection.server_port)));
    columns.integer(
        "first_packet",
        rows.iter().map(|row| connection(row).map_or(0, |connection| connection.first_packet as i64)),
    );
    columns.integer("index", rows.iter().map(|row| i64::from(row.index)));
    columns.optional_text("method", rows.iter().map(|row| row.method));
    columns.optional_integer("status", rows.iter().map(|row| row.status.map(i64::from)));
    columns.optional_real("start_s", rows.iter().map(|row| seconds(row.start_ns)));
    columns.optional_integer("start_ns", rows.iter().map(|row| row.start_ns));
    columns.optional_real("time_to_first_byte_s", rows.iter().map(|row| row.time_to_first_byte_s()));
    columns.optional_real("duration_s", rows.iter().map(|row| row.duration_s()));
    columns.optional_bool("complete", rows.iter().map(|row| Some(row.complete)));
    columns.text("delimited", rows.iter().map(|row| row.delimited.name()));
    type Side = fn(&Exchange) -> &Way;
    let sides: [(&str, Side); 2] = [("client", |row| &row.client), ("server", |row| &row.server)];
    type WayCount = (&'static str, fn(&Way) -> u64);
    const WAY: [WayCount; 4] = [
        ("packets", |way| way.packets),
        ("wire_packets", |way| way.wire_packets),
        ("bytes", |way| way.bytes),
        ("payload_bytes", |way| way.payload_bytes),
    ];
    for (name, side) in sides {
        for (count, value) in WAY {
            columns.integer(format!("{name}_{count}"), rows.iter().map(|row| value(side(row)) as i64));
        }
    }
    columns
}
