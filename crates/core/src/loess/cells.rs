//! The interpolating surface: values and slopes at vertices, cubic in between.

use super::error::Error;
use super::local::{local, Local};
use super::sample::Sample;

/// A cell is cut while it holds more than this share of the observations that the span takes.
const CELL: f64 = 0.2;
/// How far the outer vertices are beyond the observations, as a share of their range.
const MARGIN: f64 = 0.005;

#[derive(Debug, Clone)]
pub struct Cells {
    vertices: Vec<f64>,
    pub locals: Vec<Local>,
}

/// The shares of a point in a cell that come from value and slope of its lower vertex and of its upper one.
#[derive(Debug, Clone, Copy)]
pub struct Blend {
    pub cell: usize,
    pub shares: [f64; 4],
}

impl Cells {
    pub fn new(sample: &Sample, weights: &[f64], span: f64, degree: usize) -> Result<Self, Error> {
        let vertices = vertices(&sample.x, span);
        let locals = vertices.iter().map(|at| local(sample, weights, *at, span, degree)).collect::<Result<_, _>>()?;
        Ok(Cells { vertices, locals })
    }

    /// Cubic Hermite interpolation; for points between the outer vertices.
    pub fn blend(&self, at: f64) -> Blend {
        let above = self.vertices.partition_point(|vertex| *vertex <= at);
        let cell = above.saturating_sub(1).min(self.vertices.len() - 2);
        let width = self.vertices[cell + 1] - self.vertices[cell];
        let (t, rest) = ((at - self.vertices[cell]) / width, (self.vertices[cell + 1] - at) / width);
        let shares =
            [rest * rest * (1.0 + 2.0 * t), t * rest * rest * width, t * t * (1.0 + 2.0 * rest), -t * t * rest * width];
        Blend { cell, shares }
    }

    /// Value and slope at each vertex, one after the other.
    pub fn values(&self, y: &[f64]) -> Vec<f64> {
        let both = |local: &Local| [Local::of(&local.value, local.start, y), Local::of(&local.slope, local.start, y)];
        self.locals.iter().flat_map(both).collect()
    }
}

impl Blend {
    pub fn of(&self, values: &[f64]) -> f64 {
        self.shares.iter().zip(&values[2 * self.cell..]).map(|(share, value)| share * value).sum()
    }
}

/// Cells are halved at the observation next to their median that differs from the one after it.
fn vertices(x: &[f64], span: f64) -> Vec<f64> {
    let (first, last) = (x[0], x[x.len() - 1]);
    let range = (last - first).max(1e-10 * first.abs().max(last.abs()) + 1e-30);
    let ends = [first - MARGIN * range, last + MARGIN * range];
    let most = (x.len() as f64 * span * CELL).floor() as usize;
    let mut vertices = ends.to_vec();
    let mut cells = vec![(0, x.len(), ends)];
    while let Some((low, high, [from, to])) = cells.pop() {
        if high - low <= most.max(1) {
            continue;
        }
        let cut = cut(&x[low..high]) + low;
        let at = x[cut];
        if at > from && at < to {
            vertices.push(at);
            cells.extend([(low, cut + 1, [from, at]), (cut + 1, high, [at, to])]);
        }
    }
    vertices.sort_by(f64::total_cmp);
    vertices
}

/// The last place of the lower half.
fn cut(x: &[f64]) -> usize {
    let median = (x.len() - 1) / 2;
    for distance in 0.. {
        for place in [median.checked_add(distance), median.checked_sub(distance)] {
            match place {
                Some(place) if place + 1 < x.len() => {
                    if x[place] != x[place + 1] {
                        return place;
                    }
                }
                _ => return median,
            }
        }
    }
    median
}

#[cfg(test)]
mod tests {
    use super::{vertices, Cells};
    use crate::loess::sample::Sample;

    /// As R 4.2.2 lists them in `loess(...)$kd`.
    #[test]
    fn vertices_with_many_ties() {
        let levels = |levels: &[f64], each: usize| -> Vec<f64> {
            levels.iter().flat_map(|level| std::iter::repeat_n(*level, each)).collect()
        };
        let x = levels(&[1.0, 2.0, 4.0, 8.0, 16.0, 40.0, 80.0], 10);
        let expected = [0.605, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0, 80.395];
        assert_close(&vertices(&x, 0.75), &expected);
        let mut x = levels(&[5.0], 51);
        x.extend([1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0]);
        x.sort_by(f64::total_cmp);
        assert_close(&vertices(&x, 0.95), &[0.96, 4.0, 5.0, 9.04]);
    }

    #[test]
    fn a_parabola_is_its_own_interpolation() {
        let x: Vec<f64> = (0..200).map(|at| f64::from(at) / 10.0).collect();
        let y: Vec<f64> = x.iter().map(|x| 3.0 - x + 0.5 * x * x).collect();
        let sample = Sample::new(&x, &y, None).unwrap();
        let cells = Cells::new(&sample, &sample.weights, 0.3, 2).unwrap();
        let values = cells.values(&sample.y);
        let curve: Vec<f64> = x.iter().map(|x| cells.blend(*x).of(&values)).collect();
        assert_close(&curve, &y);
    }

    fn assert_close(actual: &[f64], expected: &[f64]) {
        assert_eq!(actual.len(), expected.len(), "{actual:?} {expected:?}");
        for (one, other) in actual.iter().zip(expected) {
            assert!((one - other).abs() < 1e-9, "{actual:?} {expected:?}");
        }
    }
}
