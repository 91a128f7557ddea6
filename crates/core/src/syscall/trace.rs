//! Facts about a trace that has been read, besides its calls.

use super::architecture::Architecture;
use super::kind::Kind;
use super::names::{CallNames, Programs};
use crate::capture::Counts;
use crate::error::Error;

/// Facts about a trace that are not calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub kind: Kind,
    pub architecture: Architecture,
    /// Lines, records or entries that are no call, by reason.
    pub skipped: Counts,
    /// Calls that are there, but odd.
    pub notes: Counts,
    /// Events that the tracer says it lost; `None` where it says nothing.
    pub lost_events: Option<u64>,
    /// Why the trace ends before its end, and where.
    pub cut_off: Option<Error>,
    /// What the tracer says about the trace, in its order.
    pub facts: Vec<(String, String)>,
}

impl Summary {
    pub(crate) fn new(kind: Kind, architecture: Architecture) -> Self {
        Summary {
            kind,
            architecture,
            skipped: Counts::new(),
            notes: Counts::new(),
            lost_events: None,
            cut_off: None,
            facts: Vec::new(),
        }
    }
}

/// A trace that has been read.
pub struct Trace {
    pub summary: Summary,
    pub calls: CallNames,
    pub programs: Programs,
}
