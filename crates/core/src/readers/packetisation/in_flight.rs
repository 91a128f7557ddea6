//! Bytes in flight of one direction, as seen where the capture was made: the highest payload byte sent less the highest
//! acknowledged. Selective acknowledgments (RFC 2018) are left aside, so data that arrived above a loss still counts.
//! Away from the sender, it is what is between the capture point and the acknowledgment's return to it.
//!
//! The mean is over time, in the direction's data phase: from the first data segment to the last event that changed what
//! is in flight (a data segment, or the acknowledgment of data). Pauses in which nothing is in flight are part of it.

/// In flight over the data phase of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct InFlight {
    pub max_bytes: u64,
    /// Length of the data phase, and for how much of it something was in flight.
    pub phase_ns: u64,
    pub busy_ns: u64,
    /// Bytes in flight times nanoseconds, over the data phase.
    pub byte_ns: f64,
}

impl InFlight {
    /// Over time; `None` where the phase has no length.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.phase_ns > 0).then(|| self.byte_ns / self.phase_ns as f64)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Flight {
    total: InFlight,
    now_bytes: u64,
    last_ns: Option<i64>,
    acknowledged: i64,
}

impl Flight {
    /// Data was sent; `end` is the position after the highest byte sent so far.
    #[inline]
    pub fn sent(&mut self, time_ns: Option<i64>, end: i64) {
        self.pass(time_ns);
        self.set(end);
    }

    /// The peer acknowledges up to `position`.
    #[inline]
    pub fn acknowledged(&mut self, time_ns: Option<i64>, position: i64, end: i64) {
        if position > self.acknowledged {
            self.acknowledged = position;
            if self.now_bytes > 0 {
                self.pass(time_ns);
                self.set(end);
            }
        }
    }

    /// All up to `position` is acknowledged.
    pub fn is_acknowledged(&self, position: i64) -> bool {
        self.acknowledged >= position
    }

    #[inline]
    fn set(&mut self, end: i64) {
        self.now_bytes = end.saturating_sub(self.acknowledged).max(0) as u64;
        self.total.max_bytes = self.total.max_bytes.max(self.now_bytes);
    }

    #[inline]
    fn pass(&mut self, time_ns: Option<i64>) {
        let Some(time) = time_ns else { return };
        if let Some(last) = self.last_ns {
            let elapsed = time.saturating_sub(last).max(0) as u64;
            self.total.phase_ns = self.total.phase_ns.saturating_add(elapsed);
            if self.now_bytes > 0 {
                self.total.busy_ns = self.total.busy_ns.saturating_add(elapsed);
                self.total.byte_ns += self.now_bytes as f64 * elapsed as f64;
            }
        }
        self.last_ns = Some(self.last_ns.map_or(time, |last| last.max(time)));
    }

    pub fn finish(&self) -> InFlight {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_weighs_the_mean() {
        let mut flight = Flight::default();
        flight.sent(Some(0), 1000);
        flight.sent(Some(10), 3000);
        flight.acknowledged(Some(30), 1000, 3000);
        flight.acknowledged(Some(40), 3000, 3000);
        // Nothing in flight from 40 to 50.
        flight.sent(Some(50), 3500);
        // The FIN is acknowledged too.
        flight.acknowledged(Some(60), 3501, 3500);
        flight.acknowledged(Some(900), 3502, 3500);
        let total = flight.finish();
        assert_eq!((total.max_bytes, total.phase_ns, total.busy_ns), (3000, 60, 50));
        assert_eq!(total.byte_ns, f64::from(1000 * 10 + 3000 * 20 + 2000 * 10 + 500 * 10));
        assert_eq!(total.mean_bytes(), Some(95_000.0 / 60.0));
    }

    #[test]
    fn without_time_there_is_a_maximum_and_no_mean() {
        let mut flight = Flight::default();
        flight.sent(None, 700);
        let total = flight.finish();
        assert_eq!((total.max_bytes, total.mean_bytes()), (700, None));
    }
}
