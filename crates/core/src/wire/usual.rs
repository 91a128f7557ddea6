//! The usual frame, read in one piece: Ethernet II, IPv4 without options and in one fragment, TCP. Nearly all
//! frames are like this. The layers' own modules read all others and explain each field.

use super::bytes::{u16_at, u32_at};
use super::packet::{Addresses, Packet, Transport};
use super::tcp;
use crate::capture::{Frame, LinkType};

const IP: usize = 14;
const TCP: usize = IP + 20;
const TCP_END: usize = TCP + 20;

/// Source and destination of what is a usual frame: far less work than reading it, where no more is wanted.
/// Something may be wrong with the frame; where nothing is, reading it gives the same.
#[inline]
pub fn ends(frame: &Frame) -> Option<(Addresses, u16, u16)> {
    let header = frame.data.first_chunk::<{ TCP + 4 }>().filter(|_| frame.link == LinkType::ETHERNET)?;
    is_plain(header).then(|| {
        let addresses = Addresses::V4 { source: u32_at(header, IP + 12), destination: u32_at(header, IP + 16) };
        (addresses, u16_at(header, TCP), u16_at(header, TCP + 2))
    })
}

/// IPv4 without options and in one fragment, and TCP.
#[inline]
fn is_plain(header: &[u8]) -> bool {
    u32_at(header, 11) & 0x00ff_ffff == 0x0008_0045 // EtherType, version and header length
        && header[IP + 9] == tcp::PROTOCOL
        && u16_at(header, IP + 6) & 0x3fff == 0
}

/// Read a usual frame; `None` where a frame is anything else, or anything is wrong with it.
#[inline(always)]
pub fn read(frame: &Frame) -> Option<Packet> {
    let Frame { data, original_bytes, .. } = *frame;
    let header = data.first_chunk::<TCP_END>().filter(|_| frame.link == LinkType::ETHERNET)?;
    let flags = header[TCP + 13];
    if !is_plain(header) {
        return None;
    }
    let ip_bytes = u32::from(u16_at(header, IP + 2));
    let header_bytes = header[TCP + 12] >> 4 << 2;
    let transport_bytes = ip_bytes.checked_sub(20)?;
    let payload_bytes = transport_bytes.checked_sub(u32::from(header_bytes))?;
    if header_bytes < 20 {
        return None;
    }
    let transport_captured = ((data.len() - TCP) as u32).min(transport_bytes);
    // As the module of TCP has it, the options of what the IP header says is there.
    let options = || &data[TCP_END..TCP + transport_captured.min(u32::from(header_bytes)) as usize];
    Some(Packet {
        addresses: Addresses::V4 { source: u32_at(header, IP + 12), destination: u32_at(header, IP + 16) },
        protocol: tcp::PROTOCOL,
        ip_bytes,
        transport: Transport::Tcp(tcp::Segment {
            source_port: u16_at(header, TCP),
            destination_port: u16_at(header, TCP + 2),
            sequence: u32_at(header, TCP + 4),
            acknowledgment: u32_at(header, TCP + 8),
            flags,
            window: u16_at(header, TCP + 14),
            urgent_pointer: u16_at(header, TCP + 18),
            header_bytes,
            payload_bytes,
            max_segment_bytes: if flags & tcp::SYN != 0 { tcp::max_segment_option(options()) } else { None },
        }),
        transport_bytes,
        transport_offset: TCP as u32,
        transport_captured,
        ip_id: Some(u16_at(header, IP + 4)),
        fragment_id: None,
        longer_than_frame: ip_bytes > original_bytes.saturating_sub(IP as u32),
    })
}
