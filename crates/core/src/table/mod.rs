//! A table described once: its columns by name, kind and how a row gives the value. Arrow batches and Parquet pages
//! are made from the same description.

pub mod parquet;

use std::borrow::Cow;
use std::net::IpAddr;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64 bits, signed.
    Integer,
    Real,
    Flag,
    /// An unsigned number of 16 bits.
    Port,
    Text,
    /// An IP address, as text.
    Address,
}

/// A number that a column of integers takes. What does not fit its 64 bits is at its end.
pub trait Integer: Copy {
    fn to_i64(self) -> i64;
}

macro_rules! integers {
    ($($kind:ty),+) => {$(
        impl Integer for $kind {
            #[inline(always)]
            fn to_i64(self) -> i64 {
                i64::from(self)
            }
        }
    )+};
}
integers!(u8, u16, u32, i32, i64);

impl Integer for u64 {
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.min(i64::MAX as u64) as i64
    }
}

/// One column's values of some rows. Only the values of the column's kind are there, and `valid` only where it may be null.
#[derive(Default)]
pub struct Block {
    /// Of integers and ports.
    pub integers: Vec<i64>,
    pub reals: Vec<f64>,
    pub flags: Vec<bool>,
    pub addresses: Vec<IpAddr>,
    pub texts: Texts,
    pub valid: Vec<bool>,
}

/// Texts end to end.
#[derive(Default)]
pub struct Texts {
    bytes: String,
    ends: Vec<usize>,
}

impl Texts {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[*start..*end])
    }
}

/// Makes `values` and, of a column that may be null, `valid`, in one pass that the compiler sees through.
#[inline(always)]
fn optional<R, T: Copy + Default>(
    rows: &[R],
    values: &mut Vec<T>,
    valid: &mut Vec<bool>,
    get: impl Fn(&R) -> Option<T>,
) {
    values.resize(rows.len(), T::default());
    valid.resize(rows.len(), false);
    for ((row, value), valid) in rows.iter().zip(values).zip(valid) {
        let cell = get(row);
        *valid = cell.is_some();
        *value = cell.unwrap_or_default();
    }
}

#[inline(always)]
fn required<R, T>(rows: &[R], values: &mut Vec<T>, get: impl Fn(&R) -> T) {
    values.clear();
    values.extend(rows.iter().map(get));
}

type Gather<R> = Box<dyn Fn(&[R], &mut Block) + Send + Sync>;

/// A part that only some rows have. In rows without it, each of its columns has the same value.
pub(crate) struct Part<R> {
    pub number: usize,
    pub is_in: fn(&R) -> bool,
}

/// One column of rows of type `R`.
pub struct Column<R> {
    pub name: Cow<'static, str>,
    pub kind: Kind,
    pub nullable: bool,
    gather: Gather<R>,
    pub(crate) part: Option<Part<R>>,
}

impl<R> Column<R> {
    fn new(
        name: impl Into<Cow<'static, str>>,
        kind: Kind,
        nullable: bool,
        gather: impl Fn(&[R], &mut Block) + Send + Sync + 'static,
    ) -> Self {
        Column { name: name.into(), kind, nullable, gather: Box::new(gather), part: None }
    }

    pub fn integer<N: Integer>(
        name: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> N + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Kind::Integer, false, move |rows, block| {
            required(rows, &mut block.integers, |row| get(row).to_i64())
        })
    }

    pub fn optional_integer<N: Integer>(
        name: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> Option<N> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Kind::Integer, true, move |rows, block| {
            optional(rows, &mut block.integers, &mut block.valid, |row| get(row).map(N::to_i64))
        })
    }

    pub fn real(name: impl Into<Cow<'static, str>>, get: impl Fn(&R) -> f64 + Send + Sync + 'static) -> Self {
        Self::new(name, Kind::Real, false, move |rows, block| required(rows, &mut block.reals, &get))
    }

    pub fn optional_real(
        name: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Kind::Real, true, move |rows, block| optional(rows, &mut block.reals, &mut block.valid, &get))
    }

    pub fn flag(name: impl Into<Cow<'static, str>>, get: impl Fn(&R) -> bool + Send + Sync + 'static) -> Self {
        Self::new(name, Kind::Flag, false, move |rows, block| required(rows, &mut block.flags, &get))
    }

    pub fn optional_flag(
        name: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> Option<bool> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Kind::Flag, true, move |rows, block| optional(rows, &mut block.flags, &mut block.valid, &get))
    }

    pub fn port(name: impl Into<Cow<'static, str>>, get: impl Fn(&R) -> u16 + Send + Sync + 'static) -> Self {
        Self::new(name, Kind::Port, false, move |rows, block| {
            required(rows, &mut block.integers, |row| i64::from(get(row)))
        })
    }

    pub fn address(name: impl Into<Cow<'static, str>>, get: impl Fn(&R) -> IpAddr + Send + Sync + 'static) -> Self {
        Self::new(name, Kind::Address, false, move |rows, block| required(rows, &mut block.addresses, &get))
    }

    pub fn text(
        name: impl Into<Cow<'static, str>>,
        get: impl for<'a> Fn(&'a R) -> &'a str + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Kind::Text, false, move |rows, block| {
            block.texts.clear();
            rows.iter().for_each(|row| block.texts.push(get(row)));
        })
    }

    pub fn optional_text(
        name: impl Into<Cow<'static, str>>,
        get: impl for<'a> Fn(&'a R) -> Option<&'a str> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Kind::Text, true, move |rows, block| {
            block.texts.clear();
            block.valid.clear();
            for row in rows {
                let text = get(row);
                block.texts.push(text.unwrap_or_default());
                block.valid.push(text.is_some());
            }
        })
    }

    /// Say that the column belongs to a part of the rows: in rows without the part, it has one and the same value.
    pub fn of_part(mut self, number: usize, is_in: fn(&R) -> bool) -> Self {
        self.part = Some(Part { number, is_in });
        self
    }

    /// Fills `block` with this column's values of `rows`.
    #[inline]
    pub fn gather(&self, rows: &[R], block: &mut Block) {
        (self.gather)(rows, block)
    }
}
