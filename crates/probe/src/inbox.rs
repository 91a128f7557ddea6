//! Bytes on their way from the control stream to one channel's writer thread.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A queue bounded in bytes. When it is full the control stream is not read any further, which is the only way to slow the
/// controller down. The bound is so wide that only a child that has truly stopped reading holds up the other channels.
pub struct Inbox {
    limit_bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Vec<u8>>,
    bytes: usize,
    closed: bool,
    abandoned: bool,
}

impl Inbox {
    pub fn new(limit_bytes: usize) -> Self {
        Inbox { limit_bytes, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for room. What comes after the close, or when nobody takes any more, is dropped.
    pub fn push(&self, bytes: Vec<u8>) {
        let state = self.state();
        let mut state = self
            .changed
            .wait_while(state, |s| s.bytes >= self.limit_bytes && !s.abandoned)
            .unwrap_or_else(PoisonError::into_inner);
        if !state.closed && !state.abandoned {
            state.bytes += bytes.len();
            state.queue.push_back(bytes);
            self.changed.notify_all();
        }
    }

    /// No more will come.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// No more will be taken.
    pub fn abandon(&self) {
        let mut state = self.state();
        state.abandoned = true;
        state.queue.clear();
        self.changed.notify_all();
    }

    /// Waits for the next bytes; `None` at the end.
    pub fn take(&self) -> Option<Vec<u8>> {
        let state = self.state();
        let mut state = self
            .changed
            .wait_while(state, |s| s.queue.is_empty() && !s.closed && !s.abandoned)
            .unwrap_or_else(PoisonError::into_inner);
        let bytes = state.queue.pop_front()?;
        state.bytes -= bytes.len();
        self.changed.notify_all();
        Some(bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_everything_then_the_end() {
        let inbox = Inbox::new(1);
        inbox.push(b"a".to_vec());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                inbox.push(b"b".to_vec());
                inbox.close();
            });
            assert_eq!(inbox.take().unwrap(), b"a");
            assert_eq!(inbox.take().unwrap(), b"b");
            assert!(inbox.take().is_none());
        });
    }

    #[test]
    fn an_abandoned_inbox_never_blocks() {
        let inbox = Inbox::new(1);
        inbox.push(b"full".to_vec());
        inbox.abandon();
        inbox.push(b"more".to_vec());
        assert!(inbox.take().is_none());
    }
}
