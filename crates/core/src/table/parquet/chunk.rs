//! One column of one row group, encoded block by block.
//!
//! Most columns of a connection table hold the same value in row after row: blocks of one value become one run, however
//! many there are, and cost a comparison a row. Integers that differ are DELTA_BINARY_PACKED, text and reals
//! with few values go by a dictionary, other reals are PLAIN.

use std::io::{self, Write};

use super::dictionary::Dictionary;
use super::encoding::{bits, delta, delta_run, pack, packed, packed_flags, run, width};
use super::thrift::Struct;
use crate::table::{Block, Kind};

const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

const PLAIN: i32 = 0;
const RLE: i32 = 3;
const DELTA_BINARY_PACKED: i32 = 5;
const RLE_DICTIONARY: i32 = 8;

/// Reals go by a dictionary until it is this long.
const MOST_REALS: usize = 1024;

/// What a block holds all through.
#[derive(Clone, Copy, PartialEq)]
enum Constant {
    Null,
    Integer(i64),
    /// By its bits, so that NaN equals itself and the zeros differ.
    Real(u64),
    Flag(bool),
    Entry(u32),
}

/// Least and greatest.
#[derive(Clone, Copy)]
pub enum Range {
    Integers(i64, i64),
    Reals(f64, f64),
    Flags(bool, bool),
}

/// A column chunk that grows.
pub struct Chunk {
    kind: Kind,
    nullable: bool,
    rows: usize,
    nulls: usize,
    range: Option<Range>,
    /// A real was not a number: no order holds.
    unordered: bool,
    pages: Vec<u8>,
    run: Option<(Constant, usize)>,
    dictionary: Dictionary,
    /// A bit for each encoding used.
    encodings: u32,
    body: Vec<u8>,
    integers: Vec<i64>,
    reals: Vec<f64>,
    entries: Vec<u32>,
}

/// What the footer says of a finished column chunk.
pub struct About {
    pub bytes: usize,
    /// Of these the dictionary page, which comes first.
    pub dictionary_bytes: usize,
    pub encodings: Vec<i32>,
    pub rows: usize,
    pub nulls: usize,
    pub range: Option<Range>,
}

