//! A surface as a linear map of the responses.

use super::cells::Cells;
use super::error::Error;
use super::local::{local, Local};
use super::params::{Params, Surface};
use super::sample::Sample;

/// Observation weights and what is kept of the surface for them.
#[derive(Debug, Clone)]
pub enum Operator {
    Direct { weights: Vec<f64> },
    Cells(Cells),
}

impl Operator {
    pub fn new(sample: &Sample, weights: Vec<f64>, params: &Params) -> Result<Self, Error> {
        match params.surface {
            Surface::Direct => Ok(Operator::Direct { weights }),
            Surface::Interpolate => Ok(Operator::Cells(Cells::new(sample, &weights, params.span, params.degree)?)),
        }
    }

    /// The curve of responses `y`, which stand in the sample's order, at points in order.
    pub fn curve(&self, sample: &Sample, params: &Params, y: &[f64], points: &[f64]) -> Result<Vec<f64>, Error> {
        match self {
            Operator::Cells(cells) => {
                let values = cells.values(y);
                Ok(points.iter().map(|at| cells.blend(*at).of(&values)).collect())
            }
            Operator::Direct { weights } => each(points, |at| {
                let polynomial = local(sample, weights, at, params.span, params.degree)?;
                Ok(Local::of(&polynomial.value, polynomial.start, y))
            }),
        }
    }

    /// Variance of the curve over that of an observation of weight 1, at points in order.
    pub fn variances(&self, sample: &Sample, params: &Params, points: &[f64]) -> Result<Vec<f64>, Error> {
        match self {
            Operator::Cells(cells) => Ok(of_cells(cells, &sample.weights, points)),
            Operator::Direct { weights } => each(points, |at| {
                let polynomial = local(sample, weights, at, params.span, params.degree)?;
                let shares = polynomial.value.iter().zip(&sample.weights[polynomial.start..]);
                Ok(shares.map(|(share, weight)| share * share / weight).sum())
            }),
        }
    }
}

/// Once for each run of equal points.
fn each(points: &[f64], mut one: impl FnMut(f64) -> Result<f64, Error>) -> Result<Vec<f64>, Error> {
    let mut last: Option<(f64, f64)> = None;
    let next = |at: &f64| {
        let value = match last {
            Some((before, value)) if before == *at => value,
            _ => one(*at)?,
        };
        last = Some((*at, value));
        Ok(value)
    };
    points.iter().map(next).collect()
}

/// Variances at points, from how each two of a cell's four values vary together.
fn of_cells(cells: &Cells, weights: &[f64], points: &[f64]) -> Vec<f64> {
    let mut known: Vec<Option<[[f64; 4]; 4]>> = vec![None; cells.locals.len()];
    let one = |at: &f64| {
        let blend = cells.blend(*at);
        let together = known[blend.cell].get_or_insert_with(|| {
            let rows = rows(&cells.locals[blend.cell..blend.cell + 2]);
            rows.map(|one| rows.map(|two| overlap(one, two, |place| 1.0 / weights[place])))
        });
        let shares = blend.shares.iter().zip(together.iter());
        shares.map(|(one, row)| one * row.iter().zip(&blend.shares).map(|(entry, two)| entry * two).sum::<f64>()).sum()
    };
    points.iter().map(one).collect()
}

fn rows(pair: &[Local]) -> [(usize, &[f64]); 4] {
    let row = |at: usize| {
        let local = &pair[at / 2];
        (local.start, if at.is_multiple_of(2) { &local.value[..] } else { &local.slope[..] })
    };
    [row(0), row(1), row(2), row(3)]
}

/// Sum of products of two rows where both have entries.
pub fn overlap(one: (usize, &[f64]), two: (usize, &[f64]), weight: impl Fn(usize) -> f64) -> f64 {
    let low = one.0.max(two.0);
    let high = (one.0 + one.1.len()).min(two.0 + two.1.len());
    if low >= high {
        return 0.0;
    }
    let entries = one.1[low - one.0..high - one.0].iter().zip(&two.1[low - two.0..high - two.0]);
    entries.zip(low..high).map(|((a, b), place)| a * b * weight(place)).sum()
}
