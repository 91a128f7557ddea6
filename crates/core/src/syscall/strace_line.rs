//! The parts of a line of `strace`: what stands before the call, the call's name, its value and duration.

use super::numbers::{decimal, digits_at_end, seconds, signed, time};

/// TASK_COMM_LEN less the final zero.
const NAME_BYTES: usize = 15;

/// What stands at the end of a line whose call has not returned.
pub const UNFINISHED: &[u8] = b"<unfinished ...>";

pub struct Prefix<'a> {
    pub pid: Option<u64>,
    pub name: Option<&'a [u8]>,
    pub time_ns: Option<i64>,
}

/// Splits what stands before the call off; `None` for a line that is strace's own message.
#[inline]
pub fn prefix(line: &[u8]) -> Option<(Prefix<'_>, &[u8])> {
    let mut prefix = Prefix { pid: None, name: None, time_ns: None };
    let mut rest = line.trim_ascii_start();
    if let Some(inside) = rest.strip_prefix(b"[pid ") {
        let end = memchr::memmem::find(inside, b"] ")?;
        pid(inside[..end].trim_ascii(), &mut prefix)?;
        rest = inside[end + 2..].trim_ascii_start();
    } else if rest.first().is_some_and(u8::is_ascii_digit) {
        // `N ` and `N<comm> `, but not a time.
        let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        match rest[end] {
            b' ' => {
                prefix.pid = decimal(&rest[..end]);
                rest = rest[end..].trim_ascii_start();
            }
            b'<' => {
                let close = end + memchr::memmem::find(&rest[end..], b"> ")?;
                pid(&rest[..=close], &mut prefix)?;
                rest = rest[close + 1..].trim_ascii_start();
            }
            _ => {}
        }
    }
    if rest.first().is_some_and(u8::is_ascii_digit) {
        let end = memchr::memchr(b' ', rest)?;
        // Below this a number is the time since the last line (-r).
        const RELATIVE_S: i64 = 100_000_000;
        let text = &rest[..end];
        let absolute = |ns: &i64| text.contains(&b':') || *ns >= RELATIVE_S * 1_000_000_000;
        prefix.time_ns = Some(time(text)?).filter(absolute);
        rest = rest[end..].trim_ascii_start();
    }
    // The instruction pointer (-i) and the call's number (-n).
    while let Some(inside) = rest.strip_prefix(b"[") {
        let end = memchr::memchr(b']', inside)?;
        rest = inside[end + 1..].trim_ascii_start();
    }
    let message = rest.is_empty() || rest.starts_with(b"strace: ");
    (!message).then_some((prefix, rest))
}

/// `N` or `N<comm>`.
fn pid<'a>(text: &'a [u8], prefix: &mut Prefix<'a>) -> Option<()> {
    let (id, name) = match memchr::memchr(b'<', text) {
        Some(at) => (&text[..at], text[at + 1..].strip_suffix(b">")),
        None => (text, None),
    };
    prefix.pid = Some(decimal(id)?);
    prefix.name = name;
    Some(())
}

/// `strace: Process N attached`
pub fn attached(line: &[u8]) -> Option<u64> {
    decimal(line.strip_prefix(b"strace: Process ")?.strip_suffix(b" attached")?)
}

#[inline]
pub fn name_length(text: &[u8]) -> usize {
    text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(text.len())
}

/// The name of the program in `("/path/name", ...`.
pub fn executed(arguments: &[u8]) -> Option<&[u8]> {
    let start = memchr::memchr(b'"', arguments)? + 1;
    let path = &arguments[start..start + memchr::memchr(b'"', &arguments[start..])?];
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    Some(&name[..name.len().min(NAME_BYTES)])
}

pub struct Ending {
    pub value: Option<i64>,
    pub duration_ns: Option<u64>,
}

/// The last `) = value` of a line, and the duration at its end.
#[inline]
pub fn ending(text: &[u8]) -> Option<Ending> {
    let mut rest = text.trim_ascii_end();
    let mut duration_ns = None;
    if let Some(inside) = rest.strip_suffix(b">") {
        let dot = digits_at_end(inside);
        let start = digits_at_end(inside[..dot].strip_suffix(b".").unwrap_or(&inside[..dot]));
        if start > 0 && start < dot && inside[start - 1] == b'<' {
            duration_ns = seconds(&inside[start..]).and_then(|ns| u64::try_from(ns).ok());
            rest = &inside[..start - 1];
        }
    }
    let mut end = rest.len();
    loop {
        let at = memchr::memrchr(b'=', &rest[..end])?;
        let before = rest[..at].trim_ascii_end();
        if rest.get(at + 1) == Some(&b' ') && before.len() < at && before.ends_with(b")") {
            let value = rest[at + 2..].trim_ascii_start();
            let end = value.iter().position(|byte| matches!(byte, b' ' | b'<')).unwrap_or(value.len());
            let value = &value[..end];
            let whole = value == b"?" || signed(value).is_some();
            return whole.then(|| Ending { value: signed(value), duration_ns });
        }
        end = at;
    }
}
