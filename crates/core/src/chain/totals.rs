//! Totals of the calls of one name.

/// The totals of one call in one program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTotals {
    pub calls: u64,
    /// Calls whose duration is known.
    pub timed: u64,
    /// Their durations together.
    pub duration_ns: u64,
    /// The calls that the timed ones stand for: all that returned if the timed ones are a random sample, else themselves.
    pub represented: u64,
    /// The squares of a sample's durations together.
    pub squares_ns2: u128,
    /// Calls that gave back an error.
    pub errors: u64,
    /// The positive values they gave back, together: bytes, where [`moves_bytes`](crate::syscall::moves_bytes) says so.
    pub positive: u64,
}

impl CallTotals {
    pub fn add(&mut self, more: &CallTotals) {
        self.calls = self.calls.saturating_add(more.calls);
        self.timed = self.timed.saturating_add(more.timed);
        self.duration_ns = self.duration_ns.saturating_add(more.duration_ns);
        self.represented = self.represented.saturating_add(more.represented);
        self.squares_ns2 = self.squares_ns2.saturating_add(more.squares_ns2);
        self.errors = self.errors.saturating_add(more.errors);
        self.positive = self.positive.saturating_add(more.positive);
    }

    /// The time of all represented calls in seconds, if each took the mean of the timed ones. `None` without any.
    pub fn seconds(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.duration_ns as f64 / 1e9 * (self.represented as f64 / self.timed as f64))
    }

    /// The standard error of [`seconds`](Self::seconds): of a mean from a random sample without replacement of a finite
    /// population (Cochran, Sampling Techniques, 3rd ed., 2.5). 0 where all were timed, `None` where fewer than two of
    /// more were.
    pub fn seconds_standard_error(&self) -> Option<f64> {
        if self.timed == 0 || self.timed >= self.represented {
            return (self.timed > 0).then_some(0.0);
        }
        if self.timed == 1 {
            return None;
        }
        let (timed, represented) = (self.timed as f64, self.represented as f64);
        let sum = self.duration_ns as f64;
        let variance = ((self.squares_ns2 as f64 - sum * sum / timed) / (timed - 1.0)).max(0.0);
        Some(represented * (variance / timed * (1.0 - timed / represented)).sqrt() / 1e9)
    }
}
