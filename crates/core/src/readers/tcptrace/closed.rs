//! Connections that have seen a FIN or a RST, in the order in which they can be finished early.

use std::collections::VecDeque;

use super::connection::Live;
use crate::flow::table::Table;

/// A connection's place, and the number of the packet since which it stands in line.
#[derive(Debug, Default)]
pub(super) struct Closed {
    line: VecDeque<(u32, u64)>,
}

impl Closed {
    /// Puts a connection in line at its first FIN or RST.
    #[cold]
    pub fn push(&mut self, place: u32, live: &mut Live) {
        if !live.is_in_line {
            live.is_in_line = true;
            self.line.push_back((place, live.last_number));
        }
    }

    /// Takes up to `count` connections out of the line, at packet `number`. A connection that went on
    /// for more than half of the time since it came into line goes to the end.
    pub fn take(&mut self, count: usize, number: u64, live: &Table<Live>) -> Vec<u32> {
        let mut places = Vec::new();
        for _ in 0..self.line.len().min(2 * count) {
            let Some((place, since)) = self.line.pop_front() else { break };
            // It was finished before, and the place may be another one's since.
            if !live.is_taken(place) || live[place].first_number > since {
                continue;
            }
            let connection = &live[place];
            if connection.last_number - since > (number - since) / 2 {
                self.line.push_back((place, connection.last_number));
                continue;
            }
            places.push(place);
            if places.len() == count {
                break;
            }
        }
        places
    }
}
