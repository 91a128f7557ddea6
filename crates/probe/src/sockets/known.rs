//! The sockets that are there, and what is written of each.

use std::collections::HashMap;

use super::diag::{Found, Id, SYN_SENT};
use super::file::Output;
use super::scope::Scope;

/// A socket that was there when it was last asked for.
struct Known {
    family: u8,
    id: Id,
    of_workload: bool,
    at_start: bool,
    /// Its number in the file, once it has a sample there.
    number: Option<u32>,
    samples: u64,
    /// The search that saw it last.
    search: u64,
}

pub struct Sockets {
    pub output: Output,
    scope: Scope,
    limit_samples: u64,
    /// By cookie.
    known: HashMap<u64, Known>,
    /// Whether those that turn up were there before the start.
    at_start: bool,
    search: u64,
    most_samples: u64,
    /// Of the workload, with a sample.
    pub written: u32,
    /// That came after the start and are not the workload's.
    pub left_out: u64,
}

impl Sockets {
    pub fn new(output: Output, scope: Scope, limit_samples: u64) -> Self {
        Sockets {
            output,
            scope,
            limit_samples,
            known: HashMap::new(),
            at_start: true,
            search: 0,
            most_samples: 0,
            written: 0,
            left_out: 0,
        }
    }

    /// How much of the room is taken, from 0 to 1: of the file's, or of that of one socket's samples.
    pub fn fill(&self) -> f64 {
        self.output.fill().max(self.most_samples as f64 / self.limit_samples as f64)
    }

    /// Families and ids of the workload's.
    pub fn of_workload(&self) -> Vec<(u8, Id)> {
        self.known.values().filter(|known| known.of_workload).map(|known| (known.family, known.id)).collect()
    }

    pub fn begin_search(&mut self) {
        self.search += 1;
    }

    /// A socket that a search or a look-up gave.
    pub fn take(&mut self, asked_ns: i64, found: &Found) {
        let of_workload = self.scope.has(found.family, &found.id);
        let at_start = self.at_start;
        let left_out = &mut self.left_out;
        let known = self.known.entry(found.id.cookie()).or_insert_with(|| {
            *left_out += u64::from(!of_workload && !at_start);
            let (family, id) = (found.family, found.id);
            Known { family, id, of_workload, at_start, number: None, samples: 0, search: 0 }
        });
        known.search = self.search;
        let Some(info) = found.info else { return };
        // A connection that is not there yet has nothing to say.
        if !of_workload || found.state == SYN_SENT || known.samples >= self.limit_samples {
            return;
        }
        if known.number.is_none() && self.output.socket(self.written, found, known.at_start) {
            known.number = Some(self.written);
            self.written += 1;
        }
        if let Some(number) = known.number {
            known.samples += u64::from(self.output.sample(asked_ns, number, info));
            self.most_samples = self.most_samples.max(known.samples);
        }
    }

    pub fn gone(&mut self, id: &Id) {
        self.known.remove(&id.cookie());
    }

    /// What the search did not see is gone; what turns up from now on is new.
    pub fn end_search(&mut self) {
        let search = self.search;
        self.known.retain(|_, known| known.search == search);
        self.at_start = false;
    }
}