impl Chunk {
    pub fn new(kind: Kind, nullable: bool) -> Self {
        Chunk {
            kind,
            nullable,
            rows: 0,
            nulls: 0,
            range: None,
            unordered: false,
            pages: Vec::new(),
            run: None,
            dictionary: Dictionary::default(),
            encodings: 1 << RLE,
            body: Vec::new(),
            integers: Vec::new(),
            reals: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds what `block` holds of this column, of `rows` rows.
    pub fn push(&mut self, block: &Block, rows: usize) {
        self.rows += rows;
        let valid = if self.nullable { Some(block.valid.as_slice()) } else { None };
        let nulls = valid.map_or(0, count_nulls);
        self.nulls += nulls;
        if rows == 0 {
            return;
        }
        if nulls == rows {
            return self.constant(Constant::Null, rows);
        }
        let valid = valid.filter(|_| nulls > 0);
        match self.kind {
            Kind::Integer | Kind::Port => self.integers(&block.integers, valid),
            Kind::Real => self.reals(&block.reals, valid),
            Kind::Flag => self.flags(&block.flags, valid),
            Kind::Text | Kind::Address => self.texts(block, rows, valid),
        }
    }

    /// Adds `rows` rows of the one value that `block` holds.
    pub fn repeat(&mut self, block: &Block, rows: usize) {
        self.push(block, 1);
        // A single value is a run.
        if let Some((value, count)) = &mut self.run {
            *count += rows - 1;
            self.rows += rows - 1;
            self.nulls += if *value == Constant::Null { rows - 1 } else { 0 };
        }
    }

    fn constant(&mut self, value: Constant, rows: usize) {
        match &mut self.run {
            Some((held, count)) if *held == value => *count += rows,
            _ => {
                self.end_run();
                self.run = Some((value, rows));
            }
        }
    }

    fn integers(&mut self, values: &[i64], valid: Option<&[bool]>) {
        if valid.is_none() && all_same(values, |value| value as u64) {
            self.between(Range::Integers(values[0], values[0]));
            return self.constant(Constant::Integer(values[0]), values.len());
        }
        self.begin_page(values.len(), valid);
        let mut compacted = std::mem::take(&mut self.integers);
        let present = present(values, valid, &mut compacted);
        let (least, greatest) =
            present.iter().fold((i64::MAX, i64::MIN), |(least, most), value| (least.min(*value), most.max(*value)));
        self.between(Range::Integers(least, greatest));
        delta(&mut self.body, present);
        self.integers = compacted;
        self.end_page(values.len(), DELTA_BINARY_PACKED);
    }

    fn reals(&mut self, values: &[f64], valid: Option<&[bool]>) {
        if valid.is_none() && all_same(values, |value| value.to_bits()) {
            self.real_range(&values[..1]);
            return self.constant(Constant::Real(values[0].to_bits()), values.len());
        }
        self.begin_page(values.len(), valid);
        let mut compacted = std::mem::take(&mut self.reals);
        let present = present(values, valid, &mut compacted);
        self.real_range(present);
        if self.dictionary.count as usize <= MOST_REALS {
            self.entries.clear();
            let dictionary = &mut self.dictionary;
            self.entries.extend(present.iter().map(|value| dictionary.real(value.to_bits())));
            self.dictionary_page(values.len());
        } else {
            self.body.extend(present.iter().flat_map(|value| value.to_le_bytes()));
            self.end_page(values.len(), PLAIN);
        }
        self.reals = compacted;
    }

    fn flags(&mut self, values: &[bool], valid: Option<&[bool]>) {
        if valid.is_none() && values.iter().all(|value| *value == values[0]) {
            self.between(Range::Flags(values[0], values[0]));
            return self.constant(Constant::Flag(values[0]), values.len());
        }
        self.begin_page(values.len(), valid);
        let mut compacted = Vec::new();
        let present = present(values, valid, &mut compacted);
        self.between(Range::Flags(present.iter().all(|flag| *flag), present.iter().any(|flag| *flag)));
        bits(&mut self.body, present);
        self.end_page(values.len(), PLAIN);
    }

    fn texts(&mut self, block: &Block, rows: usize, valid: Option<&[bool]>) {
        let (entries, dictionary) = (&mut self.entries, &mut self.dictionary);
        entries.clear();
        if self.kind == Kind::Address {
            // Neighbours often share an address.
            let mut last = None;
            for address in &block.addresses {
                let at = match last {
                    Some((before, at)) if before == *address => at,
                    _ => dictionary.address(*address),
                };
                last = Some((*address, at));
                entries.push(at);
            }
        } else {
            let present = |at: usize| valid.is_none_or(|valid| valid[at]);
            let texts = block.texts.iter().enumerate().filter(|(at, _)| present(*at));
            entries.extend(texts.map(|(_, text)| dictionary.text(text)));
        }
        if valid.is_none() && entries.iter().all(|entry| *entry == entries[0]) {
            let value = Constant::Entry(entries[0]);
            return self.constant(value, rows);
        }
        self.begin_page(rows, valid);
        self.dictionary_page(rows);
    }

    fn real_range(&mut self, values: &[f64]) {
        let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            self.unordered |= value.is_nan();
            least = if *value < least { *value } else { least };
            greatest = if *value > greatest { *value } else { greatest };
        }
        self.between(Range::Reals(least, greatest));
    }

    fn between(&mut self, added: Range) {
        use Range::{Flags, Integers, Reals};
        self.range = Some(match (self.range, added) {
            (Some(Integers(a, b)), Integers(c, d)) => Integers(a.min(c), b.max(d)),
            (Some(Reals(a, b)), Reals(c, d)) => Reals(a.min(c), b.max(d)),
            (Some(Flags(a, b)), Flags(c, d)) => Flags(a & c, b | d),
            (_, added) => added,
        });
    }

    /// Writes what has been one value so far.
    fn end_run(&mut self) {
        let Some((value, rows)) = self.run.take() else { return };
        self.body.clear();
        let body = &mut self.body;
        if self.nullable {
            levels(body, |levels| run(levels, u32::from(value != Constant::Null), rows, 1));
        }
        let encoding = match value {
            Constant::Null => PLAIN,
            Constant::Integer(value) => {
                delta_run(body, value, rows);
                DELTA_BINARY_PACKED
            }
            Constant::Flag(value) => {
                pack(body, std::iter::repeat_n(u64::from(value), rows), 1);
                PLAIN
            }
            Constant::Real(value) => {
                let entry = self.dictionary.real(value);
                dictionary_run(body, entry, rows)
            }
            Constant::Entry(entry) => dictionary_run(body, entry, rows),
        };
        self.end_page(rows, encoding);
    }

    /// Starts a page with which of its rows have a value: all, or as `valid` says.
    fn begin_page(&mut self, rows: usize, valid: Option<&[bool]>) {
        self.end_run();
        self.body.clear();
        if self.nullable {
            levels(&mut self.body, |levels| match valid {
                Some(valid) => packed_flags(levels, valid),
                None => run(levels, 1, rows, 1),
            });
        }
    }

    fn dictionary_page(&mut self, rows: usize) {
        let width = width(self.entries.iter().copied().max().unwrap_or(0));
        self.body.push(width as u8);
        packed(&mut self.body, &self.entries, width);
        self.end_page(rows, RLE_DICTIONARY);
    }

    fn end_page(&mut self, rows: usize, encoding: i32) {
        Struct::write(&mut self.pages, |header| {
            header.i32(1, DATA_PAGE);
            header.i32(2, self.body.len() as i32);
            header.i32(3, self.body.len() as i32);
            header.nested(5, |data| {
                data.i32(1, rows as i32);
                data.i32(2, encoding);
                data.i32(3, RLE);
                data.i32(4, RLE);
            });
        });
        self.pages.extend_from_slice(&self.body);
        self.encodings |= 1 << encoding;
    }

    /// Writes the chunk and starts the next one, in the same memory.
    pub fn write(&mut self, out: &mut impl Write) -> io::Result<About> {
        self.end_run();
        self.body.clear();
        if self.dictionary.count > 0 {
            let values = &self.dictionary.values;
            Struct::write(&mut self.body, |header| {
                header.i32(1, DICTIONARY_PAGE);
                header.i32(2, values.len() as i32);
                header.i32(3, values.len() as i32);
                header.nested(7, |dictionary| {
                    dictionary.i32(1, self.dictionary.count as i32);
                    dictionary.i32(2, PLAIN);
                });
            });
            self.body.extend_from_slice(values);
            self.encodings |= 1 << PLAIN;
        }
        out.write_all(&self.body)?;
        out.write_all(&self.pages)?;
        let about = About {
            bytes: self.body.len() + self.pages.len(),
            dictionary_bytes: self.body.len(),
            encodings: (0..32).filter(|encoding| self.encodings & 1 << encoding != 0).collect(),
            rows: self.rows,
            nulls: self.nulls,
            range: self.range.filter(|_| !self.unordered),
        };
        self.pages.clear();
        self.dictionary.clear();
        (self.rows, self.nulls, self.range, self.unordered, self.encodings) = (0, 0, None, false, 1 << RLE);
        Ok(about)
    }
}

/// Which rows have a value, after their length.
fn levels(body: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    body.extend_from_slice(&[0; 4]);
    write(body);
    let length = body.len() as u32 - 4;
    body[..4].copy_from_slice(&length.to_le_bytes());
}

fn dictionary_run(body: &mut Vec<u8>, entry: u32, rows: usize) -> i32 {
    let width = width(entry);
    body.push(width as u8);
    run(body, entry, rows, width);
    RLE_DICTIONARY
}

/// Looks at all values, whatever they are: a loop without a way out goes several at a time.
fn all_same<T: Copy>(values: &[T], bits: impl Fn(T) -> u64) -> bool {
    values.iter().fold(0, |different, value| different | bits(*value) ^ bits(values[0])) == 0
}

/// Counts in bytes, of which the processor takes many at a time, for as long as a byte holds the count.
fn count_nulls(valid: &[bool]) -> usize {
    let nulls = |valid: &[bool]| valid.iter().fold(0u8, |count, valid| count + u8::from(!*valid));
    valid.chunks(usize::from(u8::MAX)).map(|valid| usize::from(nulls(valid))).sum()
}

/// The values that are there.
fn present<'a, T: Copy + Default>(values: &'a [T], valid: Option<&[bool]>, compacted: &'a mut Vec<T>) -> &'a [T] {
    let Some(valid) = valid else { return values };
    compacted.resize(values.len(), T::default());
    let mut count = 0;
    for (value, valid) in values.iter().zip(valid) {
        compacted[count] = *value;
        count += usize::from(*valid);
    }
    &compacted[..count]
}
