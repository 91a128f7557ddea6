//! A source's text, line by line, and numbers in it.

use super::value::{Kind, Value};
use crate::error::{Error, Result};

/// Takes a key, its kind and value.
pub type Sink<'s> = dyn FnMut(&str, Kind, Value) + 's;

/// One source's text, with its place in the file for errors.
pub struct Text<'a> {
    pub layer: &'static str,
    pub first_line: usize,
    pub content: &'a str,
}

impl<'a> Text<'a> {
    pub fn lines(&self) -> impl Iterator<Item = Line<'a>> + use<'a> {
        let (layer, first) = (self.layer, self.first_line);
        self.content.lines().enumerate().map(move |(at, text)| Line { layer, number: first + at, text })
    }
}

#[derive(Clone, Copy)]
pub struct Line<'a> {
    layer: &'static str,
    number: usize,
    pub text: &'a str,
}

impl Line<'_> {
    pub fn wrong(&self, expected: &str) -> Error {
        Error::line(self.layer, self.number, self.text, expected)
    }

    pub fn integer(&self, word: &str) -> Result<Value> {
        word.parse::<i128>().map(Value::Integer).map_err(|_| self.wrong(&format!("a whole number, not {word:?}")))
    }

    pub fn real(&self, word: &str) -> Result<Value> {
        let value = word.parse::<f64>().ok().filter(|value| value.is_finite());
        value.map(Value::Real).ok_or_else(|| self.wrong(&format!("a number, not {word:?}")))
    }
}
