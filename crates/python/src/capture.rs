//! `connections`: a capture into one row per connection and a summary.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::capture::Counts;
use twinbed_core::error::ReadError;
use twinbed_core::flow::{self, Capture, Connection, DirectionCounts, Options, Protocol, Summary};

use crate::arrow::{table_of, Columns};
use crate::artifact::{named, open, wrong, Artifact};

#[pyfunction]
#[pyo3(signature = (path, *, mtu=1500, udp_timeout_s=60.0, tunnels=false))]
pub fn connections<'py>(
    py: Python<'py>,
    path: PathBuf,
    mtu: u32,
    udp_timeout_s: f64,
    tunnels: bool,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    if mtu == 0 {
        return Err(PyValueError::new_err("mtu is 0, expected at least 1"));
    }
    if !(0.0..=1e9).contains(&udp_timeout_s) {
        return Err(PyValueError::new_err(format!("udp_timeout_s is {udp_timeout_s}, expected 0 to 1e9")));
    }
    let options = Options { mtu, udp_timeout_ns: (udp_timeout_s * 1e9) as i64, tunnels };
    let (batches, summary) = py.detach(|| {
        let capture = read(&path, &options)?;
        Ok::<_, PyErr>((batches(&capture.connections), capture.summary))
    })?;
    Ok((table_of(py, batches)?, summary_dict(py, &summary)?))
}

fn read(path: &std::path::Path, options: &Options) -> PyResult<Capture> {
    match open(path)? {
        Artifact::Mapped(map) => flow::connections(&map, options).map_err(|error| wrong(path, &error)),
        Artifact::Stream(file) => flow::connections_from(file, options).map_err(|error| match error {
            ReadError::Io(error) => named(error, path),
            ReadError::Format(error) => wrong(path, &error),
        }),
    }
}

/// Rows by as many as stay in a core's cache while each column goes over them.
fn batches(connections: &[Connection]) -> Result<Vec<RecordBatch>, ArrowError> {
    const ROWS: usize = 2048;
    if connections.is_empty() {
        return Ok(vec![rows(connections)?]);
    }
    connections.chunks(ROWS).map(rows).collect()
}

fn rows(rows: &[Connection]) -> Result<RecordBatch, ArrowError> {
    let tcp = |row: &Connection| row.protocol == Protocol::Tcp;
    let mut columns = Columns::default();
    columns.text("protocol", rows.iter().map(|row| row.protocol.name()));
    let addresses = |address: fn(&Connection) -> std::net::IpAddr| -> Vec<String> {
        rows.iter().map(|row| address(row).to_string()).collect()
    };
    columns.text("originator_address", addresses(|row| row.originator_address).iter().map(String::as_str));
    columns.port("originator_port", rows.iter().map(|row| row.originator_port));
    columns.text("responder_address", addresses(|row| row.responder_address).iter().map(String::as_str));
    columns.port("responder_port", rows.iter().map(|row| row.responder_port));
    columns.optional_real("start_s", rows.iter().map(|row| row.start_ns.map(|ns| ns as f64 / 1e9)));
    columns.optional_integer("start_ns", rows.iter().map(|row| row.start_ns));
    columns.optional_real("duration_s", rows.iter().map(Connection::duration_s));
    columns.optional_bool("complete", rows.iter().map(|row| tcp(row).then_some(row.complete)));
    columns.optional_bool("reset", rows.iter().map(|row| tcp(row).then_some(row.reset)));
    type Side = fn(&Connection) -> &DirectionCounts;
    let sides: [(&str, Side); 2] = [("originator", |row| &row.originator), ("responder", |row| &row.responder)];
    for (name, side) in sides {
        for (count, value, tcp_only) in COUNTS {
            let value = |row: &Connection| value(side(row)) as i64;
            let name = format!("{name}_{count}");
            if tcp_only {
                columns.optional_integer(name, rows.iter().map(|row| tcp(row).then(|| value(row))));
            } else {
                columns.integer(name, rows.iter().map(value));
            }
        }
    }
    columns.batch()
}

/// A direction's columns: name, value, whether only TCP has it.
type Count = (&'static str, fn(&DirectionCounts) -> u64, bool);
const COUNTS: [Count; 19] = [
    ("packets", |c| c.packets, false),
    ("bytes", |c| c.bytes, false),
    ("frame_bytes", |c| c.frame_bytes, false),
    ("payload_bytes", |c| c.payload_bytes, false),
    ("unique_payload_bytes", |c| c.unique_payload_bytes, true),
    ("retransmitted_segments", |c| c.retransmitted_segments, true),
    ("retransmitted_bytes", |c| c.retransmitted_bytes, true),
    ("retransmitted_syn_fin", |c| c.retransmitted_syn_fin, true),
    ("out_of_order_segments", |c| c.out_of_order_segments, true),
    ("pure_acks", |c| c.pure_acks, true),
    ("data_segments", |c| c.data_segments, true),
    ("max_segment_bytes", |c| c.max_segment_bytes as u64, true),
    ("syn_segments", |c| c.syn_segments, true),
    ("fin_segments", |c| c.fin_segments, true),
    ("rst_segments", |c| c.rst_segments, true),
    ("keep_alive_segments", |c| c.keep_alive_segments, true),
    ("zero_window_probes", |c| c.zero_window_probes, true),
    ("super_packets", |c| c.super_packets, false),
    ("wire_packets", |c| c.wire_packets, false),
];

pub fn summary_dict<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let seconds = |ns: Option<i64>| ns.map(|ns| ns as f64 / 1e9);
    let counts = |counts: &Counts| {
        let dict = PyDict::new(py);
        for (reason, count) in counts {
            dict.set_item(reason, count)?;
        }
        Ok::<_, PyErr>(dict)
    };
    let protocols = PyDict::new(py);
    for (number, count) in &summary.protocols {
        match protocol_name(*number) {
            Some(name) => protocols.set_item(name, count)?,
            None => protocols.set_item(format!("ip_protocol_{number}"), count)?,
        }
    }
    let dict = PyDict::new(py);
    dict.set_item("packets", summary.packets)?;
    dict.set_item("bytes", summary.bytes)?;
    dict.set_item("captured_bytes", summary.captured_bytes)?;
    dict.set_item("first_s", seconds(summary.first_ns))?;
    dict.set_item("last_s", seconds(summary.last_ns))?;
    dict.set_item("first_ns", summary.first_ns)?;
    dict.set_item("last_ns", summary.last_ns)?;
    dict.set_item("protocols", protocols)?;
    dict.set_item("non_ip_packets", summary.non_ip_packets)?;
    dict.set_item("super_packets", summary.super_packets)?;
    dict.set_item("wire_packets", summary.wire_packets)?;
    dict.set_item("interfaces", summary.interfaces)?;
    dict.set_item("dropped_packets", summary.dropped_packets)?;
    dict.set_item("skipped", counts(&summary.skipped)?)?;
    dict.set_item("notes", counts(&summary.notes)?)?;
    Ok(dict)
}

pub fn protocol_name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "icmp",
        2 => "igmp",
        4 => "ipip",
        6 => "tcp",
        17 => "udp",
        41 => "ipv6",
        47 => "gre",
        50 => "esp",
        51 => "ah",
        58 => "icmpv6",
        89 => "ospf",
        103 => "pim",
        112 => "vrrp",
        132 => "sctp",
        _ => return None,
    })
}
