//! The report that ApacheBench prints (`ab`, 2.3), and its percentile table (`ab -e FILE`).
//!
//! ab rounds to milliseconds, except requests per second and the mean times. `Failed requests` can exceed
//! `Complete requests`: one request may fail in several ways. Source: httpd's support/ab.c, output_results();
//! fields that only newer versions print are read too.

use super::{lines, Line};
use crate::error::{shown, Error, Result};

const LAYER: &str = "ab report";
const KIBIBYTE: f64 = 1024.0;
/// As many unknown lines are kept.
const MAX_MESSAGES: usize = 20;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub version: Option<String>,
    pub server_software: Option<String>,
    pub server_hostname: Option<String>,
    pub server_port: Option<u16>,
    pub tls_protocol: Option<String>,
    pub tls_server_key: Option<String>,
    pub tls_server_name: Option<String>,
    pub document_path: Option<String>,
    /// `None` also where the length may vary (`-l`).
    pub document_bytes: Option<u64>,
    pub document_length_varies: Option<bool>,
    pub workers: Option<u64>,
    pub concurrency: Option<u64>,
    pub concurrency_achieved: Option<u64>,
    pub ramp_s: Option<f64>,
    pub duration_s: Option<f64>,
    pub complete_requests: Option<u64>,
    pub failed_requests: Option<u64>,
    pub failures: Option<Failures>,
    pub write_errors: Option<u64>,
    pub non_2xx_responses: Option<u64>,
    pub keep_alive_requests: Option<u64>,
    pub keep_alive_aborts: Option<u64>,
    pub transferred_bytes: Option<u64>,
    pub html_bytes: Option<u64>,
    pub body_sent_bytes: Option<u64>,
    pub requests_per_second: Option<f64>,
    /// As one client sees it: concurrency times the next.
    pub time_per_request_s: Option<f64>,
    pub time_per_request_across_all_s: Option<f64>,
    pub received_bytes_per_second: Option<f64>,
    pub sent_bytes_per_second: Option<f64>,
    pub total_bytes_per_second: Option<f64>,
    pub connect: Option<Times>,
    pub processing: Option<Times>,
    pub waiting: Option<Times>,
    pub total: Option<Times>,
    /// Percent of requests, seconds within which they were served.
    pub percentiles: Vec<(u8, f64)>,
    /// ab's own doubts (mean and median far apart).
    pub warnings: Vec<String>,
    /// Lines that are no part of a report: errors of sockets, verbose output.
    pub messages: Vec<String>,
    /// Requests done when ab gave up; there is no more to the report then.
    pub aborted_after_requests: Option<u64>,
}

/// How requests failed; one may count in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failures {
    pub connect: u64,
    pub receive: Option<u64>,
    pub length: u64,
    pub exceptions: u64,
}

/// A line of the table of connection times. `ab -S` leaves out deviation and median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    pub min_s: f64,
    pub mean_s: f64,
    pub deviation_s: Option<f64>,
    pub median_s: Option<f64>,
    pub max_s: f64,
}

/// Reads what `ab` wrote to its standard output (and error).
pub fn parse(text: &[u8]) -> Result<Report> {
    let mut report = Report::default();
    let mut in_warning = false;
    let mut recognised = false;
    for (number, text) in lines(text) {
        let line = Line { layer: LAYER, number, text: &text };
        if in_warning && text.starts_with(' ') {
            if let Some(warning) = report.warnings.last_mut() {
                warning.push(' ');
                warning.push_str(text.trim());
            }
            in_warning = false;
            continue;
        }
        in_warning = text.starts_with("WARNING:") || text.starts_with("ERROR:");
        if in_warning {
            report.warnings.push(text.trim().to_owned());
        } else if report.field(&line)? {
            recognised = true;
        } else if text.starts_with("<table") || text.starts_with("<p>") {
            return Err(line.wrong("ab's text report (run ab without -w)"));
        } else if !text.trim().is_empty() && report.messages.len() < MAX_MESSAGES {
            report.messages.push(shown(text.trim()));
        }
    }
    if report.complete_requests.is_none() && (report.messages.is_empty() || !recognised) {
        return Err(Error::Missing {
            layer: LAYER,
            expected: "a line \"Complete requests:\"".into(),
            found: shown(&String::from_utf8_lossy(text)),
        });
    }
    Ok(report)
}

