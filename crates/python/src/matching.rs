//! `match_captures`: two captures of one path, one row a direction of each connection.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::delays::Spread;
use twinbed_core::readers::matching::{self, Amount, CaptureFacts, Densities, Options, Pairing, Row};

use crate::arrow::{table_or_rows, Columns};
use crate::artifact::{open, unreadable, with_reader};
use crate::capture::{check_mtu, seconds};
use twinbed_core::flow::protocol;

const THERE: &str = "sender_to_receiver_side";
const BACK: &str = "receiver_to_sender_side";

#[pyfunction]
#[pyo3(signature = (sender_side, receiver_side, *, mtu=1500, tunnels=false, as_rows=false))]
pub fn match_captures<'py>(
    py: Python<'py>,
    sender_side: PathBuf,
    receiver_side: PathBuf,
    mtu: u32,
    tunnels: bool,
    as_rows: bool,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    check_mtu(mtu)?;
    let options = Options { mtu, tunnels };
    let (batch, pairing) = py.detach(|| {
        let (first, second) = (open(&sender_side)?, open(&receiver_side)?);
        let pairing =
            with_reader(first, |first| with_reader(second, |second| matching::match_captures(first, second, &options)));
        let pairing = pairing
            .map_err(|unread| unreadable(unread.error, if unread.is_second { &receiver_side } else { &sender_side }))?;
        Ok::<_, PyErr>((rows(&pairing.rows), pairing))
    })?;
    Ok((table_or_rows(py, batch.map(|batch| vec![batch]), as_rows)?, summary(py, &pairing)?))
}

fn rows(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    let protocols: Vec<String> = rows.iter().map(|row| protocol(row.protocol)).collect();
    columns.text("protocol", protocols.iter().map(String::as_str));
    columns.ends(rows.iter().map(|row| (row.source, row.destination)));
    let passes = |row: &Row| if row.from_first { THERE } else { BACK };
    columns.text("passes", rows.iter().map(passes));
    columns.text("passes_by", rows.iter().map(|row| row.orientation.name()));
    for (name, value) in AMOUNTS {
        columns.integer(format!("{name}_packets"), rows.iter().map(|row| value(row).packets as i64));
        columns.integer(format!("{name}_payload_bytes"), rows.iter().map(|row| value(row).payload_bytes as i64));
    }
    for (name, value) in COUNTS {
        columns.integer(name, rows.iter().map(|row| value(row) as i64));
    }
    columns.optional_integer("delay_samples", rows.iter().map(|row| Some(row.raw_delay?.count as i64)));
    for (name, value) in DELAY {
        columns.optional_real(name, rows.iter().map(|row| Some(value(&row.raw_delay?) as f64 / 1e9)));
    }
    columns.batch()
}

fn protocol(number: u8) -> String {
    protocol::name(number).map_or_else(|| format!("ip_protocol_{number}"), str::to_owned)
}

type AmountOf = (&'static str, fn(&Row) -> Amount);
const AMOUNTS: [AmountOf; 10] = [
    ("sent", |r| r.sent),
    ("arrived", |r| r.arrived),
    ("lost", |r| r.lost),
    ("partly_lost", |r| r.partly_lost),
    ("appeared", |r| r.appeared),
    ("duplicated", |r| r.duplicated),
    ("edge_sent", |r| r.edge_sent),
    ("edge_arrived", |r| r.edge_arrived),
    ("split", |r| r.split),
    ("merged", |r| r.merged),
];

type Count = (&'static str, fn(&Row) -> u64);
const COUNTS: [Count; 10] = [
    ("matched_sent_packets", |r| r.matched_sent_packets),
    ("matched_arrived_packets", |r| r.matched_arrived_packets),
    ("lost_ranges", |r| r.lost_ranges),
    ("reordered_packets", |r| r.reordered_packets),
    ("three_reordered_packets", |r| r.three_reordered_packets),
    ("capture_reordered_packets", |r| r.capture_reordered_packets),
    ("split_parts", |r| r.split_parts),
    ("merged_parts", |r| r.merged_parts),
    ("sent_super_packets", |r| r.sent_super_packets),
    ("arrived_super_packets", |r| r.arrived_super_packets),
];

type Delay = (&'static str, fn(&Spread) -> i64);
const DELAY: [Delay; 7] = [
    ("raw_delay_min_s", |d| d.min_ns),
    ("delay_variation_p50_s", |d| d.p50_ns.saturating_sub(d.min_ns)),
    ("delay_variation_p95_s", |d| d.p95_ns.saturating_sub(d.min_ns)),
    ("delay_variation_p99_s", |d| d.p99_ns.saturating_sub(d.min_ns)),
    ("delay_variation_max_s", |d| d.max_ns.saturating_sub(d.min_ns)),
    ("delay_p95_p50_s", |d| d.p95_ns.saturating_sub(d.p50_ns)),
    ("delay_resolution_s", |d| d.resolution_ns),
];

fn summary<'py>(py: Python<'py>, pairing: &Pairing) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("sender_side", facts(py, &pairing.first)?)?;
    dict.set_item("receiver_side", facts(py, &pairing.second)?)?;
    dict.set_item("matches", pairing.matches)?;
    let nothing = (pairing.matches == 0).then_some(
        "no packet of one capture was found in the other: other traffic, or addresses rewritten between them (NAT)",
    );
    dict.set_item("nothing_matched", nothing)?;
    dict.set_item("clock_offset_if_symmetric_s", seconds(pairing.clock_offset_if_symmetric_ns))?;
    dict.set_item("least_round_trip_s", seconds(pairing.least_round_trip_ns))?;
    dict.set_item("reorder_density", densities(pairing, |each| each.displacements().collect()))?;
    dict.set_item("reorder_buffer_occupancy_density", densities(pairing, |each| each.occupancies().collect()))?;
    dict.set_item("notes", &pairing.notes)?;
    Ok(dict)
}

/// (way, displacement or occupancy, packets).
fn densities(pairing: &Pairing, of: fn(&Densities) -> Vec<(i64, u64)>) -> Vec<(&'static str, i64, u64)> {
    let ways = [THERE, BACK].into_iter().zip(&pairing.densities);
    ways.flat_map(|(way, each)| of(each).into_iter().map(move |(value, packets)| (way, value, packets))).collect()
}

fn facts<'py>(py: Python<'py>, facts: &CaptureFacts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("packets", facts.packets)?;
    dict.set_item("first_ns", facts.first_ns)?;
    dict.set_item("last_ns", facts.last_ns)?;
    dict.set_item("skipped", &facts.skipped)?;
    dict.set_item("dropped_packets", facts.dropped_packets)?;
    dict.set_item("stopped", facts.stopped.as_ref().map(|stop| &stop.reason))?;
    Ok(dict)
}
