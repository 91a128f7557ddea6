//! How unlike two requests are: the least cost of turning one sequence of timed packets into the other, by dynamic programming.
//!
//! Of Victor and Purpura (1997, Network 8:127), `D_interval` with labels that cannot be changed into each other.

/// Packets, or pieces of several packets, in order; of each its kind, how many packets it has, and the time since the one before
/// it, in the unit in which a change of 1 costs 1. All three have one length.
pub struct Timeline {
    kinds: Vec<char>,
    counts: Vec<f64>,
    gaps: Vec<f64>,
}

impl Timeline {
    /// None where the three have different lengths.
    pub fn new(kinds: &str, counts: Vec<f64>, gaps: Vec<f64>) -> Option<Timeline> {
        let kinds: Vec<char> = kinds.chars().collect();
        (kinds.len() == counts.len() && kinds.len() == gaps.len()).then_some(Timeline { kinds, counts, gaps })
    }
}

/// Of each to each after it: (0, 1), (0, 2), ... (1, 2), ...
pub fn distances(timelines: &[Timeline]) -> Vec<f64> {
    let mut found = Vec::with_capacity(timelines.len() * timelines.len().saturating_sub(1) / 2);
    let mut row = Vec::new();
    for (at, one) in timelines.iter().enumerate() {
        found.extend(timelines[at + 1..].iter().map(|two| distance(one, two, &mut row)));
    }
    found
}

/// To remove or to add n packets costs n. To change n packets into m of the same kind costs |n - m| and the change of their time.
/// `row` holds, for the packets of `one` so far, the cost of turning them into each beginning of `two`.
fn distance(one: &Timeline, two: &Timeline, row: &mut Vec<f64>) -> f64 {
    let mut cost = 0.0;
    row.clear();
    row.push(cost);
    row.extend(two.counts.iter().map(|count| {
        cost += count;
        cost
    }));
    for ((kind, weight), gap) in one.kinds.iter().zip(&one.counts).zip(&one.gaps) {
        let mut before = row[0];
        row[0] += weight;
        for (at, ((other, count), time)) in two.kinds.iter().zip(&two.counts).zip(&two.gaps).enumerate() {
            let mut least = (row[at + 1] + weight).min(row[at] + count);
            if kind == other {
                least = least.min(before + (weight - count).abs() + (gap - time).abs());
            }
            before = std::mem::replace(&mut row[at + 1], least);
        }
    }
    row[two.counts.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(kinds: &str, gaps: &[f64]) -> Timeline {
        Timeline::new(kinds, vec![1.0; kinds.len()], gaps.to_vec()).unwrap()
    }

    #[test]
    fn worked_out_on_paper() {
        let base = timeline("SsAP", &[0.0, 1.0, 1.0, 1.0]);
        let cases = [
            (timeline("SsAP", &[0.0, 1.0, 1.0, 1.0]), 0.0),
            (timeline("SsAP", &[0.0, 1.5, 1.0, 1.0]), 0.5), // one time is changed
            (timeline("SsAF", &[0.0, 1.0, 1.0, 1.0]), 2.0), // a kind is not changed into another
            (timeline("SsAP", &[0.0, 1.0, 1.0, 37.0]), 2.0), // removed and added for less
            (timeline("SsAAP", &[0.0, 1.0, 1.0, 0.75, 0.25]), 1.75), // one is added, one's time falls
            (timeline("", &[]), 4.0),
        ];
        for (other, expected) in cases {
            assert_eq!(distances(&[timeline("SsAP", &base.gaps), other]), [expected]);
        }
    }

    #[test]
    fn all_pairs_in_order() {
        let found = distances(&[timeline("S", &[0.0]), timeline("", &[]), timeline("SS", &[0.0, 1.0])]);
        assert_eq!(found, [1.0, 1.0, 2.0]);
        assert!(distances(&[]).is_empty());
    }

    #[test]
    fn pieces_differ_by_their_packets() {
        let pieces = |count| Timeline::new("+", vec![count], vec![0.0]).unwrap();
        assert_eq!(distances(&[pieces(3.0), pieces(5.0)]), [2.0]);
        assert!(Timeline::new("SS", vec![1.0], vec![0.0]).is_none());
    }
}
