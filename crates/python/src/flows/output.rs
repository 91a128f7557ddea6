//! Rows to a Parquet file, which is there once it is whole.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use pyo3::prelude::*;
use twinbed_core::readers::tcptrace::Row;

use super::encoders::with_encoders;
use crate::artifact::named;
use twinbed_core::table::parquet::{Group, Writer, GROUP_ROWS};
use twinbed_core::table::Column;

/// As many rows as stay in a core's cache while each column goes over them.
pub const BLOCK_ROWS: usize = 256;

/// Gathers rows into blocks. What takes one leaves an empty vector.
pub struct Blocks<'a> {
    rows: Vec<Row>,
    /// All that were handed in.
    pub count: u64,
    sink: &'a mut dyn FnMut(&mut Vec<Row>),
}

impl<'a> Blocks<'a> {
    pub fn new(sink: &'a mut dyn FnMut(&mut Vec<Row>)) -> Self {
        Blocks { rows: Vec::with_capacity(BLOCK_ROWS), count: 0, sink }
    }

    #[inline]
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
        self.count += 1;
        if self.rows.len() == BLOCK_ROWS {
            (self.sink)(&mut self.rows);
        }
    }

    pub fn finish(mut self) {
        if !self.rows.is_empty() {
            (self.sink)(&mut self.rows);
        }
    }
}

/// Writes the rows that `read` hands out.
pub fn to_parquet<T>(
    path: &Path,
    columns: &[Column<Row>],
    threads: usize,
    read: impl FnOnce(&mut Blocks) -> PyResult<T>,
) -> PyResult<T> {
    let partial = partial(path);
    let target = partial.as_deref().unwrap_or(path);
    let file = File::create(target).map_err(|error| named(error, path))?;
    let written = write(file, columns, threads, read).and_then(|(result, written)| {
        let renamed = written.and_then(|()| partial.as_ref().map_or(Ok(()), |partial| std::fs::rename(partial, path)));
        renamed.map_err(|error| named(error, path))?;
        Ok(result)
    });
    if let (Err(_), Some(partial)) = (&written, &partial) {
        // What is left of it is of no use; the error that ended it is what counts.
        let _ = std::fs::remove_file(partial);
    }
    written
}

fn write<T>(
    file: File,
    columns: &[Column<Row>],
    threads: usize,
    read: impl FnOnce(&mut Blocks) -> PyResult<T>,
) -> PyResult<(T, io::Result<()>)> {
    let mut writer = Writer::new(BufWriter::new(file), columns)?;
    let in_blocks = |sink: &mut dyn FnMut(&mut Vec<Row>)| {
        let mut blocks = Blocks::new(sink);
        let result = read(&mut blocks);
        blocks.finish();
        result
    };
    if threads > 1 {
        let (result, writer) = with_encoders(writer, columns, threads - 1, in_blocks);
        return Ok((result?, writer.and_then(Writer::finish).map(drop)));
    }
    let mut group = Group::new(columns);
    let mut written = Ok(());
    let result = in_blocks(&mut |rows| {
        if written.is_ok() {
            group.push(rows);
            if group.rows() >= GROUP_ROWS {
                written = writer.append(&mut group);
            }
        }
        rows.clear();
    })?;
    if written.is_ok() && group.rows() > 0 {
        written = writer.append(&mut group);
    }
    Ok((result, written.and_then(|()| writer.finish()).map(drop)))
}

/// The name beside `path` that the file has until it is whole; none for what is no regular file.
fn partial(path: &Path) -> Option<std::path::PathBuf> {
    let is_special = std::fs::metadata(path).is_ok_and(|about| !about.is_file());
    let name = path.file_name().filter(|_| !is_special)?;
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}", std::process::id()));
    Some(path.with_file_name(partial))
}
