//! What was tried and why it failed: the body of an ERROR frame and the text of a fatal error.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    pub errno: Option<i32>,
    pub message: String,
}

pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Failure { errno: None, message: message.into() }
    }

    /// `tried` completes the sentence "cannot ...".
    pub fn because(tried: impl fmt::Display, error: &io::Error) -> Self {
        Failure { errno: error.raw_os_error(), message: format!("cannot {tried}: {error}") }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Says on standard error why this program gives up. Unlike eprintln! it does not panic when the other end of standard error
/// has gone, as a dead controller's has.
pub fn complain(failure: &Failure) {
    let _ = writeln!(io::stderr(), "twinbed-probe: {failure}");
}

pub trait Tried<T> {
    /// Says what was being tried, as the rest of "cannot ...".
    fn tried<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Outcome<T>;
}

impl<T> Tried<T> for io::Result<T> {
    fn tried<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Outcome<T> {
        self.map_err(|error| Failure::because(what(), &error))
    }
}
