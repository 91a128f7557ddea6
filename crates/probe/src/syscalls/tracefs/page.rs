//! The pages of trace_pipe_raw: a time, a length, then events with the time since the one before
//! (kernel documentation: trace/ring-buffer-design.rst, and tracefs's events/header_page, events/header_event).

use super::format::Format;
use crate::failure::Outcome;

const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// An absolute time has 59 bits; the rest is that of the time before.
const TIME_STAMP_BITS: u32 = 59;
/// Flags in the length.
const EVENTS_MISSED: u64 = 1 << 31;
const MISSED_COUNT_FOLLOWS: u64 = 1 << 30;
const LENGTH_MASK: u64 = (1 << 20) - 1;

pub struct PageFormat {
    data: usize,
    pub bytes: usize,
}

impl PageFormat {
    pub fn new(text: &str) -> Outcome<PageFormat> {
        let data = Format::new(text).field("data")?;
        Ok(PageFormat { data: data.offset, bytes: data.offset + data.bytes })
    }

    /// Hands over each event's time and content. Returns how many events are missing before the page.
    pub fn events(&self, page: &[u8], mut take: impl FnMut(u64, &[u8])) -> Missed {
        let (Some(mut time_ns), Some(commit)) = (double(page, 0), double(page, 8)) else {
            return Missed::None;
        };
        let length = (commit & LENGTH_MASK) as usize;
        let missed = match (commit & EVENTS_MISSED, commit & MISSED_COUNT_FOLLOWS) {
            (0, _) => Missed::None,
            (_, 0) => Missed::Unknown,
            _ => double(page, self.data + length).map_or(Missed::Unknown, Missed::Events),
        };
        let mut rest = page.get(self.data..).and_then(|data| data.get(..length)).unwrap_or_default();
        while let Some(header) = word(rest, 0) {
            let kind = header & 0x1f;
            let delta = u64::from(header >> 5);
            let array = word(rest, 4);
            let (start, end) = match (kind, array) {
                // The rest of the page is empty.
                (TYPE_PADDING, _) if delta == 0 => break,
                (TYPE_PADDING, Some(bytes)) => {
                    time_ns = time_ns.wrapping_add(delta);
                    rest = rest.get(4usize.saturating_add(bytes as usize)..).unwrap_or_default();
                    continue;
                }
                (TYPE_TIME_EXTEND, Some(high)) => {
                    time_ns = time_ns.wrapping_add(u64::from(high) << DELTA_BITS | delta);
                    rest = rest.get(8..).unwrap_or_default();
                    continue;
                }
                (TYPE_TIME_STAMP, Some(high)) => {
                    let low_bits = u64::MAX >> (64 - TIME_STAMP_BITS);
                    time_ns = time_ns & !low_bits | (u64::from(high) << DELTA_BITS | delta) & low_bits;
                    rest = rest.get(8..).unwrap_or_default();
                    continue;
                }
                // A large event: its length, with that of the length.
                (0, Some(bytes)) => (8, 4usize.saturating_add(bytes as usize)),
                (1..=28, _) => (4, 4 + 4 * kind as usize),
                _ => break,
            };
            time_ns = time_ns.wrapping_add(delta);
            let (Some(content), Some(after)) = (rest.get(start..end), rest.get(end..)) else {
                break;
            };
            take(time_ns, content);
            rest = after;
        }
        missed
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    None,
    /// Some, and it is not known how many.
    Unknown,
    Events(u64),
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn double(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: PageFormat = PageFormat { data: 16, bytes: 64 };

    fn page(commit: u64, words: &[u32]) -> Vec<u8> {
        let mut page = 1000u64.to_ne_bytes().to_vec();
        page.extend(commit.to_ne_bytes());
        words.iter().for_each(|word| page.extend(word.to_ne_bytes()));
        page
    }

    fn read(page: &[u8]) -> (Missed, Vec<(u64, Vec<u8>)>) {
        let mut events = Vec::new();
        let missed = FORMAT.events(page, |time_ns, content| events.push((time_ns, content.to_vec())));
        (missed, events)
    }

    #[test]
    fn times_add_up() {
        let words = [5 << 5 | 1, 7, 3 << 5 | TYPE_TIME_EXTEND, 1, 2 << 5 | 1, 8, 0, 8, 9, TYPE_PADDING];
        let (missed, events) = read(&page(40, &words));
        assert_eq!(missed, Missed::None);
        let (first, second) = (1005, 1005 + 3 + (1 << 27) + 2);
        let content = |n: u32| n.to_ne_bytes().to_vec();
        assert_eq!(events, [(first, content(7)), (second, content(8)), (second, content(9))]);
    }

    #[test]
    fn what_is_missing_is_told() {
        assert_eq!(read(&page(EVENTS_MISSED, &[])).0, Missed::Unknown);
        let counted = page(EVENTS_MISSED | MISSED_COUNT_FOLLOWS | 8, &[1 << 5 | 1, 7, 42, 0]);
        assert_eq!(read(&counted), (Missed::Events(42), vec![(1001, 7u32.to_ne_bytes().to_vec())]));
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let mut state = 1u64;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..64)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (state >> 56) as u8
                })
                .collect();
            read(&bytes[..(state >> 40) as usize % 65]);
            read(&page(48, &[(state >> 32) as u32, state as u32, 4, 0, u32::MAX]));
        }
    }
}
