//! Thrift's compact protocol, as far as a Parquet footer and page headers need it. Source: thrift-compact-protocol.md.

const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// An unsigned number of seven bits a byte, lowest first (ULEB128).
#[inline]
pub fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A signed number whose sign is its lowest bit.
#[inline]
pub fn zigzag(out: &mut Vec<u8>, number: i64) {
    varint(out, (number << 1 ^ number >> 63) as u64);
}

/// The fields of one struct, in the order of their numbers.
pub struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

impl<'a> Struct<'a> {
    /// Writes a struct: `fields` adds them.
    pub fn write(out: &'a mut Vec<u8>, fields: impl FnOnce(&mut Struct)) {
        let mut this = Struct { out, last: 0 };
        fields(&mut this);
        this.out.push(0);
    }

    fn header(&mut self, field: u8, kind: u8) {
        debug_assert!(field > self.last && field - self.last < 16);
        self.out.push((field - self.last) << 4 | kind);
        self.last = field;
    }

    pub fn boolean(&mut self, field: u8, value: bool) {
        self.header(field, if value { 1 } else { 2 });
    }

    pub fn i8(&mut self, field: u8, value: i8) {
        self.header(field, 3);
        self.out.push(value as u8);
    }

    pub fn i16(&mut self, field: u8, value: i16) {
        self.header(field, I16);
        zigzag(self.out, i64::from(value));
    }

    pub fn i32(&mut self, field: u8, value: i32) {
        self.header(field, I32);
        zigzag(self.out, i64::from(value));
    }

    pub fn i64(&mut self, field: u8, value: i64) {
        self.header(field, I64);
        zigzag(self.out, value);
    }

    pub fn binary(&mut self, field: u8, value: &[u8]) {
        self.header(field, BINARY);
        binary(self.out, value);
    }

    pub fn nested(&mut self, field: u8, fields: impl FnOnce(&mut Struct)) {
        self.header(field, STRUCT);
        Struct::write(self.out, fields);
    }

    fn list(&mut self, field: u8, kind: u8, count: usize) {
        self.header(field, LIST);
        if count < 15 {
            self.out.push((count as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            varint(self.out, count as u64);
        }
    }

    pub fn i32s(&mut self, field: u8, values: &[i32]) {
        self.list(field, I32, values.len());
        for value in values {
            zigzag(self.out, i64::from(*value));
        }
    }

    pub fn binaries(&mut self, field: u8, values: &[&[u8]]) {
        self.list(field, BINARY, values.len());
        for value in values {
            binary(self.out, value);
        }
    }

    pub fn structs<T>(
        &mut self,
        field: u8,
        items: impl ExactSizeIterator<Item = T>,
        mut fields: impl FnMut(&mut Struct, T),
    ) {
        self.list(field, STRUCT, items.len());
        for item in items {
            Struct::write(self.out, |inner| fields(inner, item));
        }
    }
}

fn binary(out: &mut Vec<u8>, value: &[u8]) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}
