//! Frames from the thread that reads to the thread that counts, many at a time.

use std::io::Read;
use std::sync::mpsc::{channel, sync_channel};

use twinbed_core::capture::{read_batches, Batch, Ended, Frame};
use twinbed_core::error::ReadError;
use twinbed_core::wire::Dissected;

/// On the way at a time.
const BATCHES: usize = 4;

/// Reads a capture and its packets' headers on a thread of its own, and hands them to `count` here.
pub fn read_ahead(
    reader: impl Read + Send,
    dissect: impl Fn(&Frame) -> Dissected + Send,
    mut count: impl FnMut(&Frame, &Dissected),
) -> Result<Ended, ReadError> {
    let (full, filled) = sync_channel::<(Batch, Vec<Dissected>)>(BATCHES);
    let (used, empty) = channel::<(Batch, Vec<Dissected>)>();
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let mut dissected = Vec::new();
            read_batches(reader, |batch| {
                dissected.clear();
                dissected.extend(batch.frames().map(|frame| dissect(&frame)));
                // Fails only where the other side has panicked.
                let _ = full.send((batch, std::mem::take(&mut dissected)));
                let (batch, of_it) = empty.try_recv().unwrap_or_default();
                dissected = of_it;
                batch
            })
        });
        for (batch, dissected) in filled {
            batch.frames().zip(&dissected).for_each(|(frame, dissected)| count(&frame, dissected));
            let _ = used.send((batch, dissected));
        }
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
