//! `Transitions`: counts of what followed what, and the chains that are made of them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::chain as core;
use twinbed_core::chain::graph;

use crate::arrow::{table, Columns};

#[pyclass(frozen, eq, module = "twinbed._core")]
#[derive(PartialEq)]
pub struct Transitions {
    counts: core::Transitions,
}

impl From<core::Transitions> for Transitions {
    fn from(counts: core::Transitions) -> Self {
        Transitions { counts }
    }
}

type Counted = (Option<String>, Option<String>, Option<String>, String, u64);

#[pymethods]
impl Transitions {
    #[new]
    fn new(grams: Vec<Counted>) -> PyResult<Self> {
        let mut names: Vec<&str> = Vec::new();
        for (third, second, first, call, _) in &grams {
            if third.is_some() && second.is_none() || second.is_some() && first.is_none() {
                return Err(PyValueError::new_err(format!("a call is missing between {call:?} and those before it")));
            }
            names.extend([third.as_deref(), second.as_deref(), first.as_deref(), Some(call)].into_iter().flatten());
        }
        names.sort_unstable();
        names.dedup();
        if names.len() >= usize::from(core::START) {
            return Err(PyValueError::new_err(format!("{} different calls, expected at most 65534", names.len())));
        }
        let place = |name: Option<&str>| {
            name.and_then(|name| names.binary_search(&name).ok()).map_or(core::START, |at| at as u16)
        };
        let packed = grams.iter().map(|(third, second, first, call, count)| {
            let gram = [third.as_deref(), second.as_deref(), first.as_deref(), Some(call.as_str())].map(place);
            (gram, *count)
        });
        Ok(core::Transitions::new(&names, packed).into())
    }

    #[staticmethod]
    fn of_sequence(calls: Vec<String>) -> Self {
        core::Transitions::of_sequence(&calls).into()
    }

    #[staticmethod]
    fn pool(all: Vec<PyRef<'_, Transitions>>) -> Self {
        core::Transitions::pool(all.iter().map(|one| &one.counts)).into()
    }

    #[getter]
    fn calls(&self) -> u64 {
        self.counts.calls()
    }

    #[getter]
    fn sequences(&self) -> u64 {
        self.counts.sequences()
    }

    #[getter]
    fn names(&self) -> Vec<&str> {
        self.counts.names().iter().map(AsRef::as_ref).collect()
    }

    fn __repr__(&self) -> String {
        format!("<Transitions: {} calls in {} sequences>", self.counts.calls(), self.counts.sequences())
    }

