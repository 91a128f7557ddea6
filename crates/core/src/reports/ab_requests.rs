//! The table of requests that `ab -g FILE` writes, one line each.
//!
//! As ab.c writes it (and ab 2.3 does): sorted by total time, not by start; `seconds` is the start in whole
//! seconds since the epoch; the four times are rounded to milliseconds, so a fast server's are mostly 0.

use super::{lines, Line};
use crate::error::{Error, Result};

const LAYER: &str = "ab requests";
const HEADING: &str = "starttime\tseconds\tctime\tdtime\tttime\twait";

/// A request, in seconds at a resolution of a millisecond; `start_s` of a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    pub start_s: i64,
    /// ctime
    pub connect_s: f64,
    /// dtime: total less connect
    pub processing_s: f64,
    /// ttime
    pub total_s: f64,
    /// wait: from the request sent to the answer's first byte
    pub waiting_s: f64,
}

/// Reads the table; the text of `starttime` is that of `seconds` in local time and not kept.
pub fn parse(text: &[u8]) -> Result<Vec<Request>> {
    let mut requests = Vec::new();
    let mut headed = false;
    for (number, text) in lines(text) {
        let line = Line { layer: LAYER, number, text: &text };
        if number == 1 {
            if text != HEADING {
                return Err(line.wrong(&format!("the heading {HEADING:?}")));
            }
            headed = true;
            continue;
        }
        const EXPECTED: &str = "a start as text, seconds, and four times in whole milliseconds, with tabs between";
        let mut fields = text.split('\t');
        let mut next = || fields.next().ok_or_else(|| line.wrong(EXPECTED));
        next()?;
        let start_s = line.number(next()?, EXPECTED)?;
        let mut time = || Ok::<f64, Error>(line.number::<i64>(next()?, EXPECTED)? as f64 / 1000.0);
        let (connect_s, processing_s, total_s, waiting_s) = (time()?, time()?, time()?, time()?);
        if fields.next().is_some() {
            return Err(line.wrong(EXPECTED));
        }
        requests.push(Request { start_s, connect_s, processing_s, total_s, waiting_s });
    }
    if headed {
        Ok(requests)
    } else {
        Err(Error::Missing { layer: LAYER, expected: format!("the heading {HEADING:?}"), found: String::new() })
    }
}
