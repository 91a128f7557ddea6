//! Connections that have seen a FIN or a RST, in the order in which they can be finished early.

use std::collections::VecDeque;

use super::connection::Live;
use crate::flow::table::Table;

/// Place, and the number of the packet as of which it stands in line.
#[derive(Debug, Default)]
pub(super) struct Closed {
    line: VecDeque<(u32, u64)>,
}

impl Closed {
    /// A FIN or a RST of the connection at a place: the first of them puts it in line.
    #[cold]
    pub fn push(&mut self, place: u32, live: &mut Live) {
        if !live.is_in_line {
            live.is_in_line = true;
            self.line.push_back((place, live.last_number));
        }
    }

    /// Takes up to `count` connections out of the line, at packet `number`. Those that went on after they came into
    /// line, and for half of the time since, go to its end.
    pub fn take(&mut self, count: usize, number: u64, live: &Table<Live>) -> Vec<u32> {
        let mut places = Vec::new();
        for _ in 0..self.line.len().min(2 * count) {
            let Some((place, since)) = self.line.pop_front() else { break };
            // Finished before, and perhaps another one's place since.
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
