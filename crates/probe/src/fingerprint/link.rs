//! ICMP's and ARP's answers of a neighbour: echo (RFC 792) with an odd type of service and code, a timestamp request, ARP (RFC 826).

use std::io;
use std::mem::{size_of, zeroed};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libc::c_int;
use serde::Serialize;

use crate::sys::{self, check};

const LIMIT: Duration = Duration::from_secs(1);
const ECHOES: u16 = 20;
const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;
const TIMESTAMP: u8 = 13;
const TIMESTAMP_REPLY: u8 = 14;
const CODE: u8 = 9;
const IDENTIFIER: u16 = 0x7462;
const ARP_REQUESTS: usize = 5;
const ETHERNET_ARP: usize = 42;

#[derive(Serialize, Default)]
pub struct Asked {
    /// `None` where raw sockets are refused.
    echoes: Option<Vec<Reply>>,
    timestamp_answered: Option<bool>,
    arp: Option<Vec<ArpReply>>,
    /// Why something is missing.
    refused: Vec<String>,
}

#[derive(Serialize)]
struct Reply {
    delay_s: f64,
    ttl: u8,
    ip_id: u16,
    dont_fragment: bool,
    type_of_service: u8,
    code: u8,
}

#[derive(Serialize)]
struct ArpReply {
    delay_s: f64,
    /// Of the frame, as it arrived: those of a wire are padded to 60.
    bytes: usize,
}

pub fn ask(address: Ipv4Addr) -> Asked {
    let mut asked = Asked::default();
    match icmp(address) {
        Ok((echoes, answered)) => (asked.echoes, asked.timestamp_answered) = (Some(echoes), Some(answered)),
        Err(error) => asked.refused.push(format!("ICMP: {error}")),
    }
    match arp(address) {
        Ok(replies) => asked.arp = Some(replies),
        Err(error) => asked.refused.push(format!("ARP: {error}")),
    }
    asked
}

fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the new descriptor is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol))?)) }
}

/// What arrives next until `end`; `None` if nothing does.
fn receive(socket: &OwnedFd, buffer: &mut [u8], end: Instant) -> io::Result<Option<usize>> {
    let left_ms = end.saturating_duration_since(Instant::now()).as_millis() as c_int;
    let mut entry = [sys::poll_entry(socket.as_raw_fd(), libc::POLLIN)];
    if sys::poll(&mut entry, Some(left_ms))? == 0 {
        return Ok(None);
    }
    // SAFETY: pointer and length are of one slice.
    let count = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    usize::try_from(count).map(Some).map_err(|_| io::Error::last_os_error())
}

/// The echoes that were answered, and whether a timestamp request was.
fn icmp(address: Ipv4Addr) -> io::Result<(Vec<Reply>, bool)> {
    let socket = socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)?;
    let service: c_int = 4;
    // SAFETY: the option's value is an int, and its size is given.
    check(unsafe {
        let value = (&raw const service).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_TOS, value, size_of::<c_int>() as u32)
    })?;
    let mut echoes = Vec::new();
    for sequence in 0..ECHOES {
        if let Some(reply) = asked(&socket, address, &message(ECHO, CODE, sequence, 56), ECHO_REPLY, sequence)? {
            echoes.push(reply);
        } else if echoes.is_empty() {
            break;
        }
    }
    let answer = asked(&socket, address, &message(TIMESTAMP, 0, ECHOES, 12), TIMESTAMP_REPLY, ECHOES)?;
    Ok((echoes, answer.is_some()))
}

fn message(kind: u8, code: u8, sequence: u16, data_bytes: usize) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(IDENTIFIER.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.resize(8 + data_bytes, 0);
    let sum = checksum(&message).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    message
}

