//! Rows in a file on their way from one program to another of the same version: postcard's bytes of each after their
//! number, compressed.

use std::io::{self, BufReader, Read, Write};

use super::Row;

/// Counters are small and mostly zero: this level leaves a tenth.
const LEVEL: i32 = 1;
/// A row has some 1,000 at most; a file may be a stranger's.
const MOST_BYTES: usize = 1 << 16;

pub struct RowWriter<W: Write> {
    out: zstd::Encoder<'static, W>,
    bytes: Vec<u8>,
}

impl<W: Write> RowWriter<W> {
    pub fn new(out: W) -> io::Result<Self> {
        Ok(RowWriter { out: zstd::Encoder::new(out, LEVEL)?, bytes: Vec::new() })
    }

    pub fn push(&mut self, row: &Row) -> io::Result<()> {
        self.bytes.clear();
        self.bytes.extend([0; 4]);
        self.bytes = postcard::to_extend(row, std::mem::take(&mut self.bytes)).map_err(io::Error::other)?;
        let length = (self.bytes.len() - 4) as u32;
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.out.write_all(&self.bytes)
    }

    /// Without this, a reader finds the file cut off.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

pub struct RowReader<R: Read> {
    input: BufReader<zstd::Decoder<'static, BufReader<R>>>,
    bytes: Vec<u8>,
}

impl<R: Read> RowReader<R> {
    pub fn new(input: R) -> io::Result<Self> {
        Ok(RowReader { input: BufReader::new(zstd::Decoder::new(input)?), bytes: Vec::new() })
    }

    /// The next row; `None` after the last. Fails where the file is cut off or not what a writer made.
    pub fn next_row(&mut self) -> io::Result<Option<Row>> {
        let mut length = [0; 4];
        if self.input.read(&mut length[..1])? == 0 {
            return Ok(None);
        }
        self.input.read_exact(&mut length[1..])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST_BYTES {
            let reason = format!("a row of {length} bytes, expected at most {MOST_BYTES}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        self.bytes.resize(length, 0);
        self.input.read_exact(&mut self.bytes)?;
        let row =
            postcard::from_bytes(&self.bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Some(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_claims_gigabytes_is_refused_before_they_are_taken() {
        let file = zstd::encode_all(&u32::MAX.to_le_bytes()[..], LEVEL).unwrap();
        let error = RowReader::new(&file[..]).unwrap().next_row().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("expected at most 65536"), "{error}");
    }
}
