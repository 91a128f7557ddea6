//! Windows that a side advertised, and the data that was outstanding against them.

/// Advertised windows, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Advertised {
    sum: u64,
    max: u32,
    /// Smallest above 0.
    min: u32,
    zero: u32,
    /// Packets since the scale came into force.
    scaled_packets: u32,
    pub is_scaled: bool,
    has_any: bool,
}

impl Advertised {
    pub const NONE: Advertised =
        Advertised { sum: 0, max: 0, min: 0, zero: 0, scaled_packets: 0, is_scaled: false, has_any: false };

    /// The first window that the agreed scale applies to: what SYNs said before does not count (RFC 7323, 2.2).
    #[inline]
    pub fn scale_agreed(&mut self) {
        *self = Advertised { zero: self.zero, is_scaled: true, ..Advertised::NONE };
    }

    #[inline]
    pub fn packet(&mut self) {
        self.scaled_packets = self.scaled_packets.saturating_add(1);
    }

    #[inline]
    pub fn add(&mut self, window: u32, is_ack: bool) {
        self.sum += u64::from(window);
        self.has_any = true;
        if window == 0 {
            self.zero += u32::from(is_ack);
            return;
        }
        self.max = self.max.max(window);
        if self.min == 0 || window < self.min {
            self.min = window;
        }
    }

    pub fn max(&self) -> Option<u64> {
        self.has_any.then_some(u64::from(self.max))
    }

    pub fn min(&self) -> Option<u64> {
        self.has_any.then_some(u64::from(self.min))
    }

    pub fn zero(&self) -> u64 {
        u64::from(self.zero)
    }

    /// Over all `packets`; over those since the scale came into force where that holds for both sides.
    pub fn mean(&self, packets: u32, both_scaled: bool) -> Option<f64> {
        let count = if both_scaled { self.scaled_packets } else { packets };
        (self.has_any && count > 0).then(|| self.sum as f64 / f64::from(count))
    }
}

/// Data sent and not acknowledged (tcptrace: owin), sampled when new data or nothing new is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFlight {
    sum: i64,
    /// Bytes times nanoseconds.
    weighted: f64,
    last_ns: i64,
    last: u32,
    max: u32,
    min: u32,
    count: u32,
}

impl InFlight {
    pub const NONE: InFlight = InFlight { sum: 0, weighted: 0.0, last_ns: 0, last: 0, max: 0, min: 0, count: 0 };

    #[inline]
    pub fn sample(&mut self, bytes: i64, time_ns: i64) {
        if self.count > 0 {
            self.weighted += f64::from(self.last) * time_ns.saturating_sub(self.last_ns).max(0) as f64;
        }
        self.last_ns = time_ns;
        self.sum += bytes;
        self.count = self.count.saturating_add(1);
        // Below 0 where more was acknowledged than the capture holds.
        self.last = bytes.clamp(0, i64::from(u32::MAX)) as u32;
        self.max = self.max.max(self.last);
        if self.last > 0 && (self.min == 0 || self.last < self.min) {
            self.min = self.last;
        }
    }

    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(u64::from(self.max))
    }

    pub fn min(&self) -> Option<u64> {
        (self.min > 0).then_some(u64::from(self.min))
    }

    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / f64::from(self.count))
    }

    /// Weighted by time, over the connection's `elapsed_ns`.
    pub fn weighted_mean(&self, elapsed_ns: i64) -> Option<f64> {
        (self.count > 0 && elapsed_ns > 0).then(|| self.weighted / elapsed_ns as f64)
    }
}
