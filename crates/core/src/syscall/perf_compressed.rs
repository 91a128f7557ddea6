//! The compressed records of `perf record -z`: pieces of one Zstandard stream. A record may go on from one piece to the
//! next.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// A piece is 64 KiB at most; one that comes to more than this is damaged.
const MOST_BYTES: usize = 1 << 26;

/// The stream, and what of it is not yet a whole record.
#[derive(Default)]
pub struct Pieces {
    decoder: Option<Decoder<'static>>,
    bytes: Vec<u8>,
    taken: usize,
}

impl Pieces {
    /// Adds a piece; `None` for one that is damaged.
    pub fn add(&mut self, piece: &[u8]) -> Option<()> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert(Decoder::new().ok()?),
        };
        let mut input = InBuffer::around(piece);
        let mut scratch = [0; 1 << 14];
        loop {
            let mut output = OutBuffer::around(&mut scratch[..]);
            decoder.run(&mut input, &mut output).ok()?;
            let written = output.as_slice().len();
            self.bytes.extend_from_slice(output.as_slice());
            if self.bytes.len() > MOST_BYTES {
                return None;
            }
            if input.pos() == piece.len() && written < scratch.len() {
                return Some(());
            }
        }
    }

    pub fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    pub fn take(&mut self, bytes: usize) {
        self.taken += bytes;
    }
}
