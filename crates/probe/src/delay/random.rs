//! Draws for each frame: SplitMix64 (Steele, Lea and Flood 2014), begun with a number of the kernel's.

use std::io;

pub struct Random(u64);

impl Random {
    pub fn new() -> io::Result<Self> {
        let mut seed = [0; 8];
        // SAFETY: pointer and length are of one array.
        let count = unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
        if count != seed.len() as isize {
            return Err(io::Error::last_os_error());
        }
        Ok(Random(u64::from_ne_bytes(seed)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Even in [0, 1).
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.share() < share
    }

    /// Even from -most to most.
    pub fn within(&mut self, most: i64) -> i64 {
        if most == 0 {
            return 0;
        }
        (self.share() * (2 * most + 1) as f64) as i64 - most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the reference implementation in C (Vigna, prng.di.unimi.it/splitmix64.c) for the seed 1234567.
    #[test]
    fn draws_as_the_reference_does() {
        let mut random = Random(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn shares_and_spreads_are_as_asked() {
        let mut random = Random(1);
        let lost = (0..100_000).filter(|_| random.chance(0.1)).count();
        assert!((9_500..10_500).contains(&lost), "five standard deviations are 474");
        let drawn: Vec<i64> = (0..100_000).map(|_| random.within(3)).collect();
        for value in -3..=3 {
            let count = drawn.iter().filter(|each| **each == value).count();
            assert!(
                (13_700..14_900).contains(&count),
                "{value}: a seventh is 14,286, five standard deviations are 553"
            );
        }
        assert_eq!(random.within(0), 0);
        assert!(!(0..1000).any(|_| random.chance(0.0)));
    }
}
