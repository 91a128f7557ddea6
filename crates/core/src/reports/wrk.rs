//! The report that wrk prints, with `--latency` or without (4.1; source: wrk.c, units.c).
//!
//! wrk scales what it prints: times by 1000 to ms and s and by 60 to m and h, rates by 1000, bytes by 1024. Two decimals
//! stay, so values here have the resolution of their scale.

use super::{lines, Line};
use crate::error::{shown, Error, Result};

const LAYER: &str = "wrk report";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub requested_duration_s: Option<f64>,
    pub url: Option<String>,
    pub threads: Option<u64>,
    pub connections: Option<u64>,
    /// In seconds.
    pub latency: Option<Spread>,
    /// Requests per second of one thread.
    pub thread_requests_per_second: Option<Spread>,
    /// Percent of requests, seconds.
    pub percentiles: Vec<(f64, f64)>,
    pub requests: Option<u64>,
    pub duration_s: Option<f64>,
    pub read_bytes: Option<f64>,
    pub socket_errors: Option<SocketErrors>,
    /// wrk's "Non-2xx or 3xx responses".
    pub non_2xx_or_3xx_responses: Option<u64>,
    pub requests_per_second: Option<f64>,
    pub read_bytes_per_second: Option<f64>,
}

/// `None` where wrk prints "nan": nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub mean: Option<f64>,
    pub deviation: Option<f64>,
    pub max: Option<f64>,
    /// Share of values within a deviation of the mean, 0 to 1.
    pub within_deviation: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketErrors {
    pub connect: u64,
    pub read: u64,
    pub write: u64,
    pub timeout: u64,
}

/// Reads what wrk wrote to its standard output. Lines of Lua scripts are passed over.
pub fn parse(text: &[u8]) -> Result<Report> {
    let mut report = Report::default();
    for (number, text) in lines(text) {
        report.field(&Line { layer: LAYER, number, text: &text })?;
    }
    if report.requests_per_second.is_none() {
        return Err(Error::Missing {
            layer: LAYER,
            expected: "a line \"Requests/sec:\"".into(),
            found: shown(&String::from_utf8_lossy(text)),
        });
    }
    Ok(report)
}

impl Report {
    fn field(&mut self, line: &Line) -> Result<()> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let count = |text: &str| line.number::<u64>(text, "a count");
        match words[..] {
            ["Running", duration, "test", "@", ref url @ ..] if self.url.is_none() => {
                self.requested_duration_s = Some(seconds(line, duration)?);
                self.url = Some(url.join(" "));
            }
            [threads, "threads", "and", connections, "connections"] => {
                self.threads = Some(count(threads)?);
                self.connections = Some(count(connections)?);
            }
            ["Latency", mean, deviation, max, within] => {
                self.latency = Some(spread(line, [mean, deviation, max], within, seconds)?)
            }
            ["Req/Sec", mean, deviation, max, within] => {
                self.thread_requests_per_second = Some(spread(line, [mean, deviation, max], within, metric)?)
            }
            [percent, time] if percent.ends_with('%') => {
                let percent = line.before(percent, "%", "a percentage")?;
                self.percentiles.push((line.finite(percent, "a percentage")?, seconds(line, time)?));
            }
            [requests, "requests", "in", duration, read, "read"] => {
                self.requests = Some(count(requests)?);
                self.duration_s = Some(seconds(line, duration.trim_end_matches(','))?);
                self.read_bytes = Some(bytes(line, read)?);
            }
            ["Socket", "errors:", "connect", connect, "read", read, "write", write, "timeout", timeout] => {
                let count = |text: &str| count(text.trim_end_matches(','));
                self.socket_errors = Some(SocketErrors {
                    connect: count(connect)?,
                    read: count(read)?,
                    write: count(write)?,
                    timeout: count(timeout)?,
                });
            }
            ["Non-2xx", "or", "3xx", "responses:", responses] => {
                self.non_2xx_or_3xx_responses = Some(count(responses)?)
            }
            ["Requests/sec:", rate] => self.requests_per_second = Some(line.finite(rate, "requests per second")?),
            ["Transfer/sec:", rate] => self.read_bytes_per_second = Some(bytes(line, rate)?),
            // A line that begins as one of a report, but does not go on as it.
            ["Latency", "Distribution", ..] => {}
            ["Socket" | "Non-2xx" | "Requests/sec:" | "Transfer/sec:" | "Req/Sec" | "Latency", ..] => {
                return Err(line.wrong("a line of wrk's report"))
            }
            _ => {}
        }
        Ok(())
    }
}

fn spread(
    line: &Line,
    [mean, deviation, max]: [&str; 3],
    within: &str,
    read: fn(&Line, &str) -> Result<f64>,
) -> Result<Spread> {
    let value = |text: &str, read: &dyn Fn(&str) -> Result<f64>| {
        if text.trim_start_matches('-').starts_with("nan") {
            Ok(None)
        } else {
            read(text).map(Some)
        }
    };
    let share = |text: &str| {
        let percent = line.before(text, "%", "a percentage")?;
        Ok(line.finite(percent, "a percentage")? / 100.0)
    };
    Ok(Spread {
        mean: value(mean, &|text| read(line, text))?,
        deviation: value(deviation, &|text| read(line, text))?,
        max: value(max, &|text| read(line, text))?,
        within_deviation: value(within, &share)?,
    })
}

/// A number with one of the units given, each a power of ten and a factor; the units are tried in order.
fn scaled(line: &Line, text: &str, units: &[(&str, i32, f64)], expected: &str) -> Result<f64> {
    for (unit, exponent, factor) in units {
        if let Some(number) = text.strip_suffix(unit) {
            return Ok(line.decimal(number, *exponent, expected)? * factor);
        }
    }
    Err(line.wrong(expected))
}

fn seconds(line: &Line, text: &str) -> Result<f64> {
    let units = [("us", -6, 1.0), ("ms", -3, 1.0), ("s", 0, 1.0), ("m", 0, 60.0), ("h", 0, 3600.0)];
    scaled(line, text, &units, "a time with us, ms, s, m or h")
}

fn metric(line: &Line, text: &str) -> Result<f64> {
    let units = [("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("", 0)];
    scaled(line, text, &units.map(|(unit, exponent)| (unit, exponent, 1.0)), "a number with k, M, G, T, P or nothing")
}

fn bytes(line: &Line, text: &str) -> Result<f64> {
    const K: f64 = 1024.0;
    let units = [("KB", K), ("MB", K.powi(2)), ("GB", K.powi(3)), ("TB", K.powi(4)), ("PB", K.powi(5)), ("B", 1.0)];
    scaled(line, text, &units.map(|(unit, factor)| (unit, 0, factor)), "a size with B, KB, MB, GB, TB or PB")
}
