use std::fmt;

/// Why there is no smooth curve.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    Lengths {
        x: usize,
        y: usize,
        weights: Option<usize>,
    },
    NotFinite {
        what: &'static str,
        at: usize,
    },
    Weight {
        at: usize,
        weight: f64,
    },
    Degree(usize),
    Span(f64),
    Few {
        n: usize,
        neighbours: usize,
        degree: usize,
    },
    /// The nearest observations are all at one x, so that a distance to the farthest is 0.
    Ties {
        x: f64,
        neighbours: usize,
        ties: usize,
    },
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Lengths { x, y, weights: None } => write!(out, "{x} x for {y} y, expected as many"),
            Error::Lengths { x, y, weights: Some(weights) } => {
                write!(out, "{x} x and {weights} weights for {y} y, expected as many")
            }
            Error::NotFinite { what, at } => write!(out, "{what}[{at}] is not a finite number"),
            Error::Weight { at, weight } => write!(out, "weights[{at}] is {weight}, expected more than 0"),
            Error::Degree(degree) => write!(out, "degree {degree}, expected 0, 1 or 2"),
            Error::Span(span) => write!(out, "span {span}, expected more than 0"),
            Error::Few { n, neighbours, degree } => write!(
                out,
                "the span takes {neighbours} of {n} observations, and degree {degree} needs at least {}: take a larger span",
                degree + 1
            ),
            Error::Ties { x, neighbours, ties } => write!(
                out,
                "the {neighbours} observations nearest to x = {x} are all at it: take a span of more than {ties} of them"
            ),
        }
    }
}
