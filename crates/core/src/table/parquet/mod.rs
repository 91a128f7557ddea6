//! Tables to Parquet files, for tables of many columns that mostly hold small counts.
//!
//! Own code rather than the `parquet` crate or pyarrow: those take 4 to 10 ns a value even where a whole column is one
//! value, this 1 to 2 ns. `tests/parquet.rs` has that crate read what is written here. Source: apache/parquet-format
//! (README.md, Encodings.md, parquet.thrift).

mod chunk;
mod dictionary;
mod encoding;
mod thrift;

use std::io::{self, Write};

use crate::table::{Block, Column, Kind, Part};
use chunk::{About, Chunk, Range};
use thrift::Struct;

const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a full row group.
pub const GROUP_ROWS: usize = 1 << 16;

/// A row group that grows.
pub struct Group<'a, R> {
    columns: &'a [Column<R>],
    chunks: Vec<Chunk>,
    block: Block,
    rows: usize,
    /// The columns' parts by number, and which of them some row of the last block has.
    parts: Vec<Option<&'a Part<R>>>,
    has_part: Vec<bool>,
}

impl<'a, R> Group<'a, R> {
    pub fn new(columns: &'a [Column<R>]) -> Self {
        let chunks = columns.iter().map(|column| Chunk::new(column.kind, column.nullable)).collect();
        let mut parts = Vec::new();
        for part in columns.iter().filter_map(|column| column.part.as_ref()) {
            parts.resize(parts.len().max(part.number + 1), None);
            parts[part.number] = Some(part);
        }
        Group { columns, chunks, block: Block::default(), rows: 0, parts, has_part: Vec::new() }
    }

    /// Encodes rows, best as many as stay in a core's cache while each column goes over them.
    pub fn push(&mut self, rows: &[R]) {
        let Some(first) = rows.first() else { return };
        self.has_part.clear();
        self.has_part.extend(self.parts.iter().map(|part| part.is_some_and(|part| rows.iter().any(part.is_in))));
        for (column, chunk) in self.columns.iter().zip(&mut self.chunks) {
            if column.part.as_ref().is_none_or(|part| self.has_part[part.number]) {
                column.gather(rows, &mut self.block);
                chunk.push(&self.block, rows.len());
            } else {
                column.gather(std::slice::from_ref(first), &mut self.block);
                chunk.repeat(&self.block, rows.len());
            }
        }
        self.rows += rows.len();
    }

    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// What the footer says of a row group.
struct Written {
    start: u64,
    rows: usize,
    chunks: Vec<About>,
}

/// A file that grows by row groups.
pub struct Writer<'a, R, W> {
    out: W,
    columns: &'a [Column<R>],
    at: u64,
    groups: Vec<Written>,
}

impl<'a, R, W: Write> Writer<'a, R, W> {
    pub fn new(mut out: W, columns: &'a [Column<R>]) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(Writer { out, columns, at: MAGIC.len() as u64, groups: Vec::new() })
    }

    /// Writes a row group, or its next columns where it comes in parts, and empties `group` for the next one.
    pub fn append(&mut self, group: &mut Group<R>) -> io::Result<()> {
        let is_whole = |written: &Written| written.chunks.len() == self.columns.len();
        let mut written = match self.groups.pop() {
            Some(begun) if !is_whole(&begun) => begun,
            last => {
                self.groups.extend(last);
                Written { start: self.at, rows: group.rows, chunks: Vec::new() }
            }
        };
        for chunk in &mut group.chunks {
            let about = chunk.write(&mut self.out)?;
            self.at += about.bytes as u64;
            written.chunks.push(about);
        }
        self.groups.push(written);
        group.rows = 0;
        Ok(())
    }

