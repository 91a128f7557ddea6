//! Rows to a Parquet file, which is there once it is whole.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use pyo3::prelude::*;
use twinbed_core::readers::tcptrace::Row;
use twinbed_core::table::parquet::{Group, Writer};
use twinbed_core::table::Column;

use super::lane::Part;
use super::read::{read, Reading, Source};
use crate::artifact::named;

impl Part for Group<'_, Row> {
    fn push(&mut self, rows: &[Row]) {
        Group::push(self, rows);
    }
}

/// Writes rows to a Parquet file.
pub fn to_parquet(path: &Path, columns: &[Column<Row>], source: Source) -> PyResult<Reading> {
    let partial = partial(path);
    let target = partial.as_deref().unwrap_or(path);
    let file = File::create(target).map_err(|error| named(error, path))?;
    let written = write(file, columns, source).and_then(|(reading, written)| {
        let renamed = written.and_then(|()| partial.as_ref().map_or(Ok(()), |partial| std::fs::rename(partial, path)));
        renamed.map_err(|error| named(error, path))?;
        Ok(reading)
    });
    if let (Err(_), Some(partial)) = (&written, &partial) {
        // What is left of it is of no use; the error that ended it is what counts.
        let _ = std::fs::remove_file(partial);
    }
    written
}

fn write(file: File, columns: &[Column<Row>], source: Source) -> PyResult<(Reading, io::Result<()>)> {
    let mut writer = Writer::new(BufWriter::new(file), columns)?;
    let mut written = Ok(());
    let append = |group: &mut Group<Row>| {
        if written.is_ok() {
            written = writer.append(group);
        }
    };
    let reading = read(source, || Group::new(columns), append)?;
    Ok((reading, written.and_then(|()| writer.finish()).map(drop)))
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
