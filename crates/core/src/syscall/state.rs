//! The state of a reader while it goes through a trace.

use super::architecture::Architecture;
use super::event::Sink;
use super::kind::Kind;
use super::names::{CallNames, Programs};
use super::threads::Threads;
use super::trace::{Summary, Trace};

/// Why a call is skipped: no number is left for its name.
pub const TOO_MANY_NAMES: &str = "too_many_names";

/// What a reader carries while it goes through a trace.
pub struct State {
    pub calls: CallNames,
    pub programs: Programs,
    pub threads: Threads,
    pub summary: Summary,
}

impl State {
    pub fn new(kind: Kind, architecture: Architecture) -> Self {
        State {
            calls: CallNames::new(architecture),
            programs: Programs::default(),
            threads: Threads::new(),
            summary: Summary::new(kind, architecture),
        }
    }

    pub fn finish(mut self, sink: &mut impl Sink) -> Trace {
        self.threads.finish(sink);
        self.summary.architecture = self.calls.architecture();
        Trace { summary: self.summary, calls: self.calls, programs: self.programs }
    }

    pub fn skip(&mut self, reason: &'static str) {
        *self.summary.skipped.entry(reason).or_default() += 1;
    }

    pub fn note(&mut self, what: &'static str) {
        *self.summary.notes.entry(what).or_default() += 1;
    }

    /// `count` events were lost before this place.
    pub fn lost(&mut self, count: u64, sink: &mut impl Sink) {
        let lost = self.summary.lost_events.unwrap_or(0);
        self.summary.lost_events = Some(lost.saturating_add(count));
        self.threads.gap(sink);
    }
}
