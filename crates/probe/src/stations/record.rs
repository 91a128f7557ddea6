//! What the programs put into the ring, and what it says: whose connection, which bytes of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::probe_files::{station, CONNECTION_BYTES};
use crate::bpf::types::Types;
use crate::failure::{Failure, Outcome};

/// TCP's flags (RFC 9293, 3.1).
const SYN_ACK: u8 = 0x12;
/// Places on the programs' stack.
pub const POINTER: i16 = -8;
pub const SOCKET: i16 = -176;
pub const PACKET: i16 = SOCKET;

/// Of every record.
pub const TIME_NS: i16 = 0;
/// The thread's id, and its process's in the upper half.
pub const IDS: i16 = 8;
pub const STATION: i16 = 16;

/// A record of a packet goes on with headers as they lie in memory.
pub mod packet {
    pub const HEADERS: i16 = 24;
    /// IPv6's and TCP's. IPv4's is shorter, and some payload follows.
    pub const HEADER_BYTES: i32 = 60;
    pub const BYTES: i32 = HEADERS as i32 + HEADER_BYTES;
}

/// A record of a call goes on with what it did, and, but for one that waits, its socket.
pub mod socket {
    pub const END_NS: i16 = 24;
    pub const VALUE: i16 = 32;
    pub const SEQUENCE: i16 = 40;
    /// The beginning of `struct sock_common`.
    pub const COMMON: i16 = 48;
    pub const COMMON_BYTES: i32 = 88;
    pub const BYTES: i32 = COMMON as i32 + COMMON_BYTES;
}

/// Places of the members of `struct sock_common`.
pub struct Offsets {
    family: usize,
    own_port: usize,
    other_port: usize,
    own_four: usize,
    other_four: usize,
    own_six: usize,
    other_six: usize,
}

