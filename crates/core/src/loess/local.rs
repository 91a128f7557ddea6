//! The weighted polynomial at a point, as coefficients of the responses: value and slope are sums of them times y.

use super::error::Error;
use super::sample::{tricube, Sample};

const TERMS: usize = 3;
/// Singular values below this share of the largest are taken as 0, and the shortest solution as the answer.
const SINGULAR: f64 = 100.0 * f64::EPSILON;
const SWEEPS: usize = 30;

/// What value and slope at a point are of the responses from `start` on.
#[derive(Debug, Clone)]
pub struct Local {
    pub start: usize,
    pub value: Vec<f64>,
    pub slope: Vec<f64>,
}

impl Local {
    pub fn of(coefficients: &[f64], start: usize, y: &[f64]) -> f64 {
        coefficients.iter().zip(&y[start..]).map(|(one, y)| one * y).sum()
    }
}

/// `weights` beside the kernel's. Too few different x for the degree, or weights of 0, give the least-norm solution.
pub fn local(sample: &Sample, weights: &[f64], at: f64, span: f64, degree: usize) -> Result<Local, Error> {
    let near = sample.near(at, span)?;
    let start = near.range.start;
    let roots: Vec<f64> = near
        .range
        .clone()
        .map(|place| (tricube((sample.x[place] - at).abs() / near.radius) * weights[place]).sqrt())
        .collect();
    let mut columns: Vec<Vec<f64>> = vec![roots.clone()];
    for power in 1..=degree {
        let next = columns[power - 1].iter().zip(near.range.clone());
        columns.push(next.map(|(column, place)| column * (sample.x[place] - at)).collect());
    }
    let mut lengths = [1.0; TERMS];
    for (column, length) in columns.iter_mut().zip(&mut lengths) {
        let norm = dot(column, column).sqrt();
        if norm > 0.0 {
            *length = norm;
            column.iter_mut().for_each(|one| *one /= norm);
        }
    }
    let mut upper = reduce(&mut columns);
    let turned = orthogonalise(&mut upper);
    let squares: Vec<f64> = upper.iter().map(|column| dot(column, column)).collect();
    let largest = squares.iter().copied().fold(0.0, f64::max).sqrt();
    let row = |term: usize| -> Vec<f64> {
        let kept = |at: &usize| squares[*at].sqrt() > SINGULAR * largest;
        let share = |at: usize| turned[term][at] / (squares[at] * lengths[term]);
        let mut entries = vec![0.0; roots.len()];
        for (place, column) in columns.iter().enumerate() {
            let times: f64 = (0..upper.len()).filter(kept).map(|at| share(at) * upper[at][place]).sum();
            entries.iter_mut().zip(column).for_each(|(sum, one)| *sum += times * one);
        }
        entries.iter_mut().zip(&roots).for_each(|(sum, root)| *sum *= root);
        entries
    };
    let slope = if degree > 0 { row(1) } else { vec![0.0; roots.len()] };
    Ok(Local { start, value: row(0), slope })
}

/// Makes columns orthonormal in their order, and gives the columns of the upper triangle that turns them back (Gram and Schmidt,
/// twice, which is enough). A column that lies in those before it becomes 0.
fn reduce(columns: &mut [Vec<f64>]) -> Vec<Vec<f64>> {
    let mut upper = vec![vec![0.0; columns.len()]; columns.len()];
    for (place, turned) in upper.iter_mut().enumerate() {
        let (before, rest) = columns.split_at_mut(place);
        let column = &mut rest[0];
        let whole = dot(column, column).sqrt();
        for _ in 0..2 {
            for (at, other) in before.iter().enumerate() {
                let share = dot(other, column);
                column.iter_mut().zip(other).for_each(|(one, other)| *one -= share * other);
                turned[at] += share;
            }
        }
        let length = dot(column, column).sqrt();
        if length > f64::EPSILON * whole {
            column.iter_mut().for_each(|one| *one /= length);
            turned[place] = length;
        } else {
            column.fill(0.0);
        }
    }
    upper
}

/// Makes columns orthogonal by rotations of pairs (one-sided Jacobi), and gives the product of the rotations: with the columns'
/// lengths this is their singular value decomposition.
fn orthogonalise(columns: &mut [Vec<f64>]) -> [[f64; TERMS]; TERMS] {
    let mut turned = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for _ in 0..SWEEPS {
        let mut still = true;
        for one in 0..columns.len() {
            for two in one + 1..columns.len() {
                let (left, right) = columns.split_at_mut(two);
                let (first, second) = (&mut left[one], &mut right[0]);
                let (a, b, c) = (dot(first, first), dot(second, second), dot(first, second));
                if c.abs() <= f64::EPSILON * (a * b).sqrt() {
                    continue;
                }
                still = false;
                let tangent2 = (b - a) / (2.0 * c);
                let tangent = tangent2.signum() / (tangent2.abs() + tangent2.hypot(1.0));
                let cosine = 1.0 / tangent.hypot(1.0);
                let sine = cosine * tangent;
                for (x, y) in first.iter_mut().zip(second.iter_mut()) {
                    (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
                }
                for row in &mut turned {
                    (row[one], row[two]) = (cosine * row[one] - sine * row[two], sine * row[one] + cosine * row[two]);
                }
            }
        }
        if still {
            break;
        }
    }
    turned
}

/// In eight sums, which may be added side by side.
fn dot(one: &[f64], two: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (ones, twos) = (one.chunks_exact(8), two.chunks_exact(8));
    let rest: f64 = ones.remainder().iter().zip(twos.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in ones.zip(twos) {
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum += a[at] * b[at];
        }
    }
    sums.iter().sum::<f64>() + rest
}
