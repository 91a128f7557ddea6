//! Bursts and the gaps between them: the packet trains of Jain and Routhier ("Packet Trains: Measurements and a New Model
//! for Computer Network Traffic", IEEE JSAC 4(6), 1986), in one direction of one connection.
//!
//! A burst goes on while each data packet follows the one before within the threshold (their maximum allowed inter-car
//! gap); a longer gap ends it. The threshold is the same for all testbeds ([`DEFAULT_GAP_NS`], 1 ms), not a part of each
//! one's round-trip time, because bursts cut by different rulers cannot be compared: it is longer than a full frame takes
//! at 12 Mbit/s and than devices hold packets back to save interrupts, and shorter than a user's or a disk's pause.

/// A longer gap ends a burst.
pub const DEFAULT_GAP_NS: i64 = 1_000_000;

/// Bursts of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bursts {
    pub count: u64,
    /// Over all bursts: packets on the wire, payload bytes.
    pub packets: u64,
    pub bytes: u64,
    /// Packets and bytes of the largest bursts.
    pub packets_max: u64,
    pub bytes_max: u64,
    /// Over all gaps (one fewer than bursts), from a burst's last packet to the next one's first.
    pub gaps_ns: u64,
    pub gap_max_ns: u64,
}

impl Bursts {
    pub fn packets_mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.packets as f64 / self.count as f64)
    }

    pub fn bytes_mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.bytes as f64 / self.count as f64)
    }

    pub fn gap_mean_s(&self) -> Option<f64> {
        (self.count > 1).then(|| self.gaps_ns as f64 / 1e9 / (self.count - 1) as f64)
    }

    pub fn gap_max_s(&self) -> Option<f64> {
        (self.count > 1).then(|| self.gap_max_ns as f64 / 1e9)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Trains {
    done: Bursts,
    last_ns: Option<i64>,
    packets: u64,
    bytes: u64,
}

impl Trains {
    /// Adds a data packet. Packets without a time are in no burst; one before its forerunner counts as simultaneous.
    #[inline]
    pub fn add(&mut self, time_ns: Option<i64>, wire_packets: u64, payload_bytes: u32, gap_ns: i64) {
        let Some(time) = time_ns else { return };
        if let Some(last) = self.last_ns {
            let gap = time.saturating_sub(last).max(0);
            if gap > gap_ns {
                self.end();
                self.done.gaps_ns = self.done.gaps_ns.saturating_add(gap as u64);
                self.done.gap_max_ns = self.done.gap_max_ns.max(gap as u64);
            }
        }
        self.last_ns = Some(self.last_ns.map_or(time, |last| last.max(time)));
        self.packets += wire_packets;
        self.bytes += u64::from(payload_bytes);
    }

    fn end(&mut self) {
        if self.packets > 0 {
            self.done.count += 1;
            self.done.packets += self.packets;
            self.done.bytes += self.bytes;
            self.done.packets_max = self.done.packets_max.max(self.packets);
            self.done.bytes_max = self.done.bytes_max.max(self.bytes);
            (self.packets, self.bytes) = (0, 0);
        }
    }

    pub fn finish(&mut self) -> Bursts {
        self.end();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_above_the_threshold_begins_another_burst() {
        let mut trains = Trains::default();
        // Milliseconds 0, 0.5, 1.5 (1 ms later: same burst), 4, 4.1.
        for (us, packets, bytes) in [(0, 1, 100), (500, 2, 2000), (1500, 1, 300), (4000, 1, 50), (4100, 1, 60)] {
            trains.add(Some(us * 1000), packets, bytes, DEFAULT_GAP_NS);
        }
        let bursts = trains.finish();
        assert_eq!((bursts.count, bursts.packets, bursts.bytes), (2, 6, 2510));
        assert_eq!((bursts.packets_max, bursts.bytes_max), (4, 2400));
        assert_eq!(bursts.packets_mean(), Some(3.0));
        assert_eq!(bursts.bytes_mean(), Some(1255.0));
        assert_eq!(bursts.gap_mean_s(), Some(0.0025));
        assert_eq!(bursts.gap_max_s(), Some(0.0025));
    }

    #[test]
    fn nothing_is_missing_not_zero() {
        assert_eq!(Trains::default().finish().packets_mean(), None);
        let mut one = Trains::default();
        one.add(Some(5), 1, 1, DEFAULT_GAP_NS);
        assert_eq!(one.finish().gap_mean_s(), None);
        let mut untimed = Trains::default();
        untimed.add(None, 1, 1, DEFAULT_GAP_NS);
        assert_eq!(untimed.finish().count, 0);
    }
}
