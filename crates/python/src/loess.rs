//! `loess`: points with one predictor into a smooth curve.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::loess as core;
use twinbed_core::loess::{Family, Params, Surface};

use crate::arrow::{table, Columns};
use crate::numbers::numbers;

#[pyfunction]
#[pyo3(signature = (x, y, at, span=0.75, degree=2))]
pub fn loess_curve(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    at: &Bound<'_, PyAny>,
    span: f64,
    degree: usize,
) -> PyResult<Vec<f64>> {
    let (x, y, at) = (numbers(x)?, numbers(y)?, numbers(at)?);
    if let Some(at) = at.iter().find(|at| !at.is_finite()) {
        return Err(PyValueError::new_err(format!("at {at}, expected a finite number")));
    }
    py.detach(|| core::curve(&x, &y, span, degree, &at)).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pyfunction]
#[pyo3(signature = (x, y, span=0.75, degree=2, family="gaussian", surface="interpolate", weights=None, at=None, level=0.95))]
#[allow(clippy::too_many_arguments)]
pub fn loess<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    span: f64,
    degree: usize,
    family: &str,
    surface: &str,
    weights: Option<&Bound<'py, PyAny>>,
    at: Option<&Bound<'py, PyAny>>,
    level: f64,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let family = match family {
        "gaussian" => Family::Gaussian,
        "symmetric" => Family::Symmetric,
        other => return Err(PyValueError::new_err(format!("family {other:?}, expected gaussian or symmetric"))),
    };
    let surface = match surface {
        "interpolate" => Surface::Interpolate,
        "direct" => Surface::Direct,
        other => return Err(PyValueError::new_err(format!("surface {other:?}, expected interpolate or direct"))),
    };
    if !(level > 0.0 && level < 1.0) {
        return Err(PyValueError::new_err(format!("level {level}, expected between 0 and 1")));
    }
    let (x, y) = (numbers(x)?, numbers(y)?);
    let weights = weights.map(numbers).transpose()?;
    let given = at.map(numbers).transpose()?;
    let params = Params { span, degree, family, surface };
    let (fit, points) = py
        .detach(|| {
            let fit = core::fit(&x, &y, weights.as_deref(), params)?;
            let points = fit.predict(given.as_deref().unwrap_or(&x), level)?;
            Ok::<_, core::Error>((fit, points))
        })
        .map_err(|error| PyValueError::new_err(error.to_string()))?;

    let mut columns = Columns::default();
    columns.real("at", given.as_deref().unwrap_or(&x).iter().copied());
    columns.optional_real("fit", points.iter().map(|point| Some(point.as_ref()?.fit)));
    let spread = || points.iter().map(|point| point.as_ref()?.interval);
    columns.optional_real("standard_error", spread().map(|spread| Some(spread?.standard_error)));
    columns.optional_real("low", spread().map(|spread| Some(spread?.low)));
    columns.optional_real("high", spread().map(|spread| Some(spread?.high)));
    if given.is_none() {
        columns.real("robustness", fit.robustness.iter().copied());
    }
    let summary = PyDict::new(py);
    summary.set_item("observations", x.len())?;
    summary.set_item("equivalent_parameters", fit.deltas.parameters)?;
    summary.set_item("trace", fit.deltas.trace)?;
    summary.set_item("delta_one", fit.deltas.one)?;
    summary.set_item("delta_two", fit.deltas.two)?;
    summary.set_item("residual_scale", fit.residual_scale)?;
    summary.set_item("degrees_of_freedom", fit.degrees_of_freedom())?;
    Ok((table(py, columns.batch())?, summary))
}
