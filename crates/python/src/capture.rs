//! What functions that read captures have in common.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twinbed_core::flow::{protocol, Summary};

pub fn check_mtu(mtu: u32) -> PyResult<()> {
    match mtu {
        0 => Err(PyValueError::new_err("mtu is 0, expected at least 1")),
        _ => Ok(()),
    }
}

pub fn seconds(ns: Option<i64>) -> Option<f64> {
    ns.map(|ns| ns as f64 / 1e9)
}

pub fn summary_dict<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let protocols = PyDict::new(py);
    for (number, count) in &summary.protocols {
        match protocol::name(*number) {
            Some(name) => protocols.set_item(name, count)?,
            None => protocols.set_item(format!("ip_protocol_{number}"), count)?,
        }
    }
    let dict = PyDict::new(py);
    dict.set_item("packets", summary.packets)?;
    dict.set_item("bytes", summary.bytes)?;
    dict.set_item("captured_bytes", summary.captured_bytes)?;
    dict.set_item("first_s", seconds(summary.first_ns))?;
    dict.set_item("last_s", seconds(summary.last_ns))?;
    dict.set_item("first_ns", summary.first_ns)?;
    dict.set_item("last_ns", summary.last_ns)?;
    dict.set_item("protocols", protocols)?;
    dict.set_item("not_ip", &summary.not_ip)?;
    dict.set_item("interfaces", summary.interfaces)?;
    dict.set_item("dropped_packets", summary.dropped_packets)?;
    dict.set_item("skipped", &summary.skipped)?;
    dict.set_item("notes", &summary.notes)?;
    Ok(dict)
}
