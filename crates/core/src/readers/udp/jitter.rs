//! Interarrival jitter (RFC 3550, section 6.4.1): with `D = (R_j - R_i) - (S_j - S_i)` of each datagram and the one that
//! arrived before it, `J += (|D| - J) / 16`, from 0.

/// The estimate, and what it was on the way.
#[derive(Debug, Clone, Default)]
pub(super) struct Jitter {
    /// Arrival and sending time of the last datagram.
    last_ns: Option<(i64, i64)>,
    estimate_ns: f64,
    sum_ns: f64,
    max_ns: f64,
    estimates: u64,
}

/// In seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JitterEstimate {
    /// After the last datagram: what a receiver reports at the end.
    pub last_s: f64,
    /// Of the estimates after each datagram but the first.
    pub mean_s: f64,
    pub max_s: f64,
}

impl Jitter {
    pub fn arrived(&mut self, received_ns: i64, sent_ns: i64) {
        if let Some((last_received, last_sent)) = self.last_ns.replace((received_ns, sent_ns)) {
            let difference =
                received_ns.saturating_sub(last_received).saturating_sub(sent_ns.saturating_sub(last_sent));
            self.estimate_ns += (difference.unsigned_abs() as f64 - self.estimate_ns) / 16.0;
            self.sum_ns += self.estimate_ns;
            self.max_ns = self.max_ns.max(self.estimate_ns);
            self.estimates += 1;
        }
    }

    /// `None` before the second datagram.
    pub fn estimate(&self) -> Option<JitterEstimate> {
        (self.estimates > 0).then(|| JitterEstimate {
            last_s: self.estimate_ns / 1e9,
            mean_s: self.sum_ns / self.estimates as f64 / 1e9,
            max_s: self.max_ns / 1e9,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: sent every 20 ms, received 16 ms late, on time, 32 ms late:
    /// |D| = 16, 16, 32 ms; J = 16/16 = 1, then 1 + 15/16 = 1.9375, then 1.9375 + 30.0625/16 = 3.81640625 ms.
    #[test]
    fn follows_the_formula() {
        const MS: i64 = 1_000_000;
        let mut jitter = Jitter::default();
        for (received, sent) in [(100, 0), (136, 20), (140, 40), (192, 60)] {
            jitter.arrived(received * MS, sent * MS);
        }
        let estimate = jitter.estimate().expect("four datagrams");
        assert!((estimate.last_s - 3.816_406_25e-3).abs() < 1e-15);
        assert!((estimate.max_s - 3.816_406_25e-3).abs() < 1e-15);
        assert!((estimate.mean_s - (1.0 + 1.9375 + 3.816_406_25) / 3.0 * 1e-3).abs() < 1e-15);
    }

    #[test]
    fn one_datagram_has_none() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.estimate(), None);
        jitter.arrived(i64::MAX, i64::MIN);
        assert_eq!(jitter.estimate(), None);
        jitter.arrived(i64::MIN, i64::MAX);
        assert!(jitter.estimate().is_some());
    }
}
