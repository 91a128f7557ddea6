//! What HTTP load generators print, in base units (seconds, bytes).
//! A field that is not there is `None`; one that cannot be read is an error with its line.

pub mod ab;
pub mod ab_requests;
pub mod wrk;

use std::borrow::Cow;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Lines with their numbers from 1, without line ends. Bytes that are not UTF-8 (a server's name) are replaced.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, Cow<'_, str>)> {
    let lines = text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n');
    lines.enumerate().map(|(at, line)| (at + 1, String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line))))
}

/// One line and its place, to read values from.
#[derive(Clone, Copy)]
struct Line<'a> {
    layer: &'static str,
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn wrong(&self, expected: &str) -> Error {
        Error::line(self.layer, self.number, self.text, expected)
    }

    /// `text` as a number.
    fn number<T: FromStr>(&self, text: &str, expected: &str) -> Result<T> {
        text.trim().parse().map_err(|_| self.wrong(expected))
    }

    /// As [`Line::number`], but infinities and "nan" are not measurements.
    fn finite(&self, text: &str, expected: &str) -> Result<f64> {
        let value: f64 = self.number(text, expected)?;
        if value.is_finite() {
            Ok(value)
        } else {
            Err(self.wrong(expected))
        }
    }

    /// A plain decimal number times ten to the power of `exponent`, rounded once: 2.268 ms is 0.002268 s.
    fn decimal(&self, text: &str, exponent: i32, expected: &str) -> Result<f64> {
        self.finite(&format!("{}e{exponent}", text.trim()), expected)
    }

    /// The text in front of `unit`, which must be there.
    fn before(&self, text: &'a str, unit: &str, expected: &str) -> Result<&'a str> {
        text.trim_end().strip_suffix(unit).map(str::trim).ok_or_else(|| self.wrong(expected))
    }
}
