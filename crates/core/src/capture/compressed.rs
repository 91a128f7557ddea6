//! Compressed captures: recognised by their first bytes, never by their name, and read as a stream.
//!
//! gzip (RFC 1952, several members too) by zlib-rs, Zstandard (RFC 8878, several frames too) by its own library, which
//! is about three times as fast as the decoders in Rust.

use std::io::{self, BufReader, Chain, Cursor, Read};

const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTANDARD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const READ_BYTES: usize = 1 << 18;

/// How a file's bytes are to be read, by its first four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstandard,
}

impl Compression {
    pub fn of(start: &[u8]) -> Self {
        if start.starts_with(&GZIP) {
            Compression::Gzip
        } else if start.starts_with(&ZSTANDARD) {
            Compression::Zstandard
        } else {
            Compression::None
        }
    }
}

type Rest<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

/// A stream's bytes as they were before they were compressed, or as they are.
pub enum Decompressed<R: Read> {
    Plain(Chain<Cursor<Vec<u8>>, R>),
    Gzip(Box<flate2::bufread::MultiGzDecoder<Rest<R>>>),
    Zstandard(Box<zstd::Decoder<'static, Rest<R>>>),
}

impl<R: Read> Decompressed<R> {
    pub fn new(mut reader: R) -> io::Result<Self> {
        let mut start = Vec::new();
        reader.by_ref().take(4).read_to_end(&mut start)?;
        let compression = Compression::of(&start);
        let whole = Cursor::new(start).chain(reader);
        Ok(match compression {
            Compression::None => Decompressed::Plain(whole),
            Compression::Gzip => {
                let whole = BufReader::with_capacity(READ_BYTES, whole);
                Decompressed::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(whole)))
            }
            Compression::Zstandard => {
                let whole = BufReader::with_capacity(READ_BYTES, whole);
                Decompressed::Zstandard(Box::new(zstd::Decoder::with_buffer(whole)?))
            }
        })
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Decompressed::Plain(reader) => reader.read(buffer),
            Decompressed::Gzip(reader) => reader.read(buffer).map_err(damaged),
            Decompressed::Zstandard(reader) => reader.read(buffer).map_err(damaged),
        }
    }
}

/// The decompressors' errors get kinds of their own; the system's stay as they are.
fn damaged(error: io::Error) -> io::Error {
    match (error.raw_os_error(), error.kind()) {
        (Some(_), _) | (None, io::ErrorKind::Interrupted | io::ErrorKind::UnexpectedEof) => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}
