//! Which tracepoints a perf.data holds, and where in their data the call and its value are.
//!
//! The tracing data are those of trace.dat (trace-cmd.dat(5)): magic, version, sizes, header_page, header_event, the formats
//! of ftrace's own events and then of each system's. A format is the text that tracefs gives in `events/.../format`.

use super::perf_records::{u32_at, u64_at};

/// A tracepoint's id, and the offsets of fields in its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub id: u16,
    pub number: usize,
    pub value: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tracepoints {
    pub enter: Option<Point>,
    pub exit: Option<Point>,
}

impl Tracepoints {
    /// Entries are what is counted; exits are welcome.
    pub fn are_there(&self) -> bool {
        self.enter.is_some()
    }
}

/// What could be read, up to where it is damaged.
pub fn tracepoints(bytes: &[u8]) -> Tracepoints {
    let mut tracepoints = Tracepoints::default();
    let _ = walk(bytes, &mut tracepoints);
    tracepoints
}

fn walk(bytes: &[u8], tracepoints: &mut Tracepoints) -> Option<()> {
    let mut rest = bytes.strip_prefix(b"\x17\x08\x44tracing")?;
    text(&mut rest)?;
    // Byte order, size of a long, size of a page.
    rest = rest.get(6..)?;
    for _ in 0..2 {
        text(&mut rest)?;
        sized(&mut rest)?;
    }
    for _ in 0..count(&mut rest)? {
        sized(&mut rest)?;
    }
    for _ in 0..count(&mut rest)? {
        let system = text(&mut rest)?;
        for _ in 0..count(&mut rest)? {
            let format = sized(&mut rest)?;
            if system != b"raw_syscalls" {
                continue;
            }
            match std::str::from_utf8(format).ok().and_then(point) {
                Some(("sys_enter", point)) => tracepoints.enter = Some(point),
                Some(("sys_exit", point)) => tracepoints.exit = Some(point),
                _ => {}
            }
        }
    }
    Some(())
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = memchr::memchr(0, rest)?;
    let (text, after) = rest.split_at(end);
    *rest = &after[1..];
    Some(text)
}

fn count(rest: &mut &[u8]) -> Option<u32> {
    let count = u32_at(rest, 0)?;
    *rest = &rest[4..];
    Some(count)
}

fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = usize::try_from(u64_at(rest, 0)?).ok()?;
    let (sized, after) = rest[8..].split_at_checked(size)?;
    *rest = after;
    Some(sized)
}

fn point(format: &str) -> Option<(&str, Point)> {
    let mut name = None;
    let mut id = None;
    let mut offsets = [None; 2];
    for line in format.lines() {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("name: ") {
            name = Some(text);
        } else if let Some(number) = line.strip_prefix("ID: ") {
            id = number.parse().ok();
        } else if let Some(field) = line.strip_prefix("field:") {
            let (declared, rest) = field.split_once(';')?;
            let offset =
                rest.trim_start().strip_prefix("offset:").and_then(|text| text.split_once(';')?.0.parse().ok());
            match declared.rsplit(' ').next()? {
                "id" => offsets[0] = offset,
                "ret" => offsets[1] = offset,
                _ => {}
            }
        }
    }
    // Only exits have a value.
    Some((name?, Point { id: id?, number: offsets[0]?, value: offsets[1].unwrap_or(usize::MAX - 8) }))
}
