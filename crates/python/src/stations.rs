//! `stations`: the file of `twinbed-probe stations`.

use std::path::PathBuf;

use pyo3::prelude::*;
use twinbed_core::stations::Stations;

use crate::arrow::{repeated, table, Columns};
use crate::artifact::with_bytes;

fn connections(stations: &Stations) -> Columns {
    let ends = &stations.connections;
    let mut columns = Columns::default();
    columns.integer("connection", (0..).take(ends.len()));
    for (name, is_own) in [("own", true), ("other", false)] {
        let of = |at: usize| ends.get(at).map(|it| if is_own { it.own } else { it.other });
        let addresses: Vec<String> = (0..ends.len()).filter_map(of).map(|(address, _)| address.to_string()).collect();
        columns.text(&format!("{name}_address"), addresses.iter().map(String::as_str));
        columns.port(&format!("{name}_port"), (0..ends.len()).filter_map(of).map(|(_, port)| port));
    }
    columns
}

fn rows(stations: &Stations) -> Columns {
    let rows = &stations.rows;
    let mut columns = Columns::default();
    columns.add("station", repeated(rows.iter().map(|row| Some(row.station))), false);
    columns.optional_integer("connection", rows.iter().map(|row| row.connection.map(i64::from)));
    columns.integer("time_ns", rows.iter().map(|row| row.time_ns));
    columns.optional_integer("end_ns", rows.iter().map(|row| row.end_ns));
    columns.integer("sequence", rows.iter().map(|row| i64::from(row.sequence)));
    columns.integer("bytes", rows.iter().map(|row| i64::from(row.bytes)));
    columns.integer("flags", rows.iter().map(|row| i64::from(row.flags)));
    columns.integer("thread", rows.iter().map(|row| i64::from(row.thread)));
    columns.integer("process", rows.iter().map(|row| i64::from(row.process)));
    for (name, value) in &stations.header {
        columns.fact(name, value);
    }
    for (name, count) in [
        ("lost", stations.lost),
        ("missed", stations.missed),
        ("beyond", stations.beyond),
        ("unknown", stations.unknown),
        ("clocks_within_ns", stations.clocks_within_ns.unsigned_abs()),
    ] {
        columns.fact(name, count);
    }
    if let Some(error) = &stations.cut_off {
        columns.fact("cut_off", error);
    }
    columns
}

#[pyfunction]
pub fn stations(py: Python<'_>, path: PathBuf) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyAny>)> {
    let [connections, rows] = py.detach(|| {
        let stations = with_bytes(&path, Stations::parse)?;
        Ok::<_, PyErr>([connections(&stations).batch(), rows(&stations).batch()])
    })?;
    Ok((table(py, connections)?, table(py, rows)?))
}
