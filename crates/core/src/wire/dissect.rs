//! A frame's headers, outermost first; into tunnels where that is asked for.

use super::link::dissect_link;
use super::packet::{Dissected, Packet};
use super::{tunnel, usual};
use crate::capture::Frame;

/// Reads a frame's headers, up to the outermost IP packet's transport.
#[inline]
pub fn dissect(frame: &Frame) -> Dissected {
    match usual::read(frame) {
        Some(packet) => Dissected::Ip(packet),
        None => dissect_layers(frame),
    }
}

/// As [`dissect`], layer by layer.
fn dissect_layers(frame: &Frame) -> Dissected {
    let mut dissected = dissect_link(frame.link, frame.data, frame.original_bytes);
    if let Dissected::Ip(packet) = &mut dissected {
        // The layers hand on what is left of the data, so what is left tells where it began.
        packet.transport_offset = frame.data.len() as u32 - packet.transport_offset;
    }
    dissected
}

/// [`dissect`], or [`dissect_inner`] where tunnels are to be looked into.
#[inline]
pub fn dissect_within(frame: &Frame, tunnels: bool) -> Dissected {
    if tunnels {
        dissect_inner(frame)
    } else {
        dissect(frame)
    }
}

/// As [`dissect`], and into tunnels: the innermost IP packet that could be read counts.
pub fn dissect_inner(frame: &Frame) -> Dissected {
    match dissect(frame) {
        Dissected::Ip(outer) => Dissected::Ip(innermost(frame.data, outer)),
        other => other,
    }
}

/// The kind of tunnel whose packet `packet`, the one that counts, is, as a count; `None` where it is of no tunnel. `data` is the
/// frame's.
#[cold]
pub fn tunnel_not_entered(data: &[u8], packet: &Packet) -> Option<&'static str> {
    tunnel::not_entered(data, packet)
}

/// The innermost IP packet of `outer` that could be read, `outer` itself if it carries none; `data` is the frame's.
pub fn innermost(data: &[u8], outer: Packet) -> Packet {
    tunnel::innermost(data, outer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::LinkType;
    use crate::wire::usual::read;

    /// Ethernet, IPv4 and TCP with these flags and 12 bytes of options, and 6 bytes of payload.
    fn usual(flags: u8, options: [u8; 12]) -> Vec<u8> {
        let mut data = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 58, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0];
        data.extend([
            10, 0, 0, 1, 10, 0, 0, 2, 0x80, 1, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, flags, 1, 0xf6, 0, 0, 0, 9,
        ]);
        data.extend(options);
        data.extend(*b"abcdef");
        data
    }

    #[test]
    fn what_is_read_at_once_is_what_the_layers_read() {
        let with_timestamps = usual(0x18, [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        let syn = usual(0x02, [1, 2, 4, 5, 180, 3, 3, 7, 4, 2, 0, 0]);
        for data in [with_timestamps, syn] {
            let original_bytes = data.len() as u32;
            let mut usual_ones = 0;
            for at in 0..data.len() {
                for value in 0..=255 {
                    for length in [data.len(), 60, 57, 54, 53] {
                        let mut changed = data[..length].to_vec();
                        if let Some(byte) = changed.get_mut(at) {
                            *byte = value;
                        }
                        let frame = Frame { time_ns: None, original_bytes, link: LinkType::ETHERNET, data: &changed };
                        if let Some(packet) = read(&frame) {
                            usual_ones += 1;
                            assert_eq!(Dissected::Ip(packet), dissect_layers(&frame), "{at} {value} {length}");
                        }
                    }
                }
            }
            assert!(usual_ones > data.len() * 256);
        }
    }
}
