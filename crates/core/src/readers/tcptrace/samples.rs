//! Times of one kind, kept as what their mean and deviation need.

/// tcptrace divides sums of times by the number of samples and this, which its printed means show
/// (docs/flows.md): 1 s sampled once is 999.9 ms there.
const MEAN_BIAS: f64 = 0.0001;

/// Nanoseconds in, seconds out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Samples {
    sum_ns: i64,
    min_ns: i64,
    max_ns: i64,
    squares: f64,
    count: u32,
}

impl Samples {
    pub const NONE: Samples = Samples { sum_ns: 0, min_ns: 0, max_ns: 0, squares: 0.0, count: 0 };

    #[inline]
    pub fn add(&mut self, time_ns: i64) {
        if self.count == 0 {
            self.min_ns = time_ns;
            self.max_ns = time_ns;
        } else {
            // A shortest time of 0 gives way to the next, as in tcptrace.
            if self.min_ns == 0 || time_ns < self.min_ns {
                self.min_ns = time_ns;
            }
            self.max_ns = self.max_ns.max(time_ns);
        }
        self.count = self.count.saturating_add(1);
        self.sum_ns = self.sum_ns.saturating_add(time_ns);
        self.squares += time_ns as f64 * time_ns as f64;
    }

    pub fn count(&self) -> u64 {
        u64::from(self.count)
    }

    #[inline]
    fn of_some(&self, value: impl FnOnce() -> f64) -> Option<f64> {
        (self.count > 0).then(value)
    }

    pub fn min(&self) -> Option<f64> {
        self.of_some(|| self.min_ns as f64 / 1e9)
    }

    pub fn max(&self) -> Option<f64> {
        self.of_some(|| self.max_ns as f64 / 1e9)
    }

    pub fn mean(&self) -> Option<f64> {
        self.of_some(|| self.sum_ns as f64 / 1e9 / (f64::from(self.count) + MEAN_BIAS))
    }

    /// Of the sample; from three times on, as tcptrace.
    pub fn deviation(&self) -> Option<f64> {
        if self.count < 3 {
            return None;
        }
        let (count, sum) = (f64::from(self.count), self.sum_ns as f64);
        let variance = (self.squares - sum * sum / count) / (count - 1.0);
        Some(variance.max(0.0).sqrt() / 1e9)
    }
}
