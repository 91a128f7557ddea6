//! How values lie in a page. Source: Encodings.md of apache/parquet-format.

use super::thrift::{varint, zigzag};

/// Values of `width` bits, lowest bit first, to whole bytes.
#[inline]
pub fn pack(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    let (mut word, mut filled) = (0u64, 0);
    for value in values {
        word |= value << filled;
        let room = 64 - filled;
        if width >= room {
            out.extend_from_slice(&word.to_le_bytes());
            word = value.checked_shr(room).unwrap_or(0);
            filled = width - room;
        } else {
            filled += width;
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// One bit a flag.
pub fn bits(out: &mut Vec<u8>, flags: &[bool]) {
    for eight in flags.chunks(8) {
        out.push(eight.iter().enumerate().fold(0, |byte, (at, flag)| byte | u8::from(*flag) << at));
    }
}

/// The width of numbers up to `most`, at least 1.
pub fn width(most: u32) -> u32 {
    (32 - most.leading_zeros()).max(1)
}

/// One value `count` times, in the hybrid of runs and packed bits.
pub fn run(out: &mut Vec<u8>, value: u32, count: usize, width: u32) {
    varint(out, (count as u64) << 1);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Values in the hybrid of runs and packed bits, all packed.
pub fn packed(out: &mut Vec<u8>, values: &[u32], width: u32) {
    varint(out, (values.len().div_ceil(8) as u64) << 1 | 1);
    let padding = std::iter::repeat_n(0, values.len().next_multiple_of(8) - values.len());
    pack(out, values.iter().map(|value| u64::from(*value)).chain(padding), width);
}

/// Flags in the hybrid of runs and packed bits, all packed.
pub fn packed_flags(out: &mut Vec<u8>, flags: &[bool]) {
    varint(out, (flags.len().div_ceil(8) as u64) << 1 | 1);
    bits(out, flags);
}

const BLOCK: usize = 128;
const MINIBLOCKS: usize = 4;
const MINIBLOCK: usize = BLOCK / MINIBLOCKS;

/// DELTA_BINARY_PACKED; at least one value.
pub fn delta(out: &mut Vec<u8>, values: &[i64]) {
    let Some(first) = values.first() else { return };
    varint(out, BLOCK as u64);
    varint(out, MINIBLOCKS as u64);
    varint(out, values.len() as u64);
    zigzag(out, *first);
    let mut deltas = [0i64; BLOCK];
    for start in (1..values.len()).step_by(BLOCK) {
        let block = &values[start..values.len().min(start + BLOCK)];
        let before = &values[start - 1..];
        for ((delta, value), before) in deltas.iter_mut().zip(block).zip(before) {
            *delta = value.wrapping_sub(*before);
        }
        let least = deltas[..block.len()].iter().copied().min().unwrap_or(0);
        // What fills the last block up needs no bits.
        deltas[block.len()..].fill(least);
        zigzag(out, least);
        let mut widths = [0; MINIBLOCKS];
        for (width, deltas) in widths.iter_mut().zip(deltas.chunks(MINIBLOCK)) {
            // The difference of any two 64-bit numbers, as an unsigned one.
            let all = deltas.iter().fold(0, |all, delta| all | delta.wrapping_sub(least) as u64);
            *width = (64 - all.leading_zeros()) as u8;
        }
        out.extend_from_slice(&widths);
        for (width, deltas) in widths.iter().zip(deltas.chunks(MINIBLOCK)) {
            if *width > 0 {
                pack(out, deltas.iter().map(|delta| delta.wrapping_sub(least) as u64), u32::from(*width));
            }
        }
    }
}

/// DELTA_BINARY_PACKED of one value `count` times: one block for all, of one miniblock without bits.
pub fn delta_run(out: &mut Vec<u8>, value: i64, count: usize) {
    varint(out, (count.max(1) - 1).next_multiple_of(BLOCK).max(BLOCK) as u64);
    varint(out, 1);
    varint(out, count as u64);
    zigzag(out, value);
    if count > 1 {
        out.extend_from_slice(&[0, 0]);
    }
}
