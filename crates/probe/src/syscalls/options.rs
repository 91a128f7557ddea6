//! The command line of `syscalls`.

use super::scope::Scope;
use crate::arguments::{number, Arguments};
use crate::failure::{Failure, Outcome};

const USAGE: &str = "usage: twinbed-probe syscalls count|trace --out FILE [options]";
/// Distinct transitions that the kernel holds at once: 25 MB of its memory.
const DEFAULT_STATES: u32 = 131_072;
/// The size of the ring in the kernel: a third of a second of 1 million calls/s.
const DEFAULT_BUFFER_KIB: usize = 8192;

pub struct Options {
    pub command: Command,
    pub out: String,
    pub scope: Scope,
    /// `None`: the first that works.
    pub method: Option<Method>,
    /// Of the ring (bpf: one; tracefs: one for each processor).
    pub buffer_bytes: usize,
}

#[derive(Clone, Copy)]
pub enum Command {
    /// `slice_ns` 0: one slice.
    Count {
        slice_ns: u64,
        skip: u64,
        states: u32,
        times: Times,
    },
    Trace,
}

/// A way of seeing calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Bpf,
    Tracefs,
}

impl Method {
    pub const IN_ORDER: [Method; 2] = [Method::Bpf, Method::Tracefs];

    pub fn name(self) -> &'static str {
        match self {
            Method::Bpf => "bpf",
            Method::Tracefs => "tracefs",
        }
    }
}

/// The calls whose time from entry to exit is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Each call with a probability of one in `SAMPLED_ONE_IN`.
    Sampled,
    All,
    None,
}

/// A power of two.
pub const SAMPLED_ONE_IN: u32 = 16;

impl Times {
    const EACH: [Times; 3] = [Times::Sampled, Times::All, Times::None];

    pub fn name(self) -> &'static str {
        match self {
            Times::Sampled => "sampled",
            Times::All => "all",
            Times::None => "none",
        }
    }

    /// The probability with which a call is timed.
    pub fn share(self) -> f64 {
        match self {
            Times::Sampled => 1.0 / f64::from(SAMPLED_ONE_IN),
            Times::All => 1.0,
            Times::None => 0.0,
        }
    }

    fn of(text: Option<String>) -> Outcome<Times> {
        let Some(text) = text else {
            return Ok(Times::Sampled);
        };
        let known = Times::EACH.into_iter().find(|times| times.name() == text);
        known.ok_or_else(|| Failure::new(format!("--times takes sampled, all or none, not {text:?}")))
    }
}

impl Options {
    pub fn take(mut arguments: Arguments) -> Outcome<Options> {
        let command = match arguments.word().as_deref() {
            Some("count") => Command::Count {
                slice_ns: slice_ns(arguments.value("--slice")?)?,
                skip: arguments.value("--skip")?.map_or(Ok(0), |text| number("--skip", &text))?,
                states: match arguments.value("--states")? {
                    Some(text) => at_least_one("--states", number("--states", &text)?)?,
                    None => DEFAULT_STATES,
                },
                times: Times::of(arguments.value("--times")?)?,
            },
            Some("trace") => Command::Trace,
            _ => return Err(Failure::new(USAGE)),
        };
        let out = arguments.required("--out")?;
        let method = match arguments.value("--method")? {
            None => None,
            Some(name) => match Method::IN_ORDER.into_iter().find(|method| method.name() == name) {
                Some(method) => Some(method),
                None => return Err(Failure::new(format!("--method takes bpf or tracefs, not {name:?}"))),
            },
        };
        let kib = match arguments.value("--buffer")? {
            Some(text) => at_least_one("--buffer", number("--buffer", &text)?)?,
            None => DEFAULT_BUFFER_KIB,
        };
        let scope = Scope::take(&mut arguments)?;
        arguments.finish()?;
        // The kernel's ring is a power of two of at least a page.
        let buffer_bytes = kib.clamp(4, 1 << 20).next_power_of_two() * 1024;
        Ok(Options { command, out, scope, method, buffer_bytes })
    }
}

fn at_least_one<T: Default + PartialEq>(name: &str, value: T) -> Outcome<T> {
    if value == T::default() {
        return Err(Failure::new(format!("{name} takes a number of at least 1")));
    }
    Ok(value)
}

fn slice_ns(text: Option<String>) -> Outcome<u64> {
    let Some(text) = text else {
        return Ok(0);
    };
    let seconds: f64 = number("--slice", &text)?;
    if !(0.01..=86_400.0).contains(&seconds) {
        return Err(Failure::new(format!("--slice takes 0.01 to 86400 seconds, not {seconds}")));
    }
    Ok((seconds * 1e9) as u64)
}
