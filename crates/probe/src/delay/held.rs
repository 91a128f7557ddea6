//! Frames that wait, in the order in which they are due; of those that are due at once, in the order in which they came.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::sys;

pub struct Held {
    limit: usize,
    waiting: Mutex<Waiting>,
    sooner: Condvar,
}

#[derive(Default)]
struct Waiting {
    frames: BinaryHeap<Reverse<(i64, u64, Vec<u8>)>>,
    came: u64,
}

impl Held {
    pub fn new(limit: usize) -> Self {
        Held { limit, waiting: Mutex::default(), sooner: Condvar::new() }
    }

    /// False where as many wait as may.
    pub fn put(&self, due_ns: i64, frame: Vec<u8>) -> bool {
        let mut waiting = self.waiting();
        if waiting.frames.len() >= self.limit {
            return false;
        }
        let is_first = waiting.frames.peek().is_none_or(|Reverse((first_ns, ..))| due_ns < *first_ns);
        let number = waiting.came;
        waiting.came += 1;
        waiting.frames.push(Reverse((due_ns, number, frame)));
        drop(waiting);
        if is_first {
            self.sooner.notify_one();
        }
        true
    }

    /// The next frame and the moment when it was due, not before that.
    pub fn take(&self) -> (i64, Vec<u8>) {
        let mut waiting = self.waiting();
        loop {
            let left_ns = waiting.frames.peek().map(|Reverse((due_ns, ..))| due_ns - sys::monotonic_ns());
            waiting = match left_ns {
                None => self.sooner.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(left_ns) if left_ns > 0 => {
                    let limit = Duration::from_nanos(left_ns as u64);
                    self.sooner.wait_timeout(waiting, limit).unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let Some(Reverse((due_ns, _, frame))) = waiting.frames.pop() else { continue };
                    return (due_ns, frame);
                }
            };
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn frames_go_when_they_are_due_and_in_that_order() {
        let held = Held::new(3);
        let now = sys::monotonic_ns();
        assert!(held.put(now + 2_000_000, vec![2]));
        assert!(held.put(now + 1_000_000, vec![1]));
        assert!(held.put(now + 2_000_000, vec![3]));
        assert!(!held.put(now, vec![4]), "as many wait as may");
        for number in 1..=3 {
            let (due, frame) = held.take();
            assert_eq!(frame, [number]);
            assert!(due <= sys::monotonic_ns());
        }
    }

    #[test]
    fn one_that_is_due_sooner_does_not_wait_for_those_before_it() {
        let held = Arc::new(Held::new(10));
        held.put(sys::monotonic_ns() + 3_600_000_000_000, vec![1]);
        let taking = {
            let held = held.clone();
            thread::spawn(move || held.take().1)
        };
        held.put(sys::monotonic_ns(), vec![2]);
        assert_eq!(taking.join().unwrap(), [2]);
    }
}
