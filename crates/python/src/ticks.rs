//! `time_stamp_counter_hz`: how fast this machine's time stamp counter counts.

use std::arch::x86_64::_rdtsc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Between the two readings that are compared: where each is 100 ns off, 4 in a million.
const APART: Duration = Duration::from_millis(50);
/// So many are made for a reading; the one around which the least time passed was not interrupted.
const TRIES: usize = 20;

#[pyfunction]
pub fn time_stamp_counter_hz(py: Python<'_>) -> f64 {
    py.detach(|| {
        let start = Instant::now();
        let (first_ticks, first) = reading(start);
        std::thread::sleep(APART);
        let (last_ticks, last) = reading(start);
        last_ticks.wrapping_sub(first_ticks) as f64 / (last - first).as_secs_f64()
    })
}

/// The counter, and the time on CLOCK_MONOTONIC at which it was read.
fn reading(start: Instant) -> (u64, Duration) {
    let tries = (0..TRIES).map(|_| {
        let before = start.elapsed();
        // SAFETY: every x86-64 has the counter; where a process may not read it, this one is ended.
        let ticks = unsafe { _rdtsc() };
        let after = start.elapsed();
        (after - before, ticks, (before + after) / 2)
    });
    let (_, ticks, at) = tries.min_by_key(|(took, _, _)| *took).expect("some tries");
    (ticks, at)
}
