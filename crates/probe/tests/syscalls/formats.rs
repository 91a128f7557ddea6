//! The two files, read as SYSCALLS.md says and with nothing of the probe's own code.

use std::collections::{BTreeMap, HashMap};

/// (thread, group, name)
pub type Stream = (u32, Option<u32>, String);
/// What was before, from three calls back, and the call.
pub type Order3 = [Option<u16>; 4];

/// Per stream and call: calls, returned, errors, bytes.
pub type Sums = BTreeMap<(Stream, u16), (u64, u64, u64, Option<u64>)>;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub calls: u64,
    pub returned: u64,
    pub errors: u64,
    pub bytes: Option<u64>,
    pub timed: u64,
    pub time_ns: Option<u64>,
    pub squares_ns2: Option<u128>,
}

#[derive(Debug, Default)]
pub struct Count {
    pub header: HashMap<String, String>,
    /// (slice, stream, part)
    pub transitions: BTreeMap<(u64, Stream, char, Order3), u64>,
    pub totals: BTreeMap<(u64, Stream, char, u16), Totals>,
    pub ended: Vec<Stream>,
    pub slices: Vec<(u64, u64)>,
    pub lost: u64,
    /// (time, calls, lost)
    pub end: Option<(u64, u64, u64)>,
}

fn optional<T: std::str::FromStr>(text: &str) -> Option<T> {
    (text != "-").then(|| text.parse().ok().expect("a number"))
}

impl Count {
    pub fn parse(bytes: &[u8]) -> Count {
        let text = std::str::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\n\n").unwrap();
        let mut head = head.lines();
        assert_eq!(head.next(), Some("twinbed-syscalls-count 2"));
        let mut count = Count::default();
        for line in head {
            let (name, value) = line.split_once(' ').unwrap();
            count.header.insert(name.to_owned(), value.to_owned());
        }
        let mut streams: HashMap<&str, Stream> = HashMap::new();
        for line in body.lines() {
            assert!(count.end.is_none(), "a line after the end: {line}");
            let (kind, rest) = line.split_once(' ').unwrap();
            let fields: Vec<_> = rest.split(' ').collect();
            let number = |at: usize| fields[at].parse::<u64>().unwrap();
            let slice = count.slices.last().map_or(0, |slice| slice.0);
            match kind {
                "@" => {
                    assert_eq!(number(0), count.slices.len() as u64);
                    count.slices.push((number(0), number(1)));
                }
                "s" => {
                    let name = rest.splitn(4, ' ').nth(3).unwrap().to_owned();
                    let stream = (number(1) as u32, optional(fields[2]), name);
                    assert!(streams.insert(fields[0], stream).is_none());
                }
                "t" => {
                    let history = [2, 3, 4, 5].map(|at| optional(fields[at]));
                    let part = fields[1].parse().unwrap();
                    let key = (slice, streams[fields[0]].clone(), part, history);
                    *count.transitions.entry(key).or_default() += number(6);
                }
                "c" => {
                    let part = fields[1].parse().unwrap();
                    let key = (slice, streams[fields[0]].clone(), part, number(2) as u16);
                    let sum = count.totals.entry(key).or_default();
                    sum.calls += number(3);
                    sum.returned += number(4);
                    sum.errors += number(5);
                    sum.bytes = optional::<u64>(fields[6]).map(|bytes| bytes + sum.bytes.unwrap_or(0));
                    sum.timed += number(7);
                    sum.time_ns = optional::<u64>(fields[8]).map(|time| time + sum.time_ns.unwrap_or(0));
                    sum.squares_ns2 = optional::<u128>(fields[9]).map(|more| more + sum.squares_ns2.unwrap_or(0));
                    assert_eq!(fields.len(), 10, "{line}");
                }
                "x" => count.ended.push(streams[fields[0]].clone()),
                "lost" => count.lost += number(0),
                "end" => count.end = Some((number(0), number(1), number(2))),
                _ => panic!("{line}"),
            }
        }
        let calls: u64 = count.transitions.values().sum();
        assert_eq!(count.totals.values().map(|totals| totals.calls).sum::<u64>(), calls);
        if let Some(end) = count.end {
            assert_eq!((end.1, end.2), (calls, count.lost));
        }
        count
    }

    /// Over all slices and parts.
    pub fn whole(&self) -> BTreeMap<(Stream, Order3), u64> {
        let mut sums = BTreeMap::new();
        for ((_, stream, _, history), calls) in &self.transitions {
            *sums.entry((stream.clone(), *history)).or_default() += calls;
        }
        sums
    }

