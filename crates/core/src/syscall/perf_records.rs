//! The records of perf.data: attributes, samples, and what ends other records.
//!
//! Sources: the kernel's include/uapi/linux/perf_event.h as described in perf_event_open(2), and
//! tools/perf/Documentation/perf.data-file-format.txt.

/// Bits of sample_type.
mod sample {
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const IDENTIFIER: u64 = 1 << 16;
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The part of a perf_event_attr that says how its records are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    sample_type: u64,
    read_format: u64,
    /// Records other than samples end with the sample's identity.
    sample_id_all: bool,
    pub ids: Vec<u64>,
}

impl Attribute {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        const SAMPLE_ID_ALL: u64 = 1 << 18;
        Some(Attribute {
            sample_type: u64_at(bytes, 24)?,
            read_format: u64_at(bytes, 32)?,
            sample_id_all: u64_at(bytes, 40)? & SAMPLE_ID_ALL != 0,
            ids: Vec::new(),
        })
    }

    pub fn has_same_layout(&self, other: &Attribute) -> bool {
        let layout = |one: &Attribute| (one.sample_type, one.read_format, one.sample_id_all);
        layout(self) == layout(other)
    }

    /// Samples hold tracepoint data.
    pub fn is_of_tracepoint(&self) -> bool {
        self.sample_type & sample::RAW != 0
    }

    /// Where samples begin with their event's id.
    pub fn begins_with_id(&self) -> bool {
        self.sample_type & sample::IDENTIFIER != 0
    }
}

/// A sample's thread, time and tracepoint data.
pub struct Sample<'a> {
    pub thread: u32,
    pub time_ns: Option<u64>,
    pub raw: &'a [u8],
}

/// Reads a sample's body; `None` where it is too short or holds no thread or tracepoint data.
pub fn sample<'a>(body: &'a [u8], attribute: &Attribute) -> Option<Sample<'a>> {
    let has = |bit| attribute.sample_type & bit != 0;
    let mut at = 8 * (usize::from(has(sample::IDENTIFIER)) + usize::from(has(sample::IP)));
    if !has(sample::TID) || !has(sample::RAW) {
        return None;
    }
    let thread = u32_at(body, at + 4)?;
    at += 8;
    let mut time_ns = None;
    if has(sample::TIME) {
        time_ns = Some(u64_at(body, at)?);
        at += 8;
    }
    for bit in [sample::ADDR, sample::ID, sample::STREAM_ID, sample::CPU, sample::PERIOD] {
        at += 8 * usize::from(has(bit));
    }
    if has(sample::READ) {
        at = at.checked_add(read_bytes(body, at, attribute.read_format)?)?;
    }
    if has(sample::CALLCHAIN) {
        let frames = usize::try_from(u64_at(body, at)?).ok()?;
        at = at.checked_add(frames.checked_add(1)?.checked_mul(8)?)?;
    }
    let bytes = u32_at(body, at)? as usize;
    let start = at.checked_add(4)?;
    Some(Sample { thread, time_ns, raw: body.get(start..start.checked_add(bytes)?)? })
}

/// The size of a read_format block: values with times, ids and lost counts as the format asks, for one event or a group.
fn read_bytes(body: &[u8], at: usize, format: u64) -> Option<usize> {
    const TIMES: u64 = 0b11;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;
    let times = (format & TIMES).count_ones() as usize;
    let each = 1 + usize::from(format & ID != 0) + usize::from(format & LOST != 0);
    let values = if format & GROUP != 0 {
        let events = usize::try_from(u64_at(body, at)?).ok()?;
        1_usize.checked_add(times)?.checked_add(events.checked_mul(each)?)?
    } else {
        times + each
    };
    values.checked_mul(8)
}

/// The time in the identity that ends a record which is no sample.
pub fn record_time(body: &[u8], attribute: &Attribute) -> Option<u64> {
    let has = |bit| attribute.sample_type & bit != 0;
    if !attribute.sample_id_all || !has(sample::TIME) {
        return None;
    }
    let after = [sample::ID, sample::STREAM_ID, sample::CPU, sample::IDENTIFIER];
    let bytes = 8 * (1 + after.into_iter().filter(|bit| has(*bit)).count());
    u64_at(body, body.len().checked_sub(bytes)?)
}
