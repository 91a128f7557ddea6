//! A moment, by the clock and by how often the kernel has received packets so far.
//!
//! Packets do not come evenly, and fewer come while programs are attached, which slow them down. What was seen in windows is of
//! the whole as the softirqs in the windows are of all softirqs, more nearly than as the windows are of the time (a ratio
//! estimate: Cochran, Sampling Techniques, 3rd ed., chapter 6).

use std::ops::{AddAssign, Sub};

use crate::sys;

const SOFTIRQS: &str = "/proc/softirqs";
const RECEIVED: &str = "NET_RX:";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub ns: i64,
    /// That received packets, on all processors; 0 where the kernel does not say.
    pub softirqs: i64,
}

impl Moment {
    pub fn now() -> Moment {
        let text = std::fs::read_to_string(SOFTIRQS).unwrap_or_default();
        Moment { ns: sys::monotonic_ns(), softirqs: received(&text) }
    }

    /// The middle of the time that it takes to do it, with its result.
    pub fn of<T>(act: impl FnOnce() -> T) -> (Moment, T) {
        let before = Moment::now();
        let result = act();
        let after = Moment::now();
        let softirqs = i64::midpoint(before.softirqs, after.softirqs);
        (Moment { ns: i64::midpoint(before.ns, after.ns), softirqs }, result)
    }
}

/// From one to another.
impl Sub for Moment {
    type Output = Moment;

    fn sub(self, earlier: Moment) -> Moment {
        Moment { ns: self.ns - earlier.ns, softirqs: self.softirqs - earlier.softirqs }
    }
}

impl AddAssign for Moment {
    fn add_assign(&mut self, span: Moment) {
        self.ns += span.ns;
        self.softirqs += span.softirqs;
    }
}

fn received(softirqs: &str) -> i64 {
    let line = softirqs.lines().find_map(|line| line.trim_start().strip_prefix(RECEIVED));
    let counts = line.unwrap_or_default().split_whitespace();
    counts.filter_map(|count| count.parse::<i64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softirqs_are_those_of_all_processors() {
        let text = "                CPU0       CPU1\n      NET_TX:          1          2\n      NET_RX:         40          2\n";
        assert_eq!((received(text), received("")), (42, 0));
    }

    #[test]
    fn spans_add_up() {
        let [first, second] = [(10, 4), (25, 9)].map(|(ns, softirqs)| Moment { ns, softirqs });
        let mut span = second - first;
        span += span;
        assert_eq!(span, Moment { ns: 30, softirqs: 10 });
    }
}
