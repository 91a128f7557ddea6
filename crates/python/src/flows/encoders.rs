//! Rows encoded on several threads: each has some of the columns, and they write a row group one after the other.

use std::io::{self, Write};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use twinbed_core::table::parquet::{Group, Writer, GROUP_ROWS};
use twinbed_core::table::Column;

/// Blocks of rows on the way to an encoder at a time.
const BLOCKS: usize = 8;

enum Message<R> {
    Rows(Arc<Vec<R>>),
    EndOfGroup,
}

/// The file, and whose columns come next in it.
struct Turn<'a, R, W> {
    writer: Writer<'a, R, W>,
    next: usize,
    failed: Option<io::Error>,
}

struct Shared<'a, R, W> {
    turn: Mutex<Turn<'a, R, W>>,
    passed: Condvar,
}

/// Writes the blocks of rows that `read` hands out with `count` threads.
pub fn with_encoders<'a, R: Send + Sync, W: Write + Send, T>(
    writer: Writer<'a, R, W>,
    columns: &[Column<R>],
    count: usize,
    read: impl FnOnce(&mut dyn FnMut(&mut Vec<R>)) -> T,
) -> (T, io::Result<Writer<'a, R, W>>) {
    let parts: Vec<_> = columns.chunks(columns.len().div_ceil(count.max(1)).max(1)).collect();
    let shared = Shared { turn: Mutex::new(Turn { writer, next: 0, failed: None }), passed: Condvar::new() };
    let result = std::thread::scope(|scope| {
        let (used, empty) = channel();
        let encoders: Vec<_> = (0..parts.len())
            .map(|number| {
                let (sender, blocks) = sync_channel(BLOCKS);
                let (shared, parts, used) = (&shared, &parts, used.clone());
                scope.spawn(move || encode(shared, parts, number, blocks, used));
                sender
            })
            .collect();
        let tell = |message: &dyn Fn() -> Message<R>| {
            for encoder in &encoders {
                // Fails only where the other side has panicked, which the scope hands on.
                let _ = encoder.send(message());
            }
        };
        let mut rows_in_group = 0;
        let result = read(&mut |rows| {
            rows_in_group += rows.len();
            let block = Arc::new(std::mem::replace(rows, empty.try_recv().unwrap_or_default()));
            tell(&|| Message::Rows(block.clone()));
            if rows_in_group >= GROUP_ROWS {
                rows_in_group = 0;
                tell(&|| Message::EndOfGroup);
            }
        });
        if rows_in_group > 0 {
            tell(&|| Message::EndOfGroup);
        }
        result
    });
    let Turn { writer, failed, .. } = shared.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    (result, failed.map_or(Ok(writer), Err))
}

fn encode<R, W: Write>(
    shared: &Shared<R, W>,
    parts: &[&[Column<R>]],
    number: usize,
    blocks: Receiver<Message<R>>,
    used: Sender<Vec<R>>,
) {
    let mut group = Group::new(parts[number]);
    for message in blocks {
        match message {
            Message::Rows(block) => {
                group.push(&block);
                if let Some(mut rows) = Arc::into_inner(block) {
                    rows.clear();
                    let _ = used.send(rows);
                }
            }
            Message::EndOfGroup => {
                let turn = shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = shared.passed.wait_while(turn, |turn| turn.next != number);
                let mut turn = waited.unwrap_or_else(PoisonError::into_inner);
                if turn.failed.is_none() {
                    turn.failed = turn.writer.append(&mut group).err();
                }
                turn.next = (number + 1) % parts.len();
                shared.passed.notify_all();
            }
        }
    }
}
