//! `system_calls`, `system_call_names`: a trace or count file of system calls into counts by program.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use twinbed_core::chain::{tally, tally_slice, Cut, Source, Tallied};
use twinbed_core::error::ReadError;
use twinbed_core::syscall::{moves_bytes, Architecture};

use crate::arrow::{table, Columns};
use crate::artifact::{named, open, wrong, Artifact};
use crate::chain::Transitions;

#[pyfunction]
#[pyo3(signature = (path, *, architecture="x86_64", skip=0, limit=None))]
pub fn system_calls<'py>(
    py: Python<'py>,
    path: PathBuf,
    architecture: &str,
    skip: u64,
    limit: Option<u64>,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
    let architecture = known(architecture)?;
    let (programs, source) = py.detach(|| read(&path, architecture, Cut { skip, limit }))?;
    let list = PyList::empty(py);
    for program in programs {
        list.append(entry(py, program)?)?;
    }
    Ok((list, summary(py, &source)?))
}

#[pyfunction]
#[pyo3(signature = (architecture="x86_64"))]
pub fn system_call_names<'py>(py: Python<'py>, architecture: &str) -> PyResult<Bound<'py, PyDict>> {
    let names = PyDict::new(py);
    for (number, name) in known(architecture)?.calls() {
        names.set_item(number, name)?;
    }
    Ok(names)
}

fn known(name: &str) -> PyResult<Architecture> {
    Architecture::of(name).ok_or_else(|| {
        let names = Architecture::ALL.map(Architecture::name).join(", ");
        PyValueError::new_err(format!("architecture is {name:?}, expected one of {names}"))
    })
}

fn read(path: &Path, architecture: Architecture, cut: Cut) -> PyResult<(Vec<Tallied>, Source)> {
    let result = match open(path)? {
        Artifact::Mapped(map) => tally_slice(&map, architecture, cut),
        Artifact::Stream(stream) => tally(stream, architecture, cut),
    };
    result.map_err(|error| match error {
        ReadError::Io(error) => named(error, path),
        ReadError::Format(error) => wrong(path, &error),
    })
}

fn entry(py: Python<'_>, program: Tallied) -> PyResult<Bound<'_, PyTuple>> {
    let calls = &program.calls;
    let mut columns = Columns::default();
    columns.text("call", calls.iter().map(|(name, _)| name.as_ref()));
    columns.integer("calls", calls.iter().map(|(_, totals)| totals.calls as i64));
    columns.integer("timed_calls", calls.iter().map(|(_, totals)| totals.timed as i64));
    columns.optional_real("seconds", calls.iter().map(|(_, totals)| totals.seconds()));
    columns.optional_real("seconds_standard_error", calls.iter().map(|(_, totals)| totals.seconds_standard_error()));
    columns.integer("errors", calls.iter().map(|(_, totals)| totals.errors as i64));
    columns.optional_integer(
        "bytes",
        calls.iter().map(|(name, totals)| {
            (totals.represented.max(totals.positive) > 0 && moves_bytes(name)).then_some(totals.positive as i64)
        }),
    );
    let totals = table(py, columns.batch())?;
    let name = program.program.as_deref().into_pyobject(py)?;
    let transitions = Transitions::from(program.transitions).into_pyobject(py)?;
    PyTuple::new(py, [name.into_any(), transitions.into_any(), totals])
}

fn summary<'py>(py: Python<'py>, source: &Source) -> PyResult<Bound<'py, PyDict>> {
    let about = &source.summary;
    let dict = PyDict::new(py);
    dict.set_item("kind", about.kind.name())?;
    dict.set_item("architecture", about.architecture.name())?;
    dict.set_item("calls", source.calls)?;
    dict.set_item("first_ns", source.first_ns)?;
    dict.set_item("last_ns", source.last_ns)?;
    dict.set_item("lost_events", about.lost_events)?;
    dict.set_item("cut_off", about.cut_off.as_ref().map(ToString::to_string))?;
    for (name, counts) in [("skipped", &about.skipped), ("notes", &about.notes)] {
        let counted = PyDict::new(py);
        for (reason, count) in counts {
            counted.set_item(reason, count)?;
        }
        dict.set_item(name, counted)?;
    }
    dict.set_item("facts", about.facts.clone())?;
    Ok(dict)
}
