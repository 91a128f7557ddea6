//! From the earliest packet to the latest.

/// Widens the time from `first` to `last` so that it holds `time_ns`. Packets need not come in the order of their times.
#[inline]
pub(crate) fn widen(first: &mut Option<i64>, last: &mut Option<i64>, time_ns: Option<i64>) {
    if let Some(time) = time_ns {
        *first = Some(first.map_or(time, |first| first.min(time)));
        *last = Some(last.map_or(time, |last| last.max(time)));
    }
}
