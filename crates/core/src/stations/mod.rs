//! The file of `twinbed-probe stations` (docs/probe/STATIONS.md): when packets passed the stations of a host's kernel, and
//! when its programs read and wrote them.
//!
//! Times become those of the host's real-time clock, to which captures belong too: between two readings of both clocks along
//! the straight line between them.  A file that ends before its end block gives the rows that there are, and says so.

mod probe_files;

use std::net::{IpAddr, Ipv6Addr};

use crate::error::{Error, Result};
use probe_files::{
    block, station, BLOCK_HEADER_BYTES, CLOCKS_BYTES, CONNECTION_BYTES, END_BYTES, MAGIC, NO_CONNECTION, RECORD_BYTES,
};

const LAYER: &str = "stations";
const VERSION_AT: usize = MAGIC.len() - 2;

/// Names of stations, by their numbers in the file.
const NAMES: [(u8, &str); 9] = [
    (station::QDISC, "qdisc"),
    (station::DRIVER, "driver"),
    (station::SOFTIRQ, "softirq"),
    (station::SOCKET, "socket"),
    (station::READ, "read"),
    (station::WRITE, "write"),
    (station::CONNECT, "connect"),
    (station::CLOSE, "close"),
    (station::WAIT, "wait"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    pub own: (IpAddr, u16),
    pub other: (IpAddr, u16),
}

/// A packet at a station, or a call of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub station: &'static str,
    /// Place in [`Stations::connections`]; none of a call that waits.
    pub connection: Option<u32>,
    /// Of a packet, or of a call's entry.
    pub time_ns: i64,
    /// When a call returned; none of a packet and of a close.
    pub end_ns: Option<i64>,
    /// A packet's first, or where the socket's stream stands after the call: what was read, or written, so far.
    pub sequence: u32,
    /// Payload, or what the call returned.
    pub bytes: i32,
    /// TCP's.
    pub flags: u8,
    /// That ran when the record was made.
    pub thread: u32,
    pub process: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stations {
    pub header: Vec<(String, String)>,
    pub connections: Vec<Connection>,
    /// By time.
    pub rows: Vec<Row>,
    /// Records for which the kernel's ring had no room.
    pub lost: u64,
    /// Packets or calls for which a program was not run.
    pub missed: u64,
    /// Records beyond the file's limit.
    pub beyond: u64,
    /// Records of a station, or a connection, that is not known.
    pub unknown: u64,
    /// Real and monotonic clock were read within so many nanoseconds.
    pub clocks_within_ns: i64,
    pub cut_off: Option<Error>,
}

impl Stations {
    /// Refuses what is no such file.
    pub fn parse(bytes: &[u8]) -> Result<Stations> {
        magic(bytes)?;
        let mut reading = Reading::default();
        let mut at = MAGIC.len();
        loop {
            match block_at(bytes, at) {
                Ok((kind, body)) => {
                    if let Err(error) = reading.take(kind, body, at) {
                        reading.stations.cut_off = Some(error);
                        break;
                    }
                    if kind == block::END {
                        break;
                    }
                    at += BLOCK_HEADER_BYTES + body.len();
                }
                Err(error) => {
                    reading.stations.cut_off = Some(error);
                    break;
                }
            }
        }
        Ok(reading.finish())
    }
}

fn magic(bytes: &[u8]) -> Result<()> {
    let needed = MAGIC.len() as u64;
    if !bytes.starts_with(&MAGIC[..VERSION_AT.min(bytes.len())]) {
        let found = String::from_utf8_lossy(&bytes[..bytes.len().min(MAGIC.len())]).into_owned();
        return Err(Error::Missing { layer: LAYER, expected: "a file of twinbed-probe stations".to_owned(), found });
    }
    match bytes.get(VERSION_AT) {
        Some(version) if *version != MAGIC[VERSION_AT] => Err(Error::Value {
            layer: LAYER,
            offset: VERSION_AT as u64,
            field: "version",
            found: version.to_string(),
            expected: MAGIC[VERSION_AT].to_string(),
        }),
        _ if bytes.len() < MAGIC.len() => {
            let available = bytes.len() as u64;
            Err(Error::Length { layer: LAYER, offset: 0, needed, available, claimed_by: "the format" })
        }
        _ => Ok(()),
    }
}

fn block_at(bytes: &[u8], at: usize) -> Result<(u8, &[u8])> {
    let rest = bytes.get(at..).unwrap_or_default();
    let cut = |needed: usize, claimed_by| {
        let (offset, available) = (at as u64, rest.len() as u64);
        Error::Length { layer: LAYER, offset, needed: needed as u64, available, claimed_by }
    };
    let Some((head, body)) = rest.split_at_checked(BLOCK_HEADER_BYTES) else {
        return Err(cut(BLOCK_HEADER_BYTES, "the missing end block"));
    };
    let length = word(head, 1) as usize;
    let body =
        body.get(..length).ok_or_else(|| cut(BLOCK_HEADER_BYTES.saturating_add(length), "the block's header"))?;
    Ok((head[0], body))
}

#[derive(Default)]
struct Reading {
    stations: Stations,
    /// (monotonic, real), in the order of the first.
    clocks: Vec<(i64, i64)>,
}

impl Reading {
    fn take(&mut self, kind: u8, body: &[u8], at: usize) -> Result<()> {
        let wants = |multiple: usize, exact: bool| match body.len() {
            length if length == multiple || (!exact && length % multiple == 0) => Ok(()),
            length => Err(Error::Value {
                layer: LAYER,
                offset: at as u64,
                field: "the block's length",
                found: length.to_string(),
                expected: format!("{}{multiple}", if exact { "" } else { "a multiple of " }),
            }),
        };
        let into = &mut self.stations;
        match kind {
            block::HEADER => {
                let text = String::from_utf8_lossy(body);
                let pairs = text.lines().filter_map(|line| line.split_once(' '));
                into.header.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            block::CLOCKS => {
                wants(CLOCKS_BYTES, true)?;
                let [monotonic, real, within] = [0, 8, 16].map(|at| double(body, at) as i64);
                let is_later = self.clocks.last().is_none_or(|(last, _)| *last < monotonic);
                if is_later {
                    self.clocks.push((monotonic, real));
                }
                into.clocks_within_ns = into.clocks_within_ns.max(within);
            }
            block::CONNECTION => {
                wants(CONNECTION_BYTES, true)?;
                let end = |at: usize| (address(body, 16 * at), half(body, 32 + 2 * at));
                into.connections.push(Connection { own: end(0), other: end(1) });
            }
            block::RECORDS => {
                wants(RECORD_BYTES, false)?;
                for record in body.chunks_exact(RECORD_BYTES) {
                    match row(record, into.connections.len()) {
                        Some(row) => into.rows.push(row),
                        None => into.unknown += 1,
                    }
                }
            }
            block::END => {
                wants(END_BYTES, true)?;
                [into.lost, into.missed, into.beyond] = [0, 8, 16].map(|at| double(body, at));
            }
            _ => {
                return Err(Error::Value {
                    layer: LAYER,
                    offset: at as u64,
                    field: "the block's kind",
                    found: kind.to_string(),
                    expected: "one of H, T, C, R and Z".to_owned(),
                })
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Stations {
        let clocks = self.clocks;
        for row in &mut self.stations.rows {
            row.time_ns = real(&clocks, row.time_ns);
            row.end_ns = row.end_ns.map(|end| real(&clocks, end));
        }
        self.stations.rows.sort_by_key(|row| row.time_ns);
        self.stations
    }
}

/// The real time at a monotonic one. Before the first reading and after the last the rates are taken to be equal.
fn real(clocks: &[(i64, i64)], monotonic: i64) -> i64 {
    let after = clocks.partition_point(|(at, _)| *at <= monotonic);
    let next = clocks.get(after);
    let Some(&(from, real)) = clocks.get(after.saturating_sub(1)) else { return monotonic };
    let past = i128::from(monotonic) - i128::from(from);
    let gained = match next {
        Some(&(to, real_to)) if after > 0 => {
            let (span, of_real) = (i128::from(to) - i128::from(from), i128::from(real_to) - i128::from(real));
            // Positions are distinct and in order: the span is above 0.
            past.saturating_mul(of_real) / span.max(1)
        }
        _ => past,
    };
    i128::from(real).saturating_add(gained).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn row(record: &[u8], connections: usize) -> Option<Row> {
    let number = word(record, 24);
    let connection = match number {
        NO_CONNECTION => None,
        number if (number as usize) < connections => Some(number),
        _ => return None,
    };
    let kind = *record.get(36)?;
    let (_, station) = NAMES.iter().find(|(known, _)| *known == kind)?;
    if connection.is_none() != (kind == station::WAIT) {
        return None;
    }
    let end_ns = double(record, 8);
    Some(Row {
        station,
        connection,
        time_ns: double(record, 0) as i64,
        end_ns: (end_ns != 0).then_some(end_ns as i64),
        sequence: word(record, 16),
        bytes: word(record, 20) as i32,
        flags: *record.get(37)?,
        thread: word(record, 28),
        process: word(record, 32),
    })
}

fn address(bytes: &[u8], at: usize) -> IpAddr {
    let sixteen: [u8; 16] = bytes.get(at..at + 16).and_then(|b| b.try_into().ok()).unwrap_or_default();
    Ipv6Addr::from(sixteen).to_canonical()
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_le_bytes)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn double(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32).to_le_bytes(), body].concat()
    }

    fn doubles(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn record(time_ns: u64, end_ns: u64, words: [u32; 5], station: u8) -> Vec<u8> {
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        [doubles(&[time_ns, end_ns]), words, vec![station, 0x18, 0, 0]].concat()
    }

    /// By the tables of STATIONS.md.
    fn small() -> Vec<u8> {
        let mut ends = "10.0.0.1".parse::<std::net::Ipv4Addr>().unwrap().to_ipv6_mapped().octets().to_vec();
        ends.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        ends.extend([80, 0, 0x40, 0x9c]);
        let records = [
            record(200, 0, [7, 100, 0, 5, 4], station::SOFTIRQ),
            record(150, 400, [0, 1, NO_CONNECTION, 5, 4], station::WAIT),
            record(160, 0, [7, 100, 9, 5, 4], station::QDISC),
        ];
        [
            MAGIC.to_vec(),
            block(block::HEADER, b"kernel 6.1.0\nclock own\n"),
            block(block::CLOCKS, &doubles(&[100, 1_000_000, 31])),
            block(block::CONNECTION, &ends),
            block(block::RECORDS, &records.concat()),
            block(block::CLOCKS, &doubles(&[300, 1_000_400, 40])),
            block(block::END, &doubles(&[3, 2, 1])),
        ]
        .concat()
    }

    #[test]
    fn rows_are_by_real_time() {
        let stations = Stations::parse(&small()).unwrap();
        assert_eq!((stations.lost, stations.missed, stations.beyond, stations.unknown), (3, 2, 1, 1));
        assert_eq!(stations.header[1], ("clock".to_owned(), "own".to_owned()));
        let connection = stations.connections[0];
        assert_eq!((connection.own.0.to_string(), connection.own.1), ("10.0.0.1".to_owned(), 80));
        assert_eq!((connection.other.0.to_string(), connection.other.1), ("fd00::2".to_owned(), 40000));
        // The real clock runs twice as fast between its readings, and as fast after the last.
        let rows: Vec<_> = stations.rows.iter().map(|row| (row.station, row.time_ns, row.end_ns)).collect();
        assert_eq!(rows, [("wait", 1_000_100, Some(1_000_500)), ("softirq", 1_000_200, None)]);
        assert_eq!((stations.rows[1].sequence, stations.rows[1].bytes, stations.rows[1].thread), (7, 100, 5));
        assert_eq!((stations.clocks_within_ns, stations.cut_off), (40, None));
    }

    #[test]
    fn what_is_cut_or_something_else_is_said() {
        let whole = small();
        for bytes in 0..whole.len() {
            match Stations::parse(&whole[..bytes]) {
                Ok(stations) => assert!(stations.cut_off.is_some(), "{bytes}"),
                Err(error) => assert!(bytes < MAGIC.len(), "{error}"),
            }
        }
        let mut other = whole.clone();
        other[VERSION_AT] = 9;
        assert_eq!(Stations::parse(&other).unwrap_err().to_string(), "stations at byte 6: version is 9, expected 1");
        assert!(Stations::parse(b"twinbed-events 1\n").unwrap_err().to_string().contains("twinbed-probe stations"));
    }
}