impl Offsets {
    pub fn of(types: &Types) -> Outcome<Offsets> {
        let of = |member: &str, bytes: usize| {
            let offset = types.offset("sock_common", member)? as usize;
            match offset + bytes <= socket::COMMON_BYTES as usize {
                true => Ok(offset),
                false => {
                    Err(Failure::new(format!("this kernel's sock_common has {member} at {offset}, too far behind")))
                }
            }
        };
        Ok(Offsets {
            family: of("skc_family", 2)?,
            own_port: of("skc_num", 2)?,
            other_port: of("skc_dport", 2)?,
            own_four: of("skc_rcv_saddr", 4)?,
            other_four: of("skc_daddr", 4)?,
            own_six: of("skc_v6_rcv_saddr", 16)?,
            other_six: of("skc_v6_daddr", 16)?,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    pub own: (IpAddr, u16),
    pub other: (IpAddr, u16),
}

impl Connection {
    pub fn to_bytes(self) -> [u8; CONNECTION_BYTES] {
        let mut bytes = [0; CONNECTION_BYTES];
        for (at, (address, port)) in [self.own, self.other].into_iter().enumerate() {
            let six = match address {
                IpAddr::V4(four) => four.to_ipv6_mapped(),
                IpAddr::V6(six) => six,
            };
            bytes[16 * at..16 * at + 16].copy_from_slice(&six.octets());
            bytes[32 + 2 * at..34 + 2 * at].copy_from_slice(&port.to_le_bytes());
        }
        bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub station: u8,
    pub time_ns: u64,
    pub end_ns: u64,
    pub thread: u32,
    pub process: u32,
    pub sequence: u32,
    /// Of payload, or what the call returned.
    pub bytes: i32,
    pub flags: u8,
    pub connection: Option<Connection>,
}

impl Record {
    /// None where it is no packet or call that is known.
    pub fn parse(bytes: &[u8], offsets: &Offsets) -> Option<Record> {
        let ids = double(bytes, IDS)?;
        let mut record = Record {
            station: double(bytes, STATION)? as u8,
            time_ns: double(bytes, TIME_NS)?,
            end_ns: 0,
            thread: ids as u32,
            process: (ids >> 32) as u32,
            sequence: 0,
            bytes: 0,
            flags: 0,
            connection: None,
        };
        if bytes.len() == packet::BYTES as usize {
            return record.packet(&bytes[packet::HEADERS as usize..]);
        }
        record.end_ns = double(bytes, socket::END_NS)?;
        let value = double(bytes, socket::VALUE)? as i64;
        record.bytes = value.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        record.sequence = double(bytes, socket::SEQUENCE)? as u32;
        let common = &bytes[socket::COMMON as usize..];
        if record.station != station::WAIT {
            record.connection = Some(of_socket(common, offsets)?);
        }
        if record.station == station::SOCKET {
            // The SYN-ACK: the byte before what comes next.
            record.sequence = record.sequence.wrapping_sub(1);
            record.flags = SYN_ACK;
        }
        Some(record)
    }

    /// `ip` holds both headers.
    fn packet(mut self, ip: &[u8]) -> Option<Record> {
        let half = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (source, destination, length, tcp) = match ip[0] {
            0x45 => (address_of_four(&ip[12..])?, address_of_four(&ip[16..])?, i32::from(half(ip, 2)) - 20, &ip[20..]),
            0x60..=0x6f => (address_of_six(&ip[8..])?, address_of_six(&ip[24..])?, i32::from(half(ip, 4)), &ip[40..]),
            _ => return None,
        };
        self.bytes = (length - i32::from(tcp[12] >> 4) * 4).max(0);
        self.sequence = u32::from_be_bytes(tcp[4..8].try_into().ok()?);
        self.flags = tcp[13];
        let (from, to) = ((source, half(tcp, 0)), (destination, half(tcp, 2)));
        self.connection = Some(match self.station {
            station::QDISC | station::DRIVER => Connection { own: from, other: to },
            _ => Connection { own: to, other: from },
        });
        Some(self)
    }
}

fn of_socket(common: &[u8], at: &Offsets) -> Option<Connection> {
    let half = |from: usize| common.get(from..from + 2)?.try_into().ok();
    let (own, other) = match i32::from(u16::from_ne_bytes(half(at.family)?)) {
        libc::AF_INET => (address_of_four(common.get(at.own_four..)?)?, address_of_four(common.get(at.other_four..)?)?),
        libc::AF_INET6 => (address_of_six(common.get(at.own_six..)?)?, address_of_six(common.get(at.other_six..)?)?),
        _ => return None,
    };
    let (own_port, other_port) = (u16::from_ne_bytes(half(at.own_port)?), u16::from_be_bytes(half(at.other_port)?));
    Some(Connection { own: (own, own_port), other: (other, other_port) })
}

fn address_of_four(bytes: &[u8]) -> Option<IpAddr> {
    let four: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    Some(Ipv4Addr::from(four).into())
}

/// An IPv4 address that a socket of IPv6 carries is the IPv4 address.
fn address_of_six(bytes: &[u8]) -> Option<IpAddr> {
    let sixteen: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
    Some(Ipv6Addr::from(sixteen).to_canonical())
}

fn double(bytes: &[u8], at: i16) -> Option<u64> {
    bytes.get(at as usize..at as usize + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFSETS: Offsets =
        Offsets { family: 16, own_port: 14, other_port: 12, own_four: 4, other_four: 0, own_six: 72, other_six: 56 };

    fn head(station: u8) -> Vec<u8> {
        let ids = 7u64 << 32 | 9;
        [1000u64, ids, station.into()].iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// A header of RFC 791 from 10.0.0.1 to 10.0.0.2, of a packet of 92 bytes.
    fn ipv4() -> Vec<u8> {
        vec![0x45, 0, 0, 92, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
    }

    fn tcp(data_offset: u8) -> Vec<u8> {
        let mut tcp = vec![0, 80, 0x9c, 0x40, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 1, data_offset << 4, 0x18];
        tcp.resize(20, 0);
        tcp
    }

    #[test]
    fn a_packet_s_headers_are_read() {
        for (station, is_own) in [(station::QDISC, true), (station::SOFTIRQ, false)] {
            let bytes = [head(station), ipv4(), tcp(8), vec![9; 20]].concat();
            let record = Record::parse(&bytes, &OFFSETS).unwrap();
            let ends = [("10.0.0.1".parse().unwrap(), 80), ("10.0.0.2".parse().unwrap(), 40000)];
            let (own, other) = if is_own { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
            assert_eq!(record.connection.unwrap(), Connection { own, other });
            assert_eq!((record.sequence, record.bytes, record.flags), (0xffff_fffe, 40, 0x18));
            assert_eq!((record.thread, record.process, record.time_ns), (9, 7, 1000));
        }
        let mut six = vec![0x60, 0, 0, 0, 0, 42, 6, 64];
        six.extend(Ipv6Addr::LOCALHOST.octets());
        six.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        let record = Record::parse(&[head(station::QDISC), six, tcp(5)].concat(), &OFFSETS).unwrap();
        assert_eq!(record.bytes, 22);
        assert_eq!(record.connection.unwrap().other.0.to_string(), "fd00::2");
    }

    #[test]
    fn a_call_s_socket_is_read() {
        let mut common = vec![0u8; 88];
        common[0..4].copy_from_slice(&[10, 0, 0, 2]);
        common[4..8].copy_from_slice(&[10, 0, 0, 1]);
        common[12..14].copy_from_slice(&40000u16.to_be_bytes());
        common[14..16].copy_from_slice(&80u16.to_ne_bytes());
        common[16..18].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        let rest: Vec<u8> = [2000u64, 84, 0xffff_ffff].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let bytes = [head(station::READ), rest.clone(), common.clone()].concat();
        let record = Record::parse(&bytes, &OFFSETS).unwrap();
        assert_eq!((record.end_ns, record.bytes, record.sequence), (2000, 84, u32::MAX));
        let own = ("10.0.0.1".parse().unwrap(), 80);
        assert_eq!(record.connection.unwrap(), Connection { own, other: ("10.0.0.2".parse().unwrap(), 40000) });
        let waits = [head(station::WAIT), rest].concat();
        assert_eq!(Record::parse(&waits, &OFFSETS).unwrap().connection, None);
        for bytes in 0..bytes.len() {
            let _ = Record::parse(&[head(station::READ), vec![9; bytes]].concat(), &OFFSETS);
        }
    }
}