impl Report {
    /// Reads a line; false if it is not one that a report has.
    fn field(&mut self, line: &Line) -> Result<bool> {
        let text = line.text;
        if let Some(rest) = text.strip_prefix("This is ApacheBench, Version ") {
            self.version = Some(rest.split(" <").next().unwrap_or(rest).trim().to_owned());
            return Ok(true);
        }
        // What ends a run before its first progress line is printed behind this.
        if let Some((_, error)) = text.split_once(" (be patient)...apr_") {
            self.messages.push(shown(&format!("apr_{error}")));
            return Ok(true);
        }
        if is_decoration(text) {
            return Ok(true);
        }
        if let Some(rest) = text.strip_prefix("Total of ") {
            self.aborted_after_requests =
                Some(line.number(line.before(rest, "requests completed", "a count")?, "a count")?);
            return Ok(true);
        }
        if let Some(list) = text.trim().strip_prefix('(') {
            self.failures = Some(failures(line, list)?);
            return Ok(true);
        }
        if text.starts_with(' ') {
            return self.indented(line);
        }
        let Some((label, value)) = text.split_once(':') else { return Ok(false) };
        self.labelled(line, label, value.trim())
    }

    fn labelled(&mut self, line: &Line, label: &str, value: &str) -> Result<bool> {
        let count = || line.number::<u64>(value, "a count").map(Some);
        let bytes =
            || line.number::<u64>(line.before(value, "bytes", "a count of bytes")?, "a count of bytes").map(Some);
        let text = || Some(value.to_owned());
        match label {
            "Server Software" => self.server_software = text(),
            "Server Hostname" => self.server_hostname = text(),
            "Server Port" => self.server_port = Some(line.number(value, "a port")?),
            "SSL/TLS Protocol" => self.tls_protocol = text(),
            "Server Temp Key" => self.tls_server_key = text(),
            "TLS Server Name" => self.tls_server_name = text(),
            "Document Path" => self.document_path = text(),
            "Document Length" => {
                let varies = value == "Variable";
                self.document_length_varies = Some(varies);
                self.document_bytes = if varies { None } else { bytes()? };
            }
            "Number of workers" => self.workers = count()?,
            "Number of requests" => {}
            "Concurrency Level" => self.concurrency = count()?,
            "Concurrency achieved" => self.concurrency_achieved = count()?,
            "Rampup delay" => self.ramp_s = Some(milliseconds(line, line.before(value, "[ms]", "milliseconds")?)?),
            "Time taken for tests" => {
                self.duration_s = Some(line.finite(line.before(value, "seconds", "seconds")?, "seconds")?)
            }
            "Complete requests" => self.complete_requests = count()?,
            "Failed requests" => self.failed_requests = count()?,
            "Write errors" => self.write_errors = count()?,
            "Non-2xx responses" => self.non_2xx_responses = count()?,
            "Keep-Alive requests" => self.keep_alive_requests = count()?,
            "Keep-Alive aborts" => self.keep_alive_aborts = count()?,
            "Total transferred" => self.transferred_bytes = bytes()?,
            "HTML transferred" => self.html_bytes = bytes()?,
            "Total body sent" => self.body_sent_bytes = count()?,
            "Requests per second" => {
                let rate = line.before(value, "[#/sec] (mean)", "requests per second")?;
                self.requests_per_second = Some(line.finite(rate, "requests per second")?);
            }
            "Time per request" => match value.strip_suffix("[ms] (mean)") {
                Some(time) => self.time_per_request_s = Some(milliseconds(line, time)?),
                None => {
                    let unit = "[ms] (mean, across all concurrent requests)";
                    let time = line.before(value, unit, "milliseconds per request")?;
                    self.time_per_request_across_all_s = Some(milliseconds(line, time)?);
                }
            },
            "Transfer rate" => {
                let rate = line.before(value, "[Kbytes/sec] received", "Kbytes per second")?;
                self.received_bytes_per_second = Some(line.finite(rate, "Kbytes per second")? * KIBIBYTE);
            }
            "Connect" => self.connect = Some(times(line, value)?),
            "Processing" => self.processing = Some(times(line, value)?),
            "Waiting" => self.waiting = Some(times(line, value)?),
            "Total" => self.total = Some(times(line, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Rates without a label, and percentiles.
    fn indented(&mut self, line: &Line) -> Result<bool> {
        let text = line.text.trim();
        let rate = |text: &str| line.finite(text, "kb per second").map(|rate| Some(rate * KIBIBYTE));
        if let Some(value) = text.strip_suffix("kb/s sent") {
            self.sent_bytes_per_second = rate(value)?;
        } else if let Some(value) = text.strip_suffix("kb/s total") {
            self.total_bytes_per_second = rate(value)?;
        } else if text == "0%  <0> (never)" {
            // Only with a percentile table that was changed in the source.
        } else if let Some((percent, time)) = text.split_once('%') {
            let expected = "a percentage and milliseconds";
            let time = time.strip_suffix("(longest request)").unwrap_or(time);
            self.percentiles.push((line.number(percent, expected)?, milliseconds(line, time)?));
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// Headings and progress.
fn is_decoration(text: &str) -> bool {
    const STARTS: [&str; 8] = [
        "Copyright 1996 Adam Twiss",
        "Licensed to The Apache Software",
        "Benchmarking ",
        "Completed ",
        "Finished ",
        "Connection Times (ms)",
        "              min ",
        "Percentage of the requests served within",
    ];
    STARTS.iter().any(|start| text.starts_with(start)) || text.starts_with("..done")
}

fn milliseconds(line: &Line, text: &str) -> Result<f64> {
    line.decimal(text, -3, "milliseconds")
}

fn failures(line: &Line, list: &str) -> Result<Failures> {
    const EXPECTED: &str = "(Connect: N, Receive: N, Length: N, Exceptions: N)";
    let (mut connect, mut receive, mut length, mut exceptions) = (None, None, None, None);
    for part in line.before(list, ")", EXPECTED)?.split(',') {
        let (label, value) = part.split_once(':').ok_or_else(|| line.wrong(EXPECTED))?;
        let place = match label.trim() {
            "Connect" => &mut connect,
            "Receive" => &mut receive,
            "Length" => &mut length,
            "Exceptions" => &mut exceptions,
            _ => return Err(line.wrong(EXPECTED)),
        };
        *place = Some(line.number(value, EXPECTED)?);
    }
    match (connect, length, exceptions) {
        (Some(connect), Some(length), Some(exceptions)) => Ok(Failures { connect, receive, length, exceptions }),
        _ => Err(line.wrong(EXPECTED)),
    }
}

fn times(line: &Line, text: &str) -> Result<Times> {
    const EXPECTED: &str = "milliseconds: min, mean, sd, median, max (or min, mean, max)";
    let numbers = text.split_whitespace().map(|word| milliseconds(line, word)).collect::<Result<Vec<_>>>()?;
    match numbers[..] {
        [min_s, mean_s, deviation_s, median_s, max_s] => {
            Ok(Times { min_s, mean_s, deviation_s: Some(deviation_s), median_s: Some(median_s), max_s })
        }
        [min_s, mean_s, max_s] => Ok(Times { min_s, mean_s, deviation_s: None, median_s: None, max_s }),
        _ => Err(line.wrong(EXPECTED)),
    }
}

/// Reads what `ab -e FILE` wrote: (percent, seconds) from 0 to 100, to the microsecond.
pub fn parse_percentiles(text: &[u8]) -> Result<Vec<(u8, f64)>> {
    const LAYER: &str = "ab percentiles";
    let mut rows = Vec::new();
    let mut headed = false;
    for (number, text) in lines(text) {
        let line = Line { layer: LAYER, number, text: &text };
        if number == 1 {
            if text != "Percentage served,Time in ms" {
                return Err(line.wrong("the heading \"Percentage served,Time in ms\""));
            }
            headed = true;
        } else {
            let (percent, time) = text.split_once(',').ok_or_else(|| line.wrong("percent,milliseconds"))?;
            rows.push((line.number(percent, "percent,milliseconds")?, milliseconds(&line, time)?));
        }
    }
    if headed {
        Ok(rows)
    } else {
        Err(Error::Missing { layer: LAYER, expected: "a heading".into(), found: String::new() })
    }
}
