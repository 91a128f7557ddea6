//! What is wrong with an artifact, where, and what would have been right.

use std::fmt;

/// An artifact that cannot be read any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Bytes are missing that a fixed header or a length field asks for.
    Length { layer: &'static str, offset: u64, needed: u64, available: u64, claimed_by: &'static str },
    /// A field holds what it must not hold.
    Value { layer: &'static str, offset: u64, field: &'static str, found: String, expected: String },
    /// A line of text that is not what its place calls for.
    Line { layer: &'static str, line: usize, text: String, expected: String },
    /// A text in which nothing is what was looked for.
    Missing { layer: &'static str, expected: String, found: String },
}

pub type Result<T> = std::result::Result<T, Error>;

const SHOWN_CHARACTERS: usize = 200;

/// The start of `text`, short enough for a message.
pub(crate) fn shown(text: &str) -> String {
    let mut start: String = text.chars().take(SHOWN_CHARACTERS).collect();
    if start.len() < text.len() {
        start.push_str("...");
    }
    start
}

impl Error {
    pub(crate) fn line(layer: &'static str, line: usize, text: &str, expected: impl Into<String>) -> Self {
        Error::Line { layer, line, text: shown(text), expected: expected.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Length { layer, offset, needed, available, claimed_by } => {
                write!(f, "{layer} at byte {offset}: {needed} bytes needed (says {claimed_by}), {available} there")
            }
            Error::Value { layer, offset, field, found, expected } => {
                write!(f, "{layer} at byte {offset}: {field} is {found}, expected {expected}")
            }
            Error::Line { layer, line, text, expected } => {
                write!(f, "{layer}, line {line}: expected {expected}, found {text:?}")
            }
            Error::Missing { layer, expected, found } => {
                write!(f, "{layer}: expected {expected}, found {found:?}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// A stream that could not be read to its end, or whose bytes are wrong.
#[derive(Debug)]
pub enum ReadError {
    Io(std::io::Error),
    Format(Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => error.fmt(f),
            ReadError::Format(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        ReadError::Io(error)
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        ReadError::Format(error)
    }
}
