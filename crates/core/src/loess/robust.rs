//! The symmetric family: weights that fall with the residual, and pseudovalues, to whose residuals the theory of least squares
//! applies (Cleveland and Grosse 1991).

/// Cleveland's limits: below this share of the scale the weight is 1, above the other 0.
const NEAR: f64 = 0.001;
const FAR: f64 = 0.999;

/// Of residuals; 1 for all where more than half are 0.
pub fn weights(residuals: &[f64]) -> Vec<f64> {
    let scale = six_medians(residuals.iter().map(|residual| residual.abs()).collect());
    if scale < f64::MIN_POSITIVE {
        return vec![1.0; residuals.len()];
    }
    residuals.iter().map(|residual| bisquare(residual.abs() / scale)).collect()
}

/// The curve plus the derivative-corrected influence of each residual.
pub fn pseudovalues(fitted: &[f64], residuals: &[f64], weights: &[f64], robustness: &[f64]) -> Vec<f64> {
    let weighted: Vec<f64> = residuals.iter().zip(weights).map(|(residual, weight)| residual * weight.sqrt()).collect();
    let scale = six_medians(weighted.iter().map(|residual| residual.abs()).collect());
    if scale < f64::MIN_POSITIVE {
        return fitted.iter().zip(residuals).map(|(fitted, residual)| fitted + residual).collect();
    }
    // With u = r / scale, psi(u) = u (1 - u^2)^2 has the derivative (1 - u^2)(1 - 5 u^2).
    let slopes = weighted.iter().zip(robustness).map(|(r, weight)| (1.0 - 5.0 * (r / scale).powi(2)) * weight.sqrt());
    let stretch = residuals.len() as f64 / slopes.sum::<f64>();
    let moved = fitted.iter().zip(residuals).zip(robustness);
    moved.map(|((fitted, residual), weight)| fitted + stretch * weight * residual).collect()
}

fn six_medians(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.len().is_multiple_of(2) {
        3.0 * (lower + upper)
    } else {
        6.0 * upper
    }
}

/// Of a residual over six times the median of all.
fn bisquare(share: f64) -> f64 {
    if share <= NEAR {
        1.0
    } else if share >= FAR {
        0.0
    } else {
        (1.0 - share.powi(2)).powi(2)
    }
}
