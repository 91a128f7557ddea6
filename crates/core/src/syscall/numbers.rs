//! Numbers in the text of traces: from bytes, without allocation.

/// An unsigned decimal number, and nothing else.
#[inline]
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A decimal number with a sign or none, or a hexadecimal one after 0x; those from 2^63 up wrap, as registers do.
#[inline]
pub fn signed(text: &[u8]) -> Option<i64> {
    if let Some(digits) = text.strip_prefix(b"-") {
        return i64::try_from(decimal(digits)?).ok()?.checked_neg();
    }
    if let Some(digits) = text.strip_prefix(b"0x") {
        return hexadecimal(digits).map(u64::cast_signed);
    }
    decimal(text).map(u64::cast_signed)
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| Some(value << 4 | u64::from((*byte as char).to_digit(16)?)))
}

/// Seconds with up to nine decimals, in nanoseconds.
#[inline]
pub fn seconds(text: &[u8]) -> Option<i64> {
    let (whole, part) = match memchr::memchr(b'.', text) {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &b""[..]),
    };
    if part.len() > 9 {
        return None;
    }
    let part_ns = match part {
        b"" => 0,
        digits => decimal(digits)? * 10_u64.pow(9 - digits.len() as u32),
    };
    i64::try_from(decimal(whole)?).ok()?.checked_mul(1_000_000_000)?.checked_add(part_ns as i64)
}

/// Seconds, or hours:minutes:seconds of a day that is not said, in nanoseconds.
#[inline]
pub fn time(text: &[u8]) -> Option<i64> {
    match text {
        [h1, h2, b':', m1, m2, b':', rest @ ..] => {
            let hours = decimal(&[*h1, *h2])? as i64;
            let minutes = decimal(&[*m1, *m2])? as i64;
            seconds(rest)?.checked_add((hours * 60 + minutes) * 60_000_000_000)
        }
        _ => seconds(text),
    }
}

/// The text up to the first space, and what follows the spaces.
#[inline]
pub fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

/// The start of the digits that `text` ends with.
#[inline]
pub fn digits_at_end(text: &[u8]) -> usize {
    text.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1)
}