    fn grams<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut columns = Columns::default();
        let grams = || self.counts.grams();
        for (place, name) in ["before_3", "before_2", "before_1"].into_iter().enumerate() {
            columns.optional_text(name, grams().map(|(gram, _)| self.counts.name(gram[place])));
        }
        columns.text("call", grams().map(|(gram, _)| self.counts.name(gram[3]).unwrap_or_default()));
        columns.integer("count", grams().map(|(_, count)| count as i64));
        table(py, columns.batch())
    }

    #[pyo3(signature = (order=1, threshold=0.0))]
    fn states<'py>(&self, py: Python<'py>, order: usize, threshold: f64) -> PyResult<Bound<'py, PyAny>> {
        let states = graph::states(&self.chain(order, threshold)?);
        let mut columns = Columns::default();
        let names: Vec<String> = states.iter().map(|state| joined(&state.calls)).collect();
        columns.text("state", names.iter().map(String::as_str));
        columns.integer("count", states.iter().map(|state| state.count as i64));
        columns.optional_real("share", states.iter().map(|state| state.share));
        columns.integer("starts", states.iter().map(|state| state.starts as i64));
        table(py, columns.batch())
    }

    #[pyo3(signature = (order=1, threshold=0.0))]
    fn edges<'py>(&self, py: Python<'py>, order: usize, threshold: f64) -> PyResult<Bound<'py, PyAny>> {
        let chain = self.chain(order, threshold)?;
        let names: Vec<String> = graph::states(&chain).iter().map(|state| joined(&state.calls)).collect();
        let name = |state: usize| names.get(state).map_or("", String::as_str);
        let edges = graph::edges(&chain);
        let mut columns = Columns::default();
        columns.integer("from", edges.iter().map(|edge| edge.from as i64));
        columns.integer("to", edges.iter().map(|edge| edge.to as i64));
        columns.text("state", edges.iter().map(|edge| name(edge.from)));
        columns.text("call", edges.iter().map(|edge| edge.call.as_ref()));
        columns.text("next_state", edges.iter().map(|edge| name(edge.to)));
        columns.integer("count", edges.iter().map(|edge| edge.count as i64));
        columns.real("probability", edges.iter().map(|edge| edge.probability));
        columns.real("share", edges.iter().map(|edge| edge.share));
        table(py, columns.batch())
    }

    #[pyo3(signature = (other, order=1, threshold=0.0))]
    fn compare<'py>(
        &self,
        py: Python<'py>,
        other: &Transitions,
        order: usize,
        threshold: f64,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyAny>)> {
        check(order, threshold)?;
        let comparison = py.detach(|| core::compare(&self.counts, &other.counts, order, threshold));
        let dict = PyDict::new(py);
        dict.set_item("shared_edges", comparison.shared_edges)?;
        dict.set_item("only_first", comparison.only[0])?;
        dict.set_item("only_second", comparison.only[1])?;
        dict.set_item("different_edges", comparison.different_edges())?;
        dict.set_item("only_first_share", comparison.only_share[0])?;
        dict.set_item("only_second_share", comparison.only_share[1])?;
        dict.set_item("greatest_difference", comparison.greatest_difference)?;
        dict.set_item("mean_difference", comparison.mean_difference)?;
        dict.set_item("divergence_bits", comparison.divergence_bits)?;
        dict.set_item("distance", comparison.distance())?;
        let mut columns = Columns::default();
        let states: Vec<String> = comparison.edges.iter().map(|edge| joined(&edge.state)).collect();
        columns.text("state", states.iter().map(String::as_str));
        columns.text("call", comparison.edges.iter().map(|edge| edge.call.as_ref()));
        for (side, name) in ["first", "second"].into_iter().enumerate() {
            let weights = || comparison.edges.iter().map(move |edge| edge.weights[side]);
            columns.optional_integer(format!("count_{name}"), weights().map(|one| Some(one?.count as i64)));
            columns.optional_real(&format!("probability_{name}"), weights().map(|one| Some(one?.probability)));
            columns.optional_real(&format!("share_{name}"), weights().map(|one| Some(one?.share)));
        }
        Ok((dict, table(py, columns.batch())?))
    }

    #[pyo3(signature = (sequence, order=1, threshold=0.0, *, alpha=None, support=None))]
    fn walk<'py>(
        &self,
        py: Python<'py>,
        sequence: &Transitions,
        order: usize,
        threshold: f64,
        alpha: Option<f64>,
        support: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let chain = self.chain(order, threshold)?;
        let union = core::names_of_both(&self.counts, &sequence.counts).len() as u64;
        let smoothing = match alpha {
            None => None,
            Some(alpha) if alpha > 0.0 && alpha.is_finite() && support.is_none_or(|support| support >= union) => {
                Some(core::Smoothing { alpha, support: support.unwrap_or(union) })
            }
            Some(alpha) => {
                return Err(PyValueError::new_err(format!(
                    "alpha is {alpha}, expected above 0; support is {support:?}, expected at least the {union} calls of both"
                )))
            }
        };
        let walk = py.detach(|| core::walk(&chain, &sequence.counts, smoothing));
        let dict = PyDict::new(py);
        dict.set_item("transitions", walk.transitions)?;
        dict.set_item("invalid", walk.invalid)?;
        dict.set_item("invalid_kinds", walk.invalid_kinds)?;
        dict.set_item("log10_probability", walk.log10_probability())?;
        dict.set_item("log10_valid", walk.log10_valid)?;
        dict.set_item("log10_per_call", walk.log10_per_call())?;
        Ok(dict)
    }
}

impl Transitions {
    fn chain(&self, order: usize, threshold: f64) -> PyResult<core::Chain> {
        check(order, threshold)?;
        Ok(core::Chain::new(&self.counts, order, threshold))
    }
}

fn check(order: usize, threshold: f64) -> PyResult<()> {
    if !core::ORDERS.contains(&order) {
        return Err(PyValueError::new_err(format!("order is {order}, expected 1 to 3")));
    }
    if !(0.0..=1.0).contains(&threshold) {
        return Err(PyValueError::new_err(format!("threshold is {threshold}, expected 0 to 1")));
    }
    Ok(())
}

/// A state in tables: its calls, the latest last.
fn joined(calls: &[Box<str>]) -> String {
    calls.join(" ")
}
