//! The deltas of a linear smoother. With L the map from responses to the curve and M = I - L, they are `one` = tr(M M') and
//! `two` = tr((M M')^2). The residual scale is the root of the residual sum of squares over `one`, with one^2 / two degrees of
//! freedom (Cleveland and Devlin 1988).
//!
//! An interpolating surface is L = B V with few vertices, so all traces are those of small matrices of their values and slopes.
//! A direct surface has as many rows as there are different x. Beyond [`DIRECT`] observations it takes the deltas of the
//! interpolating one.

use super::band::Band;
use super::cells::Cells;
use super::error::Error;
use super::local::local;
use super::operator::{overlap, Operator};
use super::params::Params;
use super::sample::Sample;

/// Observations up to which the deltas of a direct surface are its own.
pub const DIRECT: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deltas {
    /// tr(L).
    pub trace: f64,
    /// tr(L' L), the equivalent number of parameters.
    pub parameters: f64,
    pub one: f64,
    pub two: f64,
}

pub fn deltas(operator: &Operator, sample: &Sample, params: &Params) -> Result<Deltas, Error> {
    match operator {
        Operator::Cells(cells) => Ok(of_cells(cells, sample)),
        Operator::Direct { weights } if sample.len() > DIRECT => {
            Ok(of_cells(&Cells::new(sample, weights, params.span, params.degree)?, sample))
        }
        Operator::Direct { weights } => of_rows(weights, sample, params),
    }
}

fn of_rows(weights: &[f64], sample: &Sample, params: &Params) -> Result<Deltas, Error> {
    let n = sample.len();
    let (mut trace, mut parameters) = (0.0, 0.0);
    let mut residual: Vec<Vec<f64>> = Vec::with_capacity(n);
    for (place, at) in sample.x.iter().enumerate() {
        let mut row = vec![0.0; n];
        if place > 0 && sample.x[place - 1] == *at {
            row.clone_from(&residual[place - 1]);
            row[place - 1] -= 1.0;
        } else {
            let polynomial = local(sample, weights, *at, params.span, params.degree)?;
            row[polynomial.start..].iter_mut().zip(&polynomial.value).for_each(|(entry, share)| *entry = -share);
        }
        trace -= row[place];
        parameters += row.iter().map(|entry| entry * entry).sum::<f64>();
        row[place] += 1.0;
        residual.push(row);
    }
    let (mut one, mut two) = (0.0, 0.0);
    for (place, row) in residual.iter().enumerate() {
        let square = overlap((0, row), (0, row), |_| 1.0);
        one += square;
        two += square * square;
        two += 2.0 * residual[..place].iter().map(|other| overlap((0, row), (0, other), |_| 1.0).powi(2)).sum::<f64>();
    }
    Ok(Deltas { trace, parameters, one, two })
}

fn of_cells(cells: &Cells, sample: &Sample) -> Deltas {
    let rows: Vec<(usize, &[f64])> = cells
        .locals
        .iter()
        .flat_map(|local| [(local.start, &local.value[..]), (local.start, &local.slope[..])])
        .collect();
    let blends: Vec<_> = sample.x.iter().map(|at| cells.blend(*at)).collect();

    // P = V B.
    let crossed = rows.iter().map(|(start, entries)| {
        let met = &blends[*start..*start + entries.len()];
        let low = 2 * met.first().map_or(0, |blend| blend.cell);
        let high = 2 * met.last().map_or(0, |blend| blend.cell) + 4;
        let mut sums = vec![0.0; high - low];
        for (entry, blend) in entries.iter().zip(met) {
            let sums = sums[2 * blend.cell - low..].iter_mut();
            sums.zip(&blend.shares).for_each(|(sum, share)| *sum += entry * share);
        }
        (low, sums)
    });
    let crossed = Band::new(crossed.collect());

    // G = B' B.
    let mut shared: Vec<(usize, Vec<f64>)> =
        (0..rows.len()).map(|at| ((at / 2 * 2).saturating_sub(2), vec![0.0; 6])).collect();
    for blend in &blends {
        for (at, one) in blend.shares.iter().enumerate() {
            let (start, sums) = &mut shared[2 * blend.cell + at];
            let sums = sums[2 * blend.cell - *start..].iter_mut();
            sums.zip(&blend.shares).for_each(|(sum, two)| *sum += one * two);
        }
    }
    // Rows of the last vertices reach past the end, with zeros.
    for (start, sums) in &mut shared {
        sums.truncate(rows.len() - *start);
    }
    let shared = Band::new(shared);

    // H = V V'.
    let met = rows.iter().map(|one| {
        let low = rows.partition_point(|two| two.0 + two.1.len() <= one.0);
        let high = rows.partition_point(|two| two.0 < one.0 + one.1.len());
        (low, rows[low..high].iter().map(|two| overlap(*one, *two, |_| 1.0)).collect())
    });
    let met = Band::new(met.collect());

    let both = met.product(&shared);
    let (trace, parameters) = (crossed.trace(), both.trace());
    let n = sample.len() as f64;
    // With A = L + L' - L L', M M' = I - A.
    let first = 2.0 * trace - parameters;
    let second = 2.0 * crossed.trace_with(&crossed) + 2.0 * parameters - 4.0 * crossed.product(&both).trace()
        + both.trace_with(&both);
    Deltas { trace, parameters, one: n - first, two: n - 2.0 * first + second }
}
