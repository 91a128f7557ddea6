//! Frames from the thread that reads to the thread that counts, many at a time.

use std::sync::mpsc::{channel, sync_channel};

use twinbed_core::capture::{Frame, LinkType};

/// What stays in a core's cache from being written to being read.
const BATCH_BYTES: usize = 1 << 18;
const BATCH_FRAMES: usize = 4096;
/// On the way at a time.
const BATCHES: usize = 4;

/// Frames, with their bytes end to end.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    frames: Vec<Entry>,
}

struct Entry {
    time_ns: Option<i64>,
    original_bytes: u32,
    link: LinkType,
    end: usize,
}

impl Batch {
    #[inline]
    fn push(&mut self, frame: &Frame) {
        self.bytes.extend_from_slice(frame.data);
        let Frame { time_ns, original_bytes, link, .. } = *frame;
        self.frames.push(Entry { time_ns, original_bytes, link, end: self.bytes.len() });
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.frames.len() >= BATCH_FRAMES
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }

    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        let mut start = 0;
        self.frames.iter().map(move |entry| {
            let data = &self.bytes[start..entry.end];
            start = entry.end;
            Frame { time_ns: entry.time_ns, original_bytes: entry.original_bytes, link: entry.link, data }
        })
    }
}

/// Runs `read` on a thread of its own; what it hands on goes to `count` here, in the same order.
pub fn read_ahead<T: Send>(read: impl FnOnce(&mut dyn FnMut(&Frame)) -> T + Send, mut count: impl FnMut(&Batch)) -> T {
    let (full, filled) = sync_channel::<Batch>(BATCHES);
    let (used, empty) = channel::<Batch>();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut batch = Batch::default();
            let ended = read(&mut |frame| {
                batch.push(frame);
                if batch.is_full() {
                    let mut next = empty.try_recv().unwrap_or_default();
                    next.clear();
                    // Fails only where the other side has panicked.
                    let _ = full.send(std::mem::replace(&mut batch, next));
                }
            });
            let _ = full.send(batch);
            ended
        });
        for batch in filled {
            count(&batch);
            let _ = used.send(batch);
        }
        match reader.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
