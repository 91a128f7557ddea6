//! The Python module `twinbed._core`: paths or bytes in, Arrow tables and dicts out. See `_core.pyi`.

mod arrow;
mod artifact;
mod capture;
mod capture_tables;
mod captures;
mod chain;
mod flows;
mod frames;
mod loess;
mod matching;
mod numbers;
mod observer;
mod packetisation;
mod proc;
mod reports;
mod stalls;
mod stations;
mod steps;
mod syscall;
#[cfg(target_arch = "x86_64")]
mod ticks;
mod timelines;
mod udp;
mod zeek;

use pyo3::prelude::*;

/// Readers allocate for each of millions of packets and exchanges; glibc's allocator takes a fifth of their time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ArtifactError", module.py().get_type::<artifact::ArtifactError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(udp::udp_streams, module)?)?;
    module.add_function(wrap_pyfunction!(matching::match_captures, module)?)?;
    module.add_function(wrap_pyfunction!(capture_tables::capture_tables, module)?)?;
    module.add_function(wrap_pyfunction!(zeek::connection_log, module)?)?;
    module.add_function(wrap_pyfunction!(frames::frames, module)?)?;
    module.add_function(wrap_pyfunction!(flows::flows, module)?)?;
    module.add_function(wrap_pyfunction!(flows::flows_to_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(flows::flows_share, module)?)?;
    module.add("MOST_SHARES", flows::BINS)?;
    module.add_function(wrap_pyfunction!(flows::flows_joined, module)?)?;
    module.add_function(wrap_pyfunction!(flows::flows_joined_to_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(reports::ab, module)?)?;
    module.add_function(wrap_pyfunction!(reports::ab_requests, module)?)?;
    module.add_function(wrap_pyfunction!(reports::ab_percentiles, module)?)?;
    module.add_function(wrap_pyfunction!(reports::wrk, module)?)?;
    module.add_function(wrap_pyfunction!(loess::loess, module)?)?;
    module.add_function(wrap_pyfunction!(loess::loess_curve, module)?)?;
    module.add_function(wrap_pyfunction!(packetisation::packetisation, module)?)?;
    module.add_function(wrap_pyfunction!(packetisation::requests, module)?)?;
    module.add_function(wrap_pyfunction!(proc::counters, module)?)?;
    module.add_function(wrap_pyfunction!(proc::counter_differences, module)?)?;
    module.add_function(wrap_pyfunction!(proc::counter_intervals, module)?)?;
    module.add_function(wrap_pyfunction!(proc::kernel_log, module)?)?;
    module.add_class::<chain::Transitions>()?;
    module.add_function(wrap_pyfunction!(stations::stations, module)?)?;
    module.add_function(wrap_pyfunction!(syscall::system_calls, module)?)?;
    module.add_function(wrap_pyfunction!(syscall::system_call_names, module)?)?;
    #[cfg(target_arch = "x86_64")] // for guests, which are x86_64 too
    module.add_function(wrap_pyfunction!(ticks::time_stamp_counter_hz, module)?)?;
    module.add_function(wrap_pyfunction!(timelines::timeline_distances, module)?)?;
    Ok(())
}
