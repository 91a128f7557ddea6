//! Frames from the thread that reads to the thread that counts, many at a time.

use std::io::Read;
use std::sync::mpsc::{channel, sync_channel};

use twinbed_core::capture::{read_batches, Batch, Ended, Frame};
use twinbed_core::error::ReadError;

/// On the way at a time.
const BATCHES: usize = 4;

/// Reads a capture on a thread of its own, and hands its frames to `count` here.
pub fn read_ahead(reader: impl Read + Send, mut count: impl FnMut(&Frame)) -> Result<Ended, ReadError> {
    let (full, filled) = sync_channel::<Batch>(BATCHES);
    let (used, empty) = channel::<Batch>();
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            read_batches(reader, |batch| {
                // Fails only where the other side has panicked.
                let _ = full.send(batch);
                empty.try_recv().unwrap_or_default()
            })
        });
        for batch in filled {
            batch.frames().for_each(|frame| count(&frame));
            let _ = used.send(batch);
        }
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
