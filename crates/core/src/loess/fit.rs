//! A smooth curve with standard errors.

use super::deltas::{deltas, Deltas};
use super::error::Error;
use super::operator::Operator;
use super::params::{Family, Params, Surface};
use super::robust;
use super::sample::Sample;
use super::student;

/// How many fits the symmetric family makes: one by least squares, the others with weights from the residuals before.
const ROUNDS: usize = 4;
/// Below this share of the observations, what the curve leaves for residuals is rounding.
const ROUNDING: f64 = 1e-10;

#[derive(Debug, Clone)]
pub struct Fit {
    params: Params,
    sample: Sample,
    /// With robustness weights. The curve is that of this operator.
    operator: Operator,
    /// With the given weights alone. It smooths the pseudovalues, so standard errors are those of this operator.
    first: Operator,
    pub deltas: Deltas,
    /// At the observations, in their given order.
    pub fitted: Vec<f64>,
    /// The weight of each observation that follows from its residual: 1 for all in the Gaussian family.
    pub robustness: Vec<f64>,
    /// The scale of an observation of weight 1. `None` where the curve leaves nothing for residuals.
    pub residual_scale: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub fit: f64,
    /// `None` where there is no residual scale.
    pub interval: Option<Spread>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub standard_error: f64,
    pub low: f64,
    pub high: f64,
}

/// A weight counts an observation as that many of the same variance. Weights must be above 0.
pub fn fit(x: &[f64], y: &[f64], weights: Option<&[f64]>, params: Params) -> Result<Fit, Error> {
    let sample = Sample::new(x, y, weights)?;
    check(&sample, &params)?;
    let n = sample.len();
    let first = Operator::new(&sample, sample.weights.clone(), &params)?;
    let deltas = deltas(&first, &sample, &params)?;
    let mut operator = first.clone();
    let mut fitted = operator.curve(&sample, &params, &sample.y, &sample.x)?;
    let mut robustness = vec![1.0; n];
    let mut response = sample.y.clone();
    if params.family == Family::Symmetric {
        for _ in 1..ROUNDS {
            robustness = robust::weights(&residuals(&sample.y, &fitted));
            let both = robustness.iter().zip(&sample.weights).map(|(one, two)| one * two).collect();
            operator = Operator::new(&sample, both, &params)?;
            fitted = operator.curve(&sample, &params, &sample.y, &sample.x)?;
        }
        response = robust::pseudovalues(&fitted, &residuals(&sample.y, &fitted), &sample.weights, &robustness);
    }
    let left = residuals(&response, &first.curve(&sample, &params, &response, &sample.x)?);
    let squares: f64 = left.iter().zip(&sample.weights).map(|(left, weight)| weight * left * left).sum();
    let residual_scale = (deltas.one > ROUNDING * n as f64).then(|| (squares / deltas.one).sqrt());
    let (fitted, robustness) = (as_given(&sample, &fitted), as_given(&sample, &robustness));
    Ok(Fit { params, operator, first, deltas, fitted, robustness, residual_scale, sample })
}

/// The curve alone at points, by least squares and exact everywhere: [`Point::fit`] without what standard errors take.
/// Times grow with the observations times the points.
pub fn curve(x: &[f64], y: &[f64], span: f64, degree: usize, points: &[f64]) -> Result<Vec<f64>, Error> {
    let params = Params { span, degree, family: Family::Gaussian, surface: Surface::Direct };
    let sample = Sample::new(x, y, None)?;
    check(&sample, &params)?;
    Operator::new(&sample, sample.weights.clone(), &params)?.curve(&sample, &params, &sample.y, points)
}

fn check(sample: &Sample, params: &Params) -> Result<(), Error> {
    if params.degree > 2 {
        return Err(Error::Degree(params.degree));
    }
    if !(params.span > 0.0 && params.span.is_finite()) {
        return Err(Error::Span(params.span));
    }
    let (n, neighbours) = (sample.len(), sample.neighbours(params.span));
    if neighbours < params.degree + 1 {
        return Err(Error::Few { n, neighbours, degree: params.degree });
    }
    Ok(())
}

fn residuals(y: &[f64], fitted: &[f64]) -> Vec<f64> {
    y.iter().zip(fitted).map(|(y, fitted)| y - fitted).collect()
}

fn as_given(sample: &Sample, sorted: &[f64]) -> Vec<f64> {
    let mut given = vec![0.0; sorted.len()];
    for (value, place) in sorted.iter().zip(&sample.places) {
        given[*place] = *value;
    }
    given
}

impl Fit {
    /// The degrees of freedom of the residual scale.
    pub fn degrees_of_freedom(&self) -> Option<f64> {
        self.residual_scale.map(|_| self.deltas.one * self.deltas.one / self.deltas.two)
    }

    /// The curve at points, each with an interval of the mean there at `level`. `None` outside the observations on an
    /// interpolating surface, and where a point is no number.
    pub fn predict(&self, points: &[f64], level: f64) -> Result<Vec<Option<Point>>, Error> {
        let x = &self.sample.x;
        let (first, last) = (x[0], x[x.len() - 1]);
        let anywhere = self.params.surface == Surface::Direct;
        let known = |at: f64| at.is_finite() && (anywhere || (first <= at && at <= last));
        let mut order: Vec<usize> = (0..points.len()).filter(|place| known(points[*place])).collect();
        order.sort_by(|one, two| points[*one].total_cmp(&points[*two]));
        let sorted: Vec<f64> = order.iter().map(|place| points[*place]).collect();
        let curve = self.operator.curve(&self.sample, &self.params, &self.sample.y, &sorted)?;
        let variances = self.first.variances(&self.sample, &self.params, &sorted)?;
        let reach = self.degrees_of_freedom().map(|df| student::quantile((1.0 - level) / 2.0, df));
        let mut predicted = vec![None; points.len()];
        for ((place, fit), variance) in order.into_iter().zip(curve).zip(variances) {
            let interval = self.residual_scale.zip(reach).map(|(scale, reach)| {
                let standard_error = scale * variance.sqrt();
                Spread { standard_error, low: fit - reach * standard_error, high: fit + reach * standard_error }
            });
            predicted[place] = Some(Point { fit, interval });
        }
        Ok(predicted)
    }
}
