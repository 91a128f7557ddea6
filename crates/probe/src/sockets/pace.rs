//! When to sample next: on a grid, for less than a share of one CPU, and ever more rarely as the room for samples runs out.

/// A sample takes at most 1 / 121 of a CPU: a little is left of a hundredth for the start and the end.
const IDLE_PER_BUSY: i64 = 120;

pub struct Pace {
    start_ns: i64,
    asked_interval_ns: i64,
    doublings: u32,
    /// Points of the grid that were left out.
    pub skipped: u64,
}

impl Pace {
    pub fn new(start_ns: i64, interval_ns: i64) -> Self {
        Pace { start_ns, asked_interval_ns: interval_ns, doublings: 0, skipped: 0 }
    }

    pub fn interval_ns(&self) -> i64 {
        self.asked_interval_ns << self.doublings
    }

    /// The next point of the grid after a sample that began at `begun_ns` and took so much of a CPU. What was missed is left
    /// out, not made up for.
    pub fn next(&mut self, begun_ns: i64, now_ns: i64, cpu_ns: i64) -> i64 {
        let interval = self.interval_ns();
        let earliest = now_ns.max(begun_ns + IDLE_PER_BUSY * cpu_ns);
        let point = |at: i64| (at - self.start_ns).div_euclid(interval);
        // The timer may fire a moment before its point.
        let here = point(begun_ns + interval / 2);
        let next = (point(earliest - 1) + 1).max(here + 1);
        self.skipped += (next - here - 1) as u64;
        self.start_ns + next * interval
    }

    /// `fill` is how much of the room is taken, from 0 to 1: beyond a half, three quarters, and so on, the interval doubles.
    /// True where it did.
    pub fn stretch(&mut self, fill: f64) -> bool {
        let stretched = self.doublings < 20 && fill >= 1.0 - 0.5f64.powi(self.doublings as i32 + 1);
        self.doublings += u32::from(stretched);
        stretched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_were_missed_are_left_out() {
        let mut pace = Pace::new(1000, 100);
        assert_eq!(pace.next(1000, 1010, 0), 1100);
        assert_eq!((pace.next(1101, 1200, 0), pace.skipped), (1200, 0));
        // It began late: 1300 was its point.
        assert_eq!((pace.next(1340, 1390, 0), pace.skipped), (1400, 0));
        assert_eq!((pace.next(1400, 1730, 0), pace.skipped), (1800, 3));
    }

    #[test]
    fn what_takes_long_is_done_rarely() {
        let mut pace = Pace::new(0, 100);
        assert_eq!((pace.next(500, 510, 1), pace.skipped), (700, 1));
        assert_eq!((pace.next(700, 700, 2), pace.skipped), (1000, 3));
    }

    #[test]
    fn the_interval_doubles_at_each_half_of_what_is_left() {
        let mut pace = Pace::new(0, 10);
        let mut at = Vec::new();
        for percent in 0..100 {
            if pace.stretch(f64::from(percent) / 100.0) {
                at.push((percent, pace.interval_ns()));
            }
        }
        assert_eq!(at, [(50, 20), (75, 40), (88, 80), (94, 160), (97, 320), (99, 640)]);
        assert_eq!(pace.next(0, 1, 0), 640);
    }
}
