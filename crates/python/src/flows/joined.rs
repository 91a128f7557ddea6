//! The rows of all shares of a capture, merged to those of one pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::vec::IntoIter;

use twinbed_core::readers::tcptrace::{Row, RowReader, SHARDS};

use super::lane::{Part, Rows};

/// Rows that a thread reads before they are merged: reading takes twice as long as all that follows.
const BLOCK_ROWS: usize = 128;
const BLOCKS: usize = 2;

/// The file of a shard's rows that were finished early, by the packet at which they were.
pub fn early(folder: &Path, shard: usize) -> PathBuf {
    folder.join(format!("early-{shard}"))
}

/// The file of the other rows, by their first packets.
pub fn last(folder: &Path) -> PathBuf {
    folder.join("last")
}

/// Hands over the rows of the shares in `folders`, and gives their number. `out` takes a part, and leaves an empty one.
pub fn join<P: Part>(folders: &[PathBuf], empty: impl Fn() -> P, mut out: impl FnMut(&mut P)) -> io::Result<u64> {
    let mut lanes: [Rows<P>; SHARDS] = std::array::from_fn(|_| Rows::new(empty()));
    let of_shards = folders.iter().flat_map(|folder| (0..SHARDS).map(|shard| early(folder, shard)));
    let mut finished_early = Merged::open(of_shards, |row| row.finished_early_at.unwrap_or(u64::MAX))?;
    while let Some((row, file)) = finished_early.next_row()? {
        lanes[file % SHARDS].push(row, &mut out);
    }
    let mut rows = 0;
    for lane in lanes {
        rows += lane.rest(&mut out);
    }
    let mut others = Merged::open(folders.iter().map(|folder| last(folder)), |row| row.first_packet_number)?;
    let mut rest = Rows::new(empty());
    while let Some((row, _)) = others.next_row()? {
        rest.push(row, &mut out);
    }
    Ok(rows + rest.rest(&mut out))
}

/// Files that are each sorted by a key that no two have in common.
struct Merged<K> {
    key: K,
    files: Vec<Ahead>,
    /// Of each file its next row.
    heads: Vec<Option<Row>>,
    /// Their keys and the files' numbers.
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<K: Fn(&Row) -> u64> Merged<K> {
    fn open(paths: impl Iterator<Item = PathBuf>, key: K) -> io::Result<Self> {
        let files = paths.map(Ahead::open).collect::<io::Result<Vec<_>>>()?;
        let heads = files.iter().map(|_| None).collect();
        let mut merged = Merged { key, files, heads, order: BinaryHeap::new() };
        for file in 0..merged.files.len() {
            merged.read(file)?;
        }
        Ok(merged)
    }

    fn read(&mut self, file: usize) -> io::Result<()> {
        self.heads[file] = self.files[file].next_row()?;
        self.order.extend(self.heads[file].as_ref().map(|row| Reverse(((self.key)(row), file))));
        Ok(())
    }

    /// The next row and the number of its file.
    fn next_row(&mut self) -> io::Result<Option<(Row, usize)>> {
        let Some(Reverse((_, file))) = self.order.pop() else { return Ok(None) };
        let row = self.heads[file].take();
        self.read(file)?;
        Ok(row.map(|row| (row, file)))
    }
}

/// A file that a thread of its own reads.
struct Ahead {
    blocks: Receiver<io::Result<Vec<Row>>>,
    block: IntoIter<Row>,
}

impl Ahead {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = RowReader::new(File::open(path)?)?;
        let (sender, blocks) = sync_channel(BLOCKS);
        std::thread::Builder::new().spawn(move || read_blocks(file, &sender))?;
        Ok(Ahead { blocks, block: Vec::new().into_iter() })
    }

    fn next_row(&mut self) -> io::Result<Option<Row>> {
        if self.block.len() == 0 {
            let lost = |_| io::Error::other("a thread that read rows has ended");
            self.block = self.blocks.recv().map_err(lost)??.into_iter();
        }
        // A block without rows is the end, and comes again.
        Ok(self.block.next())
    }
}

/// Sends a file's rows, and then blocks without any, until nobody takes them.
fn read_blocks(mut file: RowReader<File>, blocks: &SyncSender<io::Result<Vec<Row>>>) {
    let mut next = || {
        let mut block = Vec::with_capacity(BLOCK_ROWS);
        while block.len() < BLOCK_ROWS {
            match file.next_row()? {
                Some(row) => block.push(row),
                None => break,
            }
        }
        Ok(block)
    };
    while blocks.send(next()).is_ok() {}
}