    /// Writes the footer.
    pub fn finish(mut self) -> io::Result<W> {
        let columns = self.columns;
        let mut footer = Vec::new();
        let rows: usize = self.groups.iter().map(|group| group.rows).sum();
        Struct::write(&mut footer, |file| {
            file.i32(1, 1);
            let root = std::iter::once(None);
            let elements: Vec<_> = root.chain(columns.iter().map(Some)).collect();
            file.structs(2, elements.into_iter(), |element, column| match column {
                None => {
                    element.binary(4, b"schema");
                    element.i32(5, columns.len() as i32);
                }
                Some(column) => schema_element(element, column),
            });
            file.i64(3, rows as i64);
            file.structs(4, self.groups.iter().enumerate(), |out, (number, group)| {
                row_group(out, number, group, columns)
            });
            file.binary(6, concat!("twinbed version ", env!("CARGO_PKG_VERSION")).as_bytes());
            // Least and greatest are by the type's own order.
            file.structs(7, columns.iter(), |order, _| order.nested(1, |_| {}));
        });
        self.out.write_all(&footer)?;
        self.out.write_all(&(footer.len() as u32).to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

const BOOLEAN: i32 = 0;
const INT32: i32 = 1;
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;

fn physical_type(kind: Kind) -> i32 {
    match kind {
        Kind::Integer => INT64,
        Kind::Real => DOUBLE,
        Kind::Flag => BOOLEAN,
        Kind::Port => INT32,
        Kind::Text | Kind::Address => BYTE_ARRAY,
    }
}

fn schema_element<R>(element: &mut Struct, column: &Column<R>) {
    const UTF8: i32 = 0;
    const UINT_16: i32 = 12;
    element.i32(1, physical_type(column.kind));
    element.i32(3, i32::from(column.nullable));
    element.binary(4, column.name.as_bytes());
    // The type as its users know it, in the old way and in the new one.
    match column.kind {
        Kind::Port => {
            element.i32(6, UINT_16);
            element.nested(10, |logical| {
                logical.nested(10, |integer| {
                    integer.i8(1, 16);
                    integer.boolean(2, false);
                })
            });
        }
        Kind::Text | Kind::Address => {
            element.i32(6, UTF8);
            element.nested(10, |logical| logical.nested(1, |_| {}));
        }
        Kind::Integer | Kind::Real | Kind::Flag => {}
    }
}

fn row_group<R>(out: &mut Struct, number: usize, group: &Written, columns: &[Column<R>]) {
    const UNCOMPRESSED: i32 = 0;
    let bytes: usize = group.chunks.iter().map(|chunk| chunk.bytes).sum();
    let mut next = group.start;
    out.structs(1, columns.iter().zip(&group.chunks), |out, (column, chunk)| {
        let at = next;
        next += chunk.bytes as u64;
        out.i64(2, 0);
        out.nested(3, |about| {
            about.i32(1, physical_type(column.kind));
            about.i32s(2, &chunk.encodings);
            about.binaries(3, &[column.name.as_bytes()]);
            about.i32(4, UNCOMPRESSED);
            about.i64(5, chunk.rows as i64);
            about.i64(6, chunk.bytes as i64);
            about.i64(7, chunk.bytes as i64);
            about.i64(9, (at + chunk.dictionary_bytes as u64) as i64);
            if chunk.dictionary_bytes > 0 {
                about.i64(11, at as i64);
            }
            about.nested(12, |statistics| {
                statistics.i64(3, chunk.nulls as i64);
                if let Some(range) = chunk.range {
                    let (least, greatest) = bounds(range, column.kind);
                    statistics.binary(5, &greatest);
                    statistics.binary(6, &least);
                }
            });
        });
    });
    out.i64(2, bytes as i64);
    out.i64(3, group.rows as i64);
    out.i64(5, group.start as i64);
    out.i64(6, bytes as i64);
    // Only so far does the field reach; readers go by the order.
    if let Ok(number) = i16::try_from(number) {
        out.i16(7, number);
    }
}

/// Least and greatest as PLAIN bytes.
fn bounds(range: Range, kind: Kind) -> (Vec<u8>, Vec<u8>) {
    match range {
        Range::Integers(least, greatest) if kind == Kind::Port => {
            ((least as i32).to_le_bytes().to_vec(), (greatest as i32).to_le_bytes().to_vec())
        }
        Range::Integers(least, greatest) => (least.to_le_bytes().to_vec(), greatest.to_le_bytes().to_vec()),
        // Zero has two signs: the bounds hold both.
        Range::Reals(least, greatest) => {
            let least = if least == 0.0 { -0.0 } else { least };
            let greatest = if greatest == 0.0 { 0.0 } else { greatest };
            (f64::to_le_bytes(least).to_vec(), f64::to_le_bytes(greatest).to_vec())
        }
        Range::Flags(least, greatest) => (vec![u8::from(least)], vec![u8::from(greatest)]),
    }
}
