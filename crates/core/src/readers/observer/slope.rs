//! How fast a sender's timestamps (RFC 7323) count, by least squares: one slope for all connections, a start for each.
//!
//! A connection's sums are of time and count about their means, so that connections with other starts can be added up.

/// A rate is given where rounding to whole ticks alone leaves it this exact, as a share of the rate.
pub const RATE_EXACTNESS: f64 = 0.01;
/// Standard deviation of rounding to whole numbers.
const ROUNDING: f64 = 0.288_675_134_594_812_9;

/// The timestamps of one connection's side.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    first: Option<(i64, u32)>,
    count: f64,
    mean_s: f64,
    mean_ticks: f64,
    sums: Slope,
}

/// Sums over any number of lines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slope {
    squares: f64,
    products: f64,
}

impl Line {
    pub fn add(&mut self, time_ns: i64, ticks: u32) {
        let (first_ns, first_ticks) = *self.first.get_or_insert((time_ns, ticks));
        let seconds = time_ns.saturating_sub(first_ns) as f64 / 1e9;
        let ticks = f64::from(ticks.wrapping_sub(first_ticks) as i32);
        self.count += 1.0;
        let from_mean_s = seconds - self.mean_s;
        self.mean_s += from_mean_s / self.count;
        self.mean_ticks += (ticks - self.mean_ticks) / self.count;
        self.sums.squares += from_mean_s * (seconds - self.mean_s);
        self.sums.products += from_mean_s * (ticks - self.mean_ticks);
    }

    pub fn slope(&self) -> Slope {
        self.sums
    }
}

impl Slope {
    pub fn join(&mut self, other: Slope) {
        self.squares += other.squares;
        self.products += other.products;
    }

    /// Ticks a second, and its standard error by rounding alone. `None` where time does not tell.
    pub fn rate_hz(&self) -> Option<(f64, f64)> {
        if self.squares <= 0.0 {
            return None;
        }
        let (rate, error) = (self.products / self.squares, ROUNDING / self.squares.sqrt());
        (rate > 0.0 && error <= RATE_EXACTNESS * rate).then_some((rate, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// 250 ticks a second exactly, past the wrap of 32 bits, in two connections of other starts.
    #[test]
    fn connections_share_a_rate_and_no_start() {
        let mut pooled = Slope::default();
        for start in [u32::MAX - 100, 77] {
            let mut line = Line::default();
            (0..1000).for_each(|step| line.add(i64::from(step) * 4 * MS, start.wrapping_add(step)));
            pooled.join(line.slope());
        }
        let (rate, error) = pooled.rate_hz().expect("four seconds");
        assert!((rate - 250.0).abs() < 1e-9, "{rate}");
        // Sum of squares by hand: 2 x 0.004^2 x 1000 (1000^2 - 1) / 12.
        let squares = 2.0 * 0.004f64.powi(2) * 1000.0 * (1e6 - 1.0) / 12.0;
        assert!((error - ROUNDING / squares.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn too_short_is_no_rate() {
        assert!(Slope::default().rate_hz().is_none());
        let mut line = Line::default();
        line.add(0, 5);
        line.add(2 * MS, 7);
        assert!(line.slope().rate_hz().is_none());
        line.add(i64::MAX, 1 << 31);
        line.add(i64::MIN, 0);
        let _ = line.slope().rate_hz();
    }
}