    pub fn sums(&self) -> Sums {
        let mut sums = Sums::new();
        for ((_, stream, _, number), totals) in &self.totals {
            let sum = sums.entry((stream.clone(), *number)).or_default();
            sum.0 += totals.calls;
            sum.1 += totals.returned;
            sum.2 += totals.errors;
            sum.3 = totals.bytes.map(|bytes| bytes + sum.3.unwrap_or(0));
        }
        sums
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub number: u16,
    pub entry_ns: u64,
    /// Duration and value.
    pub exit: Option<(u64, i64)>,
    /// Something was lost just before it.
    pub after_loss: bool,
}

#[derive(Debug, Default)]
pub struct Trace {
    pub header: HashMap<String, String>,
    pub streams: Vec<(Stream, Vec<Call>)>,
    pub lost_blocks: Vec<u64>,
    /// (time, calls, lost)
    pub end: Option<(u64, u64, u64)>,
    pub bytes: usize,
}

struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.0[0];
            self.0 = &self.0[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn zigzag(&mut self) -> i64 {
        let value = self.varint();
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }
}

impl Trace {
    pub fn parse(bytes: &[u8]) -> Trace {
        let mut rest = bytes.strip_prefix(b"\x89TBSYS\x01\n").expect("the magic");
        let mut trace = Trace { bytes: bytes.len(), ..Trace::default() };
        let mut places: HashMap<u64, usize> = HashMap::new();
        let mut broken: Vec<bool> = Vec::new();
        while let [kind, a, b, c, d, after @ ..] = rest {
            assert!(trace.end.is_none(), "a block after the end");
            let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            let (body, after) = after.split_at(length);
            rest = after;
            let mut body = Body(body);
            match kind {
                b'H' => {
                    for line in std::str::from_utf8(body.0).unwrap().lines() {
                        let (name, value) = line.split_once(' ').unwrap();
                        trace.header.insert(name.to_owned(), value.to_owned());
                    }
                }
                b'S' => {
                    let number = body.varint();
                    let (tid, tgid) = (body.varint() as u32, body.varint() as u32);
                    // As the text file has it.
                    let name = String::from_utf8(body.0.to_vec()).unwrap().replace('\\', "\\x5c");
                    places.insert(number, trace.streams.len());
                    trace.streams.push(((tid, (tgid != 0).then_some(tgid), name), Vec::new()));
                    broken.push(false);
                }
                b'C' => {
                    let place = places[&body.varint()];
                    let lost = body.varint() > 0;
                    let mut end_ns = body.varint();
                    for at in 0..body.varint() {
                        let head = body.varint();
                        let entry_ns = end_ns + body.varint();
                        end_ns = entry_ns;
                        let exit = (head & 1 == 1).then(|| (body.varint(), body.zigzag()));
                        end_ns += exit.map_or(0, |exit| exit.0);
                        let after_loss = at == 0 && (lost || broken[place]);
                        broken[place] &= !after_loss;
                        let number = (head >> 1) as u16;
                        trace.streams[place].1.push(Call { number, entry_ns, exit, after_loss });
                    }
                    assert!(body.0.is_empty());
                }
                b'L' => {
                    body.varint();
                    trace.lost_blocks.push(body.varint());
                    broken.fill(true);
                }
                b'E' => assert!(places.remove(&body.varint()).is_some()),
                b'Z' => trace.end = Some((body.varint(), body.varint(), body.varint())),
                _ => {}
            }
        }
        assert!(rest.is_empty());
        if let Some(end) = trace.end {
            assert_eq!(end.1, trace.streams.iter().map(|(_, calls)| calls.len() as u64).sum::<u64>());
        }
        trace
    }

    pub fn transitions(&self) -> BTreeMap<(Stream, Order3), u64> {
        let mut sums = BTreeMap::new();
        for (stream, calls) in &self.streams {
            let mut history = [None; 4];
            for call in calls {
                if call.after_loss {
                    history = [None; 4];
                }
                history = [history[1], history[2], history[3], Some(call.number)];
                *sums.entry((stream.clone(), history)).or_default() += 1;
            }
        }
        sums
    }

    pub fn sums(&self, moves_bytes: impl Fn(u16) -> bool) -> Sums {
        let mut sums = Sums::new();
        for (stream, calls) in &self.streams {
            for call in calls {
                let sum = sums.entry((stream.clone(), call.number)).or_default();
                sum.0 += 1;
                if moves_bytes(call.number) {
                    sum.3 = Some(sum.3.unwrap_or(0));
                }
                if let Some((_, value)) = call.exit {
                    sum.1 += 1;
                    sum.2 += u64::from((-4095..0).contains(&value));
                    sum.3 = sum.3.map(|bytes| bytes + value.max(0) as u64);
                }
            }
        }
        sums
    }
}
