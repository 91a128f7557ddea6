//! Opening an artifact, and saying which one is wrong.

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read};
use std::path::Path;

use memmap2::Mmap;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinbed_core::capture::{Compression, Decompressed};
use twinbed_core::error::ReadError;
use twinbed_core::Error;

pyo3::create_exception!(
    twinbed._core,
    ArtifactError,
    PyValueError,
    "An artifact that cannot be read: which file, where in it, what was expected there."
);

/// An artifact's bytes.
pub enum Artifact {
    Mapped(Mmap),
    /// Not a regular file (a pipe), an empty one, or a compressed one, which is decompressed.
    Stream(Box<dyn Read + Send + Sync>),
}

/// Opens a file; `-` is standard input.
pub fn open(path: &Path) -> PyResult<Artifact> {
    if path == Path::new("-") {
        return stream(std::io::stdin(), path);
    }
    let file = File::open(path).map_err(|error| named(error, path))?;
    let about = file.metadata().map_err(|error| named(error, path))?;
    if about.is_file() && about.len() > 0 {
        // SAFETY: artifacts are immutable once their run's folder has its name, and only read here. A file that
        // someone cuts short meanwhile ends the process with SIGBUS, as with any mapping.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| named(error, path))?;
        if Compression::of(&map) != Compression::None {
            return stream(file, path);
        }
        // Only a hint.
        let _ = map.advise(memmap2::Advice::Sequential);
        return Ok(Artifact::Mapped(map));
    }
    stream(file, path)
}

/// Opens a file to be read from its start to its end, decompressed; `-` is standard input. Ctrl-C ends a read.
pub fn open_stream(path: &Path) -> PyResult<Box<dyn Read + Send>> {
    let open = || -> std::io::Result<_> {
        let mut reader: Box<dyn Read + Send> = match path == Path::new("-") {
            true => Box::new(std::io::stdin()),
            false => Box::new(File::open(path)?),
        };
        // What comes first is waited for here, because the decompressor's choice does not look for signals.
        let mut start = [0; 4];
        let mut count = 0;
        let mut first = Interruptible { reader: &mut reader, bytes: 0 };
        while count < start.len() {
            match first.read(&mut start[count..]) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let reader = Decompressed::new(Cursor::new(start).take(count as u64).chain(reader))?;
        Ok(Interruptible { reader, bytes: 0 })
    };
    Ok(Box::new(open().map_err(|error| named(error, path))?))
}

/// Looks for signals when a read is interrupted, and now and then.
struct Interruptible<R> {
    reader: R,
    /// Read since signals were looked for.
    bytes: usize,
}

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        const BYTES: usize = 1 << 26;
        let result = self.reader.read(buffer);
        self.bytes += *result.as_ref().unwrap_or(&BYTES);
        if self.bytes >= BYTES {
            self.bytes = 0;
            Python::attach(|py| py.check_signals()).map_err(std::io::Error::other)?;
        }
        result
    }
}

fn stream(reader: impl Read + Send + Sync + 'static, path: &Path) -> PyResult<Artifact> {
    let reader = Decompressed::new(reader).map_err(|error| named(error, path))?;
    Ok(Artifact::Stream(Box::new(reader)))
}

/// All of an artifact's bytes, handed to `read`.
pub fn with_bytes<T>(path: &Path, read: impl FnOnce(&[u8]) -> Result<T, Error>) -> PyResult<T> {
    let result = match open(path)? {
        Artifact::Mapped(map) => read(&map),
        Artifact::Stream(mut file) => {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut bytes).map_err(|error| named(error, path))?;
            read(&bytes)
        }
    };
    result.map_err(|error| wrong(path, &error))
}

/// Reads an artifact from its beginning, wherever its bytes are.
pub fn with_reader<T>(artifact: Artifact, read: impl FnOnce(&mut dyn Read) -> T) -> T {
    match artifact {
        Artifact::Mapped(map) => read(&mut &map[..]),
        Artifact::Stream(mut stream) => read(&mut stream),
    }
}

/// Why an artifact could not be read, as the exception that says which.
pub fn unreadable(error: ReadError, path: &Path) -> PyErr {
    match error {
        ReadError::Io(error) => named(error, path),
        ReadError::Format(error) => wrong(path, &error),
    }
}

/// An OSError of the right class, with the file's name.
pub fn named(error: std::io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            pyo3::exceptions::PyOSError::new_err((number, text, path.display().to_string()))
        }
        None => error.into(),
    }
}

pub fn wrong(path: &Path, error: &Error) -> PyErr {
    ArtifactError::new_err(format!("{}: {error}", path.display()))
}