/// RFC 1071, of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn asked(socket: &OwnedFd, to: Ipv4Addr, message: &[u8], kind: u8, sequence: u16) -> io::Result<Option<Reply>> {
    let began = Instant::now();
    // SAFETY: sockaddr_in is plain numbers; pointers and lengths are of the same things.
    let sent = unsafe {
        let mut name: libc::sockaddr_in = zeroed();
        name.sin_family = libc::AF_INET as u16;
        name.sin_addr.s_addr = u32::from(to).to_be();
        libc::sendto(
            socket.as_raw_fd(),
            message.as_ptr().cast(),
            message.len(),
            0,
            (&raw const name).cast(),
            size_of::<libc::sockaddr_in>() as u32,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut buffer = [0; 512];
    while let Some(count) = receive(socket, &mut buffer, began + LIMIT)? {
        let delay_s = began.elapsed().as_secs_f64();
        if let Some(reply) = reply(&buffer[..count], kind, sequence, delay_s) {
            return Ok(Some(reply));
        }
    }
    Ok(None)
}

/// An IP packet, if it is the answer.
fn reply(packet: &[u8], kind: u8, sequence: u16, delay_s: f64) -> Option<Reply> {
    let &[first, type_of_service, _, _, id_high, id_low, flags, _, ttl, ..] = packet else { return None };
    let [is, code, _, _, i, j, s, t, ..] = *packet.get(usize::from(first & 0x0f) * 4..)? else { return None };
    let is_answer = is == kind && u16::from_be_bytes([i, j]) == IDENTIFIER && u16::from_be_bytes([s, t]) == sequence;
    is_answer.then_some(Reply {
        delay_s,
        ttl,
        ip_id: u16::from_be_bytes([id_high, id_low]),
        dont_fragment: flags & 0x40 != 0,
        type_of_service,
        code,
    })
}

/// Answers to requests that are broadcast. The device is the one that the kernel knows the neighbour at.
fn arp(address: Ipv4Addr) -> io::Result<Vec<ArpReply>> {
    let device = device_of(&std::fs::read_to_string("/proc/net/arp")?, address)
        .ok_or_else(|| io::Error::other(format!("{address} is no neighbour")))?;
    let mac = mac_of(&std::fs::read_to_string(format!("/sys/class/net/{device}/address"))?)
        .ok_or_else(|| io::Error::other(format!("{device} has no MAC address")))?;
    let own = own_address(address)?;
    let name = sys::c_string(device.clone())?;
    // SAFETY: the name is NUL-terminated.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) } as c_int;
    let protocol = (libc::ETH_P_ARP as u16).to_be();
    let socket = socket(libc::AF_PACKET, libc::SOCK_RAW, c_int::from(protocol))?;
    // SAFETY: sockaddr_ll is plain numbers; the length is its own.
    check(unsafe {
        let mut at: libc::sockaddr_ll = zeroed();
        at.sll_family = libc::AF_PACKET as u16;
        at.sll_protocol = protocol;
        at.sll_ifindex = index;
        libc::bind(socket.as_raw_fd(), (&raw const at).cast(), size_of::<libc::sockaddr_ll>() as u32)
    })?;
    let request = arp_request(mac, own, address);
    let mut replies = Vec::new();
    for _ in 0..ARP_REQUESTS {
        let began = Instant::now();
        // SAFETY: pointer and length are of one slice.
        if unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut buffer = [0; 512];
        while let Some(bytes) = receive(&socket, &mut buffer, began + LIMIT)? {
            if is_arp_reply(&buffer[..bytes], address) {
                replies.push(ArpReply { delay_s: began.elapsed().as_secs_f64(), bytes });
                break;
            }
        }
        if replies.is_empty() {
            break;
        }
    }
    Ok(replies)
}

/// From /proc/net/arp.
fn device_of(table: &str, address: Ipv4Addr) -> Option<String> {
    let mut rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.first().is_some_and(|first| first.parse() == Ok(address)))?;
    row.last().map(|device| (*device).to_owned())
}

fn mac_of(text: &str) -> Option<[u8; 6]> {
    let bytes: Vec<u8> = text.trim().split(':').map_while(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes.try_into().ok()
}

/// The address that packets to another have.
fn own_address(to: Ipv4Addr) -> io::Result<Ipv4Addr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // Nothing is sent.
    socket.connect((to, 9))?;
    match socket.local_addr()?.ip() {
        std::net::IpAddr::V4(own) => Ok(own),
        std::net::IpAddr::V6(_) => Err(io::Error::other("no IPv4 address")),
    }
}

fn arp_request(mac: [u8; 6], own: Ipv4Addr, asked: Ipv4Addr) -> [u8; ETHERNET_ARP] {
    let parts: [&[u8]; 8] =
        [&[0xff; 6], &mac, &[0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1], &mac, &own.octets(), &[0; 6], &asked.octets(), &[]];
    let mut frame = [0; ETHERNET_ARP];
    for (to, from) in frame.iter_mut().zip(parts.concat()) {
        *to = from;
    }
    frame
}

fn is_arp_reply(frame: &[u8], of: Ipv4Addr) -> bool {
    frame.get(20..22) == Some(&[0, 2]) && frame.get(28..32) == Some(&of.octets())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ARP request as tcpdump shows Linux's own.
    #[test]
    fn an_arp_request_is_one() {
        let frame = arp_request([2, 0, 0, 0, 0, 1], Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(&frame[12..22], &[0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!((&frame[28..32], &frame[38..42]), (&[10, 0, 0, 1][..], &[10, 0, 0, 2][..]));
        let mut reply = frame;
        reply[21] = 2;
        assert!(is_arp_reply(&reply, Ipv4Addr::new(10, 0, 0, 1)));
        assert!(!is_arp_reply(&frame, Ipv4Addr::new(10, 0, 0, 1)) && !is_arp_reply(&reply[..20], Ipv4Addr::LOCALHOST));
    }

    /// RFC 1071's own example: 0001 f203 f4f5 f6f7 sum to ddf2.
    #[test]
    fn the_checksum_is_the_rfc_s() {
        assert_eq!(checksum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn a_reply_is_told_from_others() {
        let mut packet = vec![0x45, 4, 0, 0, 1, 2, 0x40, 0, 64, 1, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
        packet.extend([ECHO_REPLY, 9, 0, 0, 0x74, 0x62, 0, 3]);
        let found = reply(&packet, ECHO_REPLY, 3, 0.5).unwrap();
        assert_eq!(
            (found.ttl, found.ip_id, found.dont_fragment, found.type_of_service, found.code),
            (64, 258, true, 4, 9)
        );
        assert!(reply(&packet, ECHO_REPLY, 4, 0.5).is_none());
        for length in 0..packet.len() {
            assert!(reply(&packet[..length], ECHO_REPLY, 3, 0.5).is_none());
        }
    }

    #[test]
    fn the_neighbour_s_device_is_in_the_table() {
        let table = "IP address HW type Flags HW address Mask Device\n10.0.0.2  0x1  0x2  02:00:00:00:00:02  *  eth0\n";
        assert_eq!(device_of(table, Ipv4Addr::new(10, 0, 0, 2)).as_deref(), Some("eth0"));
        assert_eq!(device_of(table, Ipv4Addr::new(10, 0, 0, 3)), None);
        assert_eq!(mac_of("02:00:00:00:00:0a\n"), Some([2, 0, 0, 0, 0, 10]));
        assert_eq!(mac_of("none"), None);
    }
}
