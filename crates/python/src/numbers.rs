//! Numbers from Python.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// An array of float64 in one copy, or any sequence of numbers.
pub fn numbers(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    match PyBuffer::<f64>::get(values) {
        Ok(buffer) if buffer.dimensions() == 1 => buffer.to_vec(values.py()),
        _ => values.extract(),
    }
}
