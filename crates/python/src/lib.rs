//! The Python module `twinbed._core`: paths or bytes in, Arrow out.
use pyo3::prelude::*;

#[pymodule]
fn _core(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
