//! A capture through both engines that count every packet of a connection: `statistics` (TCP) and `log` (all protocols).
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;

use twinbed_core::capture::{self, Frame, Origin};
use twinbed_core::error::{ReadError, Result};
use twinbed_core::readers::tcptrace::{Engine, Options, Row};
use twinbed_core::readers::zeek::{self, Log, Protocol};
use twinbed_core::{flow, Error};

#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// TCP connections, and all, by their first packets. The log ignores checksums.
    pub flows: Vec<Row>,
    pub log: Vec<zeek::Row>,
    pub summary: flow::Summary,
    pub log_summary: zeek::Summary,
}

struct Engines {
    statistics: Engine,
    flows: Vec<Row>,
    log: Log,
}

impl Engines {
    fn new(tunnels: bool) -> Self {
        let options = zeek::Options { tunnels, ignore_checksums: true, ..zeek::Options::default() };
        let statistics = Engine::new(Options { tunnels, ..Options::default() });
        Engines { statistics, flows: Vec::new(), log: Log::new(options) }
    }

    fn frame(&mut self, frame: &Frame) {
        self.statistics.frame(frame, &mut |row| self.flows.push(row));
        self.log.frame(frame);
    }

    fn finish(mut self, origin: Origin) -> Capture {
        let zeek::Capture { rows: mut log, summary: log_summary } = self.log.finish(origin.clone());
        log.sort_by_key(|row| row.number);
        let summary = self.statistics.finish(origin, &mut |row| self.flows.push(row));
        Capture { flows: self.flows, log, summary, log_summary }
    }
}

/// A direction of all connections between two endpoints: source, destination.
pub type Way = (IpAddr, u16, IpAddr, u16);

impl Capture {
    /// TCP's packets, frame, IP and payload bytes, as the log has them.
    pub fn logged(&self) -> BTreeMap<Way, [u64; 4]> {
        let mut sums = BTreeMap::new();
        for row in self.log.iter().filter(|row| row.protocol == Protocol::Tcp) {
            let (own, peer) =
                ((row.originator_address, row.originator_port), (row.responder_address, row.responder_port));
            for (from, to, counts) in [(own, peer, &row.originator), (peer, own, &row.responder)] {
                let values = [counts.packets, counts.frame_bytes, counts.ip_bytes, counts.payload_bytes];
                add(&mut sums, (from.0, from.1, to.0, to.1), values);
            }
        }
        sums
    }

    /// The same, as the statistics have them.
    pub fn counted(&self) -> BTreeMap<Way, [u64; 4]> {
        let mut sums = BTreeMap::new();
        for (way, [packets, frame_bytes, ip_bytes, payload_bytes, ..]) in self.flows.iter().flat_map(ways) {
            add(&mut sums, way, [packets, frame_bytes, ip_bytes, payload_bytes]);
        }
        sums
    }
}

/// Packets, frame, IP and payload bytes, SYNs, FINs and RSTs of a connection's directions.
pub fn ways(row: &Row) -> [(Way, [u64; 7]); 2] {
    [(&row.a, &row.b), (&row.b, &row.a)].map(|(side, other)| {
        let values = [
            side.total_packets,
            side.frame_bytes,
            side.ip_bytes,
            side.actual_data_bytes,
            side.syn_pkts_sent,
            side.fin_pkts_sent,
            side.rare().resets_sent,
        ];
        ((side.host, side.port, other.host, other.port), values)
    })
}

/// Adds to a direction's sums; one without packets has none.
pub fn add<const N: usize>(sums: &mut BTreeMap<Way, [u64; N]>, way: Way, values: [u64; N]) {
    if values[0] > 0 {
        let sum = sums.entry(way).or_insert([0; N]);
        sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
}

pub fn try_read(bytes: &[u8]) -> Result<Capture> {
    read_within(bytes, false)
}

pub fn read(bytes: &[u8]) -> Capture {
    try_read(bytes).expect("a capture")
}

pub fn read_within(bytes: &[u8], tunnels: bool) -> std::result::Result<Capture, Error> {
    let mut engines = Engines::new(tunnels);
    let origin = capture::read_slice(bytes, |frame| engines.frame(frame))?;
    Ok(engines.finish(origin))
}

pub fn read_stream(reader: impl Read) -> std::result::Result<Capture, ReadError> {
    let mut engines = Engines::new(false);
    let origin = capture::read_stream(reader, |frame| engines.frame(frame))?;
    Ok(engines.finish(origin))
}
