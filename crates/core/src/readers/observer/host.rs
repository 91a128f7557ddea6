//! One end of connections, over all that it opened or answered: what is said of it, feature by feature.

use std::net::IpAddr;

use super::moments::Moments;
use super::signature::{Read, Signature};
use super::slope::Slope;
use super::tls::{hello, Ended, CLIENT_HELLO};

/// Different signatures that are kept of a host, and fingerprints of each kind. Further ones count among all only.
const SIGNATURES: usize = 32;
/// SYNs whose timestamps are held against each other.
const STARTS: usize = 64;
/// Frequencies that systems count timestamps at (RFC 7323 asks for 1 to 1000 a second).
const FREQUENCIES_HZ: [f64; 8] = [1.0, 2.0, 10.0, 100.0, 250.0, 500.0, 512.0, 1000.0];
/// A clock's rate is told from its frequency where rounding leaves less than this.
const SKEW_EXACTNESS_PPM: f64 = 10.0;
/// IP identifications count up where the next is ahead by no more: other packets of the host have numbers too.
const LARGEST_STEP: u16 = 1024;

/// Whether a host opened connections or answered them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Originator,
    Responder,
}

/// What is known of a host: a word or a number, and how many packets said it.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    pub name: &'static str,
    pub text: Option<String>,
    pub value: Option<f64>,
    pub seen: u64,
}

/// One host in one role.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    pub role: Role,
    pub address: IpAddr,
    pub syns: u64,
    pub features: Vec<Feature>,
}

#[derive(Debug, Default)]
pub(super) struct Identifications {
    packets: u64,
    zero: u64,
    same: u64,
    increasing: u64,
    other: u64,
}

impl Identifications {
    /// `last` is that of the packet before in the same connection.
    pub fn add(&mut self, last: Option<u16>, id: u16) {
        self.packets += 1;
        self.zero += u64::from(id == 0);
        let Some(last) = last else { return };
        match id.wrapping_sub(last) {
            0 => self.same += 1,
            1..=LARGEST_STEP => self.increasing += 1,
            _ => self.other += 1,
        }
    }

    /// What nine of ten do.
    fn kind(&self) -> Option<&'static str> {
        let steps = self.same + self.increasing + self.other;
        let most = |part: u64, of: u64| of > 0 && part as f64 >= 0.9 * of as f64;
        match () {
            () if self.packets == 0 => None,
            () if most(self.zero, self.packets) => Some("zero"),
            () if steps == 0 => None,
            () if most(self.increasing, steps) => Some("increasing"),
            () if most(self.same, steps) => Some("same"),
            () if most(self.other, steps) => Some("random"),
            () => Some("mixed"),
        }
    }
}

/// How often each text was said.
#[derive(Debug, Default)]
struct Tally {
    texts: Vec<(String, u64)>,
    all: u64,
}

impl Tally {
    fn add(&mut self, text: String) {
        self.all += 1;
        if let Some((_, count)) = self.texts.iter_mut().find(|(one, _)| *one == text) {
            *count += 1;
        } else if self.texts.len() < SIGNATURES {
            self.texts.push((text, 1));
        }
    }

    /// The first of those that are equally frequent.
    fn most(&self) -> Option<String> {
        self.texts.iter().rev().max_by_key(|(_, count)| *count).map(|(text, _)| text.clone())
    }
}

/// The hellos of TLS that a host began its side of connections with.
#[derive(Debug, Default)]
struct Hellos {
    begun: u64,
    ja3: Tally,
    ja4: Tally,
    ja3s: Tally,
}

#[derive(Debug, Default)]
pub(super) struct Profile {
    syns: u64,
    /// Signature, the MSS that it answers, SYNs.
    signatures: Vec<(Signature, Option<u16>, u64)>,
    starts: Vec<(i64, u32)>,
    pub identifications: Identifications,
    slope: Slope,
    timestamps: u64,
    mac: Option<[u8; 6]>,
    /// From a SYN to its answer.
    pub answer_s: Moments,
    hellos: Hellos,
}

impl Profile {
    pub fn syn(&mut self, read: &Read, asked: Option<u16>, time_ns: Option<i64>, mac: Option<[u8; 6]>) {
        self.syns += 1;
        self.mac = self.mac.or(mac);
        if let (Some(time), Some(ticks), true) = (time_ns, read.timestamp, self.starts.len() < STARTS) {
            self.starts.push((time, ticks));
        }
        let known = self.signatures.iter_mut().find(|(one, of, _)| *one == read.signature && *of == asked);
        if let Some((_, _, count)) = known {
            *count += 1;
        } else if self.signatures.len() < SIGNATURES {
            self.signatures.push((read.signature, asked, 1));
        }
    }

    pub fn timestamps(&mut self, slope: Slope, count: u64) {
        self.slope.join(slope);
        self.timestamps += count;
    }

