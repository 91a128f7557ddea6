//! Quantiles of Student's t, for any degrees of freedom above 0.

/// The value that is exceeded with probability `tail`, of at most 1/2.
pub fn quantile(tail: f64, df: f64) -> f64 {
    // By halving, on a scale that holds all numbers; the tail falls strictly.
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while upper_tail(high, df) > tail && high < 1e300 {
        low = high;
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if upper_tail(middle, df) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// P(T > t) for t >= 0: half the incomplete beta function of df / (df + t^2) with df/2 and 1/2.
fn upper_tail(t: f64, df: f64) -> f64 {
    let square = t * t;
    0.5 * incomplete_beta(df / (df + square), square / (df + square), df / 2.0, 0.5)
}

/// Regularised; `rest` is 1 - x. By the continued fraction (Abramowitz and Stegun 26.5.8) on the side where it converges fast.
fn incomplete_beta(x: f64, rest: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() + b * rest.ln() + log_gamma(a + b) - log_gamma(a) - log_gamma(b)).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(rest, b, a) / b
    }
}

/// By Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const LEAST: f64 = 1e-300;
    let off_zero = |value: f64| if value.abs() < LEAST { LEAST } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / off_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..100_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / off_zero(1.0 + term * d);
            c = off_zero(1.0 + term / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}

/// Stirling's series, above 15 after the recurrence.
fn log_gamma(x: f64) -> f64 {
    let (mut at, mut product) = (x, 1.0);
    while at < 15.0 {
        product *= at;
        at += 1.0;
    }
    let square = 1.0 / (at * at);
    let series = (1.0 / 12.0
        - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))))
        / at;
    (at - 0.5) * at.ln() - at + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::quantile;

    /// df 1 is Cauchy's and df 2 algebraic, so exact; the others are of R's qt.
    #[test]
    fn known_quantiles() {
        for (tail, df, expected) in [
            (0.025, 1.0, 12.706_204_736_174_707),
            (0.025, 2.0, 4.302_652_729_749_464),
            (0.025, 53.940_927_362_798, 2.004_929_573_955_41),
            (0.005, 1e5, 2.575_878_469_908_37),
            (0.05, 3.5, 2.222_433_493_649_6),
        ] {
            let computed = quantile(tail, df);
            assert!((computed / expected - 1.0).abs() < 1e-10, "{tail} {df}: {computed} {expected}");
        }
    }
}
