//! Every key's values over the snapshots, and what they come to: a counter's last less first, a gauge's mean.

use std::collections::HashMap;

use super::snapshot::snapshots;
use super::sources::read;
use super::value::{Kind, Value};
use crate::error::{Error, Result};

/// When a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Taken {
    pub index: u64,
    pub monotonic_s: f64,
    pub realtime_s: f64,
}

/// One key's values, in the order of the snapshots.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// A number in [`Counters::sources`].
    pub source: usize,
    /// `None` stands for a source that the host does not have.
    pub key: Option<String>,
    pub kind: Kind,
    /// Position of a snapshot in [`Counters::taken`], and the value there; `None` where the source was missing.
    pub values: Vec<(usize, Option<Value>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    pub taken: Vec<Taken>,
    pub sources: Vec<String>,
    pub series: Vec<Series>,
    /// Sources of no known kind.
    pub unread_sources: Vec<String>,
    /// Why a last, partial snapshot was left out.
    pub cut_off: Option<Error>,
}

/// What a key comes to over a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference<'a> {
    pub source: &'a str,
    pub key: Option<&'a str>,
    pub kind: Kind,
    pub first: Option<&'a Value>,
    pub last: Option<&'a Value>,
    /// Counters only.
    pub difference: Option<f64>,
    /// Gauges only: over the snapshots.
    pub mean: Option<f64>,
    /// Between the first and last value, on the monotonic clock.
    pub seconds: Option<f64>,
    /// Why there is no difference.
    pub note: Option<&'static str>,
}

/// A counter from one snapshot to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval<'a> {
    pub from: Taken,
    pub to: Taken,
    pub source: &'a str,
    pub key: &'a str,
    pub difference: Option<f64>,
    pub note: Option<&'static str>,
}

pub const WENT_BACKWARDS: &str = "went backwards";
pub const ONE_VALUE: &str = "one value only";
pub const NOT_IN_FIRST: &str = "not in the first snapshot";
pub const NOT_IN_LAST: &str = "not in the last snapshot";
pub const SOURCE_MISSING: &str = "source missing";

impl Counters {
    /// Reads a whole snapshot file; the kernel's log in it is left to [`super::kernel_log`].
    pub fn parse(bytes: &[u8]) -> Result<Counters> {
        let file = snapshots(bytes)?;
        let mut builder = Builder::default();
        for (at, snapshot) in file.snapshots.iter().enumerate() {
            builder.counters.taken.push(Taken {
                index: snapshot.index,
                monotonic_s: snapshot.monotonic_s,
                realtime_s: snapshot.realtime_s,
            });
            for source in snapshot.sources.iter().filter(|source| source.name != super::kernel_log::SOURCE) {
                let number = builder.source(source.name);
                let Some(content) = source.content else {
                    builder.missing(number, at);
                    continue;
                };
                let mut add = |key: &str, kind, value| builder.value(number, Some(key), kind, at, Some(value));
                let known = read(source.name, content, source.first_line, &mut add)?;
                let unread = &mut builder.counters.unread_sources;
                if !known && !unread.iter().any(|name| name == source.name) {
                    unread.push(source.name.to_owned());
                }
            }
        }
        builder.counters.cut_off = file.cut_off;
        Ok(builder.counters)
    }