    /// `kind` is the message's type.
    pub fn hello(&mut self, kind: u8, ended: &Ended) {
        self.hellos.begun += 1;
        let Ended::Whole(message) = ended else { return };
        if kind == CLIENT_HELLO {
            if let Some(hello::Client { ja3, ja4 }) = hello::client(message) {
                self.hellos.ja3.add(ja3);
                self.hellos.ja4.add(ja4);
            }
        } else if let Some(ja3s) = hello::server(message) {
            self.hellos.ja3s.add(ja3s);
        }
    }

    /// `None` of a host without a SYN.
    pub fn finish(&self, role: Role, address: IpAddr) -> Option<Host> {
        // The first of those that are equally frequent.
        let (syn, asked, _) = self.signatures.iter().rev().max_by_key(|(_, _, count)| *count)?;
        let mut features = Features { rows: Vec::new(), seen: self.syns };
        features.text("tcp_signature", Some(syn.text(*asked)));
        features.number("tcp_signatures", Some(self.signatures.len() as f64));
        features.text("tcp_options", Some(syn.options()));
        features.text("tcp_quirks", Some(syn.quirks()));
        features.number("syn_window", Some(f64::from(syn.window)));
        features.number("window_scale", syn.window_scale.map(f64::from));
        features.number("mss", syn.max_segment_bytes.map(f64::from));
        features.number("ttl", Some(f64::from(syn.ttl)));
        features.number("df", syn.dont_fragment.map(|set| f64::from(u8::from(set))));
        features.text("ecn", Some(syn.ecn().to_owned()));
        features.number("ip_ecn", Some(f64::from(syn.ip_ecn)));
        features.text("timestamp_start", self.start().map(str::to_owned));
        let mac = self.mac.map(|mac| format!("{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2]));
        features.text("mac_vendor", mac);
        features.number("mac_local", self.mac.map(|mac| f64::from(mac[0] >> 1 & 1)));
        features.seen = self.identifications.packets;
        features.text("ip_id", self.identifications.kind().map(str::to_owned));
        features.seen = self.timestamps;
        let rate = self.slope.rate_hz();
        let nominal = rate.and_then(|(rate, _)| FREQUENCIES_HZ.into_iter().find(|hz| (rate / hz - 1.0).abs() < 0.1));
        features.rows.push(Feature {
            name: "timestamp_hz",
            text: nominal.map(|hz| hz.to_string()),
            value: rate.map(|(rate, _)| rate),
            seen: self.timestamps,
        });
        let exact = rate.zip(nominal).filter(|((_, error), hz)| error / hz * 1e6 <= SKEW_EXACTNESS_PPM);
        features.number("clock_skew_ppm", exact.map(|((rate, _), hz)| (rate / hz - 1.0) * 1e6));
        if role == Role::Responder {
            features.seen = self.answer_s.count();
            features.number("syn_ack_delay_mean_s", self.answer_s.mean());
            features.number("syn_ack_delay_sd_s", self.answer_s.deviation());
            features.number("syn_ack_delay_skewness", self.answer_s.skewness());
            features.number("syn_ack_delay_kurtosis", self.answer_s.kurtosis());
        }
        let Hellos { begun, ja3, ja4, ja3s } = &self.hellos;
        let of_role =
            if role == Role::Originator { [("ja3", ja3), ("ja4", ja4)].to_vec() } else { vec![("ja3s", ja3s)] };
        // A host without TLS has no such rows; where no hello is whole, they are there and say nothing.
        for (name, tally) in of_role.into_iter().filter(|_| *begun > 0) {
            features.seen = tally.all;
            features.text(name, tally.most());
        }
        Some(Host { role, address, syns: self.syns, features: features.rows })
    }

    /// Whether the timestamps of its SYNs are those of one clock.
    fn start(&self) -> Option<&'static str> {
        let (&(first_ns, first), rest) = self.starts.split_first()?;
        if rest.is_empty() {
            return None;
        }
        let is_of_one_clock = |&(time_ns, ticks): &(i64, u32)| {
            let seconds = time_ns.saturating_sub(first_ns) as f64 / 1e9;
            // A second for SYNs that wait, and a tenth for clocks.
            (-1000.0..=1100.0 * seconds.max(0.0) + 1000.0).contains(&f64::from(ticks.wrapping_sub(first) as i32))
        };
        Some(if rest.iter().all(is_of_one_clock) { "one clock" } else { "own start per connection" })
    }
}

struct Features {
    rows: Vec<Feature>,
    seen: u64,
}

impl Features {
    fn text(&mut self, name: &'static str, text: Option<String>) {
        self.rows.push(Feature { name, text, value: None, seen: self.seen });
    }

    fn number(&mut self, name: &'static str, value: Option<f64>) {
        self.rows.push(Feature { name, text: value.map(|value| value.to_string()), value, seen: self.seen });
    }
}
