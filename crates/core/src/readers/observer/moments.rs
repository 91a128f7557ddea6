//! Mean, standard deviation, skewness and kurtosis of values as they come (Pébay 2008, "Formulas for robust, one-pass parallel
//! computation of covariances and arbitrary-order statistical moments").

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    count: u64,
    mean: f64,
    second: f64,
    third: f64,
    fourth: f64,
}

impl Moments {
    pub fn add(&mut self, value: f64) {
        let before = self.count as f64;
        self.count += 1;
        let count = self.count as f64;
        let delta = value - self.mean;
        let step = delta / count;
        let term = delta * step * before;
        self.mean += step;
        self.fourth += term * step * step * (count * count - 3.0 * count + 3.0) + 6.0 * step * step * self.second
            - 4.0 * step * self.third;
        self.third += term * step * (count - 2.0) - 3.0 * step * self.second;
        self.second += term;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// With n - 1.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.second / (self.count - 1) as f64).sqrt())
    }

    /// Third moment over the second's power of 3/2; of a normal distribution 0.
    pub fn skewness(&self) -> Option<f64> {
        (self.count > 2 && self.second > 0.0).then(|| (self.count as f64).sqrt() * self.third / self.second.powf(1.5))
    }

    /// Fourth moment over the second's square; of a normal distribution 3.
    pub fn kurtosis(&self) -> Option<f64> {
        (self.count > 3 && self.second > 0.0).then(|| self.count as f64 * self.fourth / (self.second * self.second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, of 1, 2, 3, 10 with mean 4: sums of powers of -3, -2, -1, 6 are 50, 180, 1394.
    #[test]
    fn four_values() {
        let mut moments = Moments::default();
        [1.0, 2.0, 3.0, 10.0].into_iter().for_each(|value| moments.add(value));
        let near = |value: Option<f64>, known: f64| assert!((value.expect("a value") - known).abs() < 1e-12);
        near(moments.mean(), 4.0);
        near(moments.deviation(), (50.0f64 / 3.0).sqrt());
        near(moments.skewness(), 2.0 * 180.0 / 50.0f64.powf(1.5));
        near(moments.kurtosis(), 4.0 * 1394.0 / 2500.0);
        assert_eq!(Moments::default().mean(), None);
    }
}