    pub fn differences(&self) -> impl Iterator<Item = Difference<'_>> {
        let ends = self.ends();
        self.series.iter().map(move |series| self.difference(series, ends[series.source]))
    }

    /// The first and last snapshot in which each source is: some are written only at the ends.
    fn ends(&self) -> Vec<(usize, usize)> {
        let mut ends = vec![(usize::MAX, 0); self.sources.len()];
        for series in &self.series {
            let (first, last) = &mut ends[series.source];
            for (at, _) in &series.values {
                *first = (*first).min(*at);
                *last = (*last).max(*at);
            }
        }
        ends
    }

    fn difference<'a>(&'a self, series: &'a Series, (first_at, last_at): (usize, usize)) -> Difference<'a> {
        let present: Vec<(usize, &Value)> =
            series.values.iter().filter_map(|(at, value)| Some((*at, value.as_ref()?))).collect();
        let (first, last) = (present.first(), present.last());
        let mut result = Difference {
            source: &self.sources[series.source],
            key: series.key.as_deref(),
            kind: series.kind,
            first: first.map(|(_, value)| *value),
            last: last.map(|(_, value)| *value),
            difference: None,
            mean: None,
            seconds: None,
            note: None,
        };
        let (Some((first, _)), Some((last, _))) = (first, last) else {
            result.note = Some(SOURCE_MISSING);
            return result;
        };
        result.seconds = Some(self.taken[*last].monotonic_s - self.taken[*first].monotonic_s);
        let numbers: Vec<f64> = present.iter().filter_map(|(_, value)| value.number()).collect();
        match series.kind {
            Kind::Setting | Kind::Absent => {}
            Kind::Gauge => result.mean = Some(numbers.iter().sum::<f64>() / numbers.len().max(1) as f64),
            Kind::Counter => {
                let falls = present.windows(2).any(|pair| less(pair[1].1, pair[0].1).is_none());
                result.note = match () {
                    () if *first != first_at => Some(NOT_IN_FIRST),
                    () if *last != last_at => Some(NOT_IN_LAST),
                    () if present.len() < 2 => Some(ONE_VALUE),
                    () if falls => Some(WENT_BACKWARDS),
                    () => None,
                };
                if result.note.is_none() {
                    result.difference = less(present[present.len() - 1].1, present[0].1);
                }
            }
        }
        result
    }

    /// Counters from each snapshot to the next in which they are.
    pub fn intervals(&self) -> impl Iterator<Item = Interval<'_>> {
        self.series.iter().filter(|series| series.kind == Kind::Counter).flat_map(move |series| {
            series.values.windows(2).filter_map(move |pair| {
                let [(from, Some(before)), (to, Some(after))] = pair else { return None };
                let difference = less(after, before);
                Some(Interval {
                    from: self.taken[*from],
                    to: self.taken[*to],
                    source: &self.sources[series.source],
                    key: series.key.as_deref()?,
                    difference,
                    note: if difference.is_none() { Some(WENT_BACKWARDS) } else { None },
                })
            })
        })
    }
}

/// `after` less `before`, exact for integers; `None` if that is negative.
fn less(after: &Value, before: &Value) -> Option<f64> {
    let difference = match (after, before) {
        (Value::Integer(after), Value::Integer(before)) => after.checked_sub(*before)? as f64,
        _ => after.number()? - before.number()?,
    };
    (difference >= 0.0).then_some(difference)
}

struct Builder {
    counters: Counters,
    /// By source and key.
    index: HashMap<(usize, Option<String>), usize>,
    source_index: HashMap<String, usize>,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            counters: Counters {
                taken: Vec::new(),
                sources: Vec::new(),
                series: Vec::new(),
                unread_sources: Vec::new(),
                cut_off: None,
            },
            index: HashMap::new(),
            source_index: HashMap::new(),
        }
    }
}

impl Builder {
    fn source(&mut self, name: &str) -> usize {
        if let Some(number) = self.source_index.get(name) {
            return *number;
        }
        let number = self.counters.sources.len();
        self.counters.sources.push(name.to_owned());
        self.source_index.insert(name.to_owned(), number);
        number
    }

    fn value(&mut self, source: usize, key: Option<&str>, kind: Kind, at: usize, value: Option<Value>) {
        let name = (source, key.map(str::to_owned));
        let series = &mut self.counters.series;
        let number = *self.index.entry(name).or_insert_with_key(|(source, key)| {
            series.push(Series { source: *source, key: key.clone(), kind, values: Vec::new() });
            series.len() - 1
        });
        // A key that occurs twice in a snapshot (two interrupts of one label) keeps its first value.
        let values = &mut series[number].values;
        if values.last().is_none_or(|(last, _)| *last != at) {
            values.push((at, value));
        }
    }

    /// A source that was not there: null for every key that it has had, or for the source itself.
    fn missing(&mut self, source: usize, at: usize) {
        let known: Vec<usize> = self
            .counters
            .series
            .iter()
            .enumerate()
            .filter(|(_, series)| series.source == source)
            .map(|(number, _)| number)
            .collect();
        if known.is_empty() {
            self.value(source, None, Kind::Absent, at, None);
        }
        for number in known {
            self.counters.series[number].values.push((at, None));
        }
    }
}
