//! `frames`: a capture's packets as they are in it, one row each.

use pyo3::prelude::*;
use twinbed_core::capture::{read_slice, Frame};
use twinbed_core::wire::{dissect, udp, Dissected, Packet, Transport};

use crate::arrow::{table, Columns};
use crate::artifact::ArtifactError;

#[pyfunction]
pub fn frames<'py>(py: Python<'py>, capture: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let rows = py.detach(|| {
        let mut rows: Vec<Row> = Vec::new();
        read_slice(capture, |frame| rows.push(Row::of(frame)))?;
        Ok(rows)
    });
    let rows = rows.map_err(|error: twinbed_core::Error| ArtifactError::new_err(error.to_string()))?;
    let mut columns = Columns::default();
    columns.optional_integer("time_ns", rows.iter().map(|row| row.time_ns));
    columns.integer("bytes", rows.iter().map(|row| i64::from(row.bytes)));
    columns.integer("captured_bytes", rows.iter().map(|row| row.captured_bytes));
    for (name, bytes) in HEADERS {
        columns.optional_integer(
            name,
            rows.iter().map(|row| row.headers.as_ref().map(|headers| i64::from(bytes(headers)))),
        );
    }
    table(py, columns.batch())
}

type Header = (&'static str, fn(&Headers) -> u32);
const HEADERS: [Header; 3] = [
    ("link_header_bytes", |headers| headers.link_bytes),
    ("ip_header_bytes", |headers| headers.ip_bytes),
    ("transport_header_bytes", |headers| headers.transport_bytes),
];

struct Row {
    time_ns: Option<i64>,
    bytes: u32,
    captured_bytes: i64,
    headers: Option<Headers>,
}

/// Of TCP and UDP packets whose headers could be read.
struct Headers {
    link_bytes: u32,
    ip_bytes: u32,
    transport_bytes: u32,
}

impl Row {
    fn of(frame: &Frame) -> Self {
        let headers = match dissect(frame) {
            Dissected::Ip(packet) => Headers::of(&packet),
            Dissected::NonIp { .. } | Dissected::Unusable { .. } => None,
        };
        Row { time_ns: frame.time_ns, bytes: frame.original_bytes, captured_bytes: frame.data.len() as i64, headers }
    }
}

impl Headers {
    fn of(packet: &Packet) -> Option<Self> {
        let transport_bytes = match packet.transport {
            Transport::Tcp(segment) => u32::from(segment.header_bytes),
            Transport::Udp(_) => udp::HEADER_BYTES,
            Transport::Other | Transport::Fragment | Transport::Unusable { .. } => return None,
        };
        let ip_bytes = packet.ip_bytes.checked_sub(packet.transport_bytes)?;
        Some(Headers { link_bytes: packet.transport_offset.checked_sub(ip_bytes)?, ip_bytes, transport_bytes })
    }
}
