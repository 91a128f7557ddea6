//! `timeline_distances`: how unlike requests are.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinbed_core::timelines::{distances, Timeline};

use crate::numbers::numbers;

#[pyfunction]
pub fn timeline_distances(
    py: Python<'_>,
    timelines: Vec<(String, Bound<'_, PyAny>, Bound<'_, PyAny>)>,
) -> PyResult<Vec<f64>> {
    let read = |(kinds, counts, gaps): &(String, Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Timeline::new(kinds, numbers(counts)?, numbers(gaps)?)
            .ok_or_else(|| PyValueError::new_err("a timeline whose kinds, counts and gaps are not as many"))
    };
    let timelines = timelines.iter().map(read).collect::<PyResult<Vec<_>>>()?;
    Ok(py.detach(|| distances(&timelines)))
}
