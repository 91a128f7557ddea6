//! The observations in the order of x, and which of them are near a point.

use std::ops::Range;

use super::error::Error;

/// Sorted by x; equal x keep their order.
#[derive(Debug, Clone)]
pub struct Sample {
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub weights: Vec<f64>,
    /// Where each stood in what was given.
    pub places: Vec<usize>,
}

/// Observations with a weight at a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    pub range: Range<usize>,
    /// The distance at which weights are 0.
    pub radius: f64,
}

impl Sample {
    pub fn new(x: &[f64], y: &[f64], weights: Option<&[f64]>) -> Result<Self, Error> {
        if x.len() != y.len() || weights.is_some_and(|weights| weights.len() != y.len()) {
            return Err(Error::Lengths { x: x.len(), y: y.len(), weights: weights.map(<[f64]>::len) });
        }
        for (what, values) in [("x", x), ("y", y), ("weights", weights.unwrap_or_default())] {
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                return Err(Error::NotFinite { what, at });
            }
        }
        if let Some((at, weight)) = weights.into_iter().flatten().enumerate().find(|(_, weight)| **weight <= 0.0) {
            return Err(Error::Weight { at, weight: *weight });
        }
        let mut places: Vec<usize> = (0..x.len()).collect();
        places.sort_by(|one, two| x[*one].total_cmp(&x[*two]));
        let sorted = |values: &[f64]| places.iter().map(|at| values[*at]).collect::<Vec<f64>>();
        let weights = weights.map_or_else(|| vec![1.0; x.len()], sorted);
        Ok(Sample { x: sorted(x), y: sorted(y), weights, places })
    }

    pub fn len(&self) -> usize {
        self.x.len()
    }

    /// How many observations a span takes.
    pub fn neighbours(&self, span: f64) -> usize {
        // The addend keeps a share such as 0.3 of 10 from falling below 3.
        ((self.len() as f64 * span + 1e-5).floor() as usize).min(self.len())
    }

    pub fn near(&self, at: f64, span: f64) -> Result<Near, Error> {
        let count = self.neighbours(span);
        let (mut low, mut high) = (0, self.len() - count);
        // The first window of `count` whose lower end is no farther than what follows its upper end.
        while low < high {
            let middle = (low + high) / 2;
            if at - self.x[middle] > self.x[middle + count] - at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let farthest = (at - self.x[low]).max(self.x[low + count - 1] - at);
        if farthest <= 0.0 {
            let ties = self.x.iter().filter(|x| **x == at).count();
            return Err(Error::Ties { x: at, neighbours: count, ties });
        }
        Ok(Near { range: low..low + count, radius: farthest * span.max(1.0).sqrt() })
    }
}

/// Tricube: of a distance over the radius.
pub fn tricube(share: f64) -> f64 {
    if share >= 1.0 {
        0.0
    } else {
        (1.0 - share.powi(3)).powi(3)
    }
}
