//! `counters`, `counter_differences`, `counter_intervals`, `kernel_log`: snapshot files of `twinbed-probe counters`.

use std::path::PathBuf;

use pyo3::prelude::*;
use twinbed_core::proc::{kernel_log as read_log, Counters, Difference, Value};

use crate::arrow::{repeated, table, Columns};
use crate::artifact::with_bytes;

fn text(value: Option<&Value>) -> Option<&str> {
    match value {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn number(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::number)
}

/// What is to be known of the file beside its rows.
fn facts(columns: &mut Columns, counters: &Counters) {
    columns.fact("snapshots", counters.taken.len());
    if let Some(error) = &counters.cut_off {
        columns.fact("cut_off", error);
    }
    if !counters.unread_sources.is_empty() {
        columns.fact("unread_sources", counters.unread_sources.join(", "));
    }
}

/// A table of a snapshot file, whose columns `fill` adds.
fn counters_table(
    py: Python<'_>,
    path: PathBuf,
    fill: impl Fn(&Counters, &mut Columns) + Sync,
) -> PyResult<Bound<'_, PyAny>> {
    let batch = py.detach(|| {
        let counters = with_bytes(&path, Counters::parse)?;
        let mut columns = Columns::default();
        fill(&counters, &mut columns);
        facts(&mut columns, &counters);
        Ok::<_, PyErr>(columns.batch())
    })?;
    table(py, batch)
}

#[pyfunction]
pub fn counters(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    counters_table(py, path, |counters, columns| {
        let mut rows: Vec<_> = (counters.series.iter())
            .flat_map(|series| series.values.iter().map(move |(at, value)| (*at, series, value.as_ref())))
            .collect();
        rows.sort_by_key(|(at, ..)| *at);
        let taken = |at: usize| counters.taken[at];
        columns.integer("snapshot", rows.iter().map(|row| taken(row.0).index as i64));
        columns.real("monotonic_s", rows.iter().map(|row| taken(row.0).monotonic_s));
        columns.real("realtime_s", rows.iter().map(|row| taken(row.0).realtime_s));
        let sources = rows.iter().map(|row| Some(counters.sources[row.1.source].as_str()));
        columns.add("source", repeated(sources), false);
        columns.add("key", repeated(rows.iter().map(|row| row.1.key.as_deref())), true);
        columns.optional_real("value", rows.iter().map(|row| number(row.2)));
        columns.optional_text("text", rows.iter().map(|row| text(row.2)));
    })
}

#[pyfunction]
pub fn counter_differences(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    counters_table(py, path, |counters, columns| {
        let rows: Vec<Difference> = counters.differences().collect();
        columns.text("source", rows.iter().map(|row| row.source));
        columns.optional_text("key", rows.iter().map(|row| row.key));
        columns.text("kind", rows.iter().map(|row| row.kind.name()));
        columns.optional_real("first", rows.iter().map(|row| number(row.first)));
        columns.optional_real("last", rows.iter().map(|row| number(row.last)));
        columns.optional_real("difference", rows.iter().map(|row| row.difference));
        columns.optional_real("mean", rows.iter().map(|row| row.mean));
        columns.optional_real("seconds", rows.iter().map(|row| row.seconds));
        columns.optional_text("first_text", rows.iter().map(|row| text(row.first)));
        columns.optional_text("last_text", rows.iter().map(|row| text(row.last)));
        columns.optional_text("note", rows.iter().map(|row| row.note));
    })
}

#[pyfunction]
pub fn counter_intervals(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    counters_table(py, path, |counters, columns| {
        let mut rows: Vec<_> = counters.intervals().collect();
        rows.sort_by_key(|row| row.from.index);
        columns.integer("snapshot", rows.iter().map(|row| row.from.index as i64));
        columns.real("start_monotonic_s", rows.iter().map(|row| row.from.monotonic_s));
        columns.real("end_monotonic_s", rows.iter().map(|row| row.to.monotonic_s));
        columns.add("source", repeated(rows.iter().map(|row| Some(row.source))), false);
        columns.add("key", repeated(rows.iter().map(|row| Some(row.key))), false);
        columns.optional_real("difference", rows.iter().map(|row| row.difference));
        columns.optional_text("note", rows.iter().map(|row| row.note));
    })
}

#[pyfunction]
pub fn kernel_log(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let batch = py.detach(|| {
        let log = with_bytes(&path, read_log)?;
        let rows = &log.records;
        let mut columns = Columns::default();
        columns.integer("sequence", rows.iter().map(|row| row.sequence as i64));
        columns.real("seconds", rows.iter().map(|row| row.seconds));
        columns.text("level", rows.iter().map(|row| row.level_name()));
        columns.integer("facility", rows.iter().map(|row| i64::from(row.facility)));
        columns.text("text", rows.iter().map(|row| row.text.as_str()));
        columns.fact("present", log.present);
        columns.fact("lost", log.lost);
        Ok::<_, PyErr>(columns.batch())
    })?;
    table(py, batch)
}
