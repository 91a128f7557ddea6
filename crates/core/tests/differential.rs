//! The readers of files and headers against pcap-parser and etherparse, on packets made by etherparse.

mod made;

use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use made::{paced, pcap, pcapng_section, MICROSECONDS};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{LegacyPcapReader, PcapBlockOwned, PcapError};
use proptest::prelude::*;
use twinbed_core::capture::{read_slice, Frame, LinkType};
use twinbed_core::wire::{dissect, Addresses, Dissected, Transport};

#[derive(Debug, Clone)]
struct Shape {
    v6: bool,
    vlan: u8,
    udp: bool,
    extension: bool,
    ports: (u16, u16),
    numbers: (u32, u32),
    payload_bytes: usize,
}

fn any_shape() -> impl Strategy<Value = Shape> {
    (any::<bool>(), 0u8..3, any::<bool>(), any::<bool>(), any::<(u16, u16)>(), any::<(u32, u32)>(), 0usize..200)
        .prop_map(|(v6, vlan, udp, extension, ports, numbers, payload_bytes)| Shape {
            v6,
            vlan,
            udp,
            extension,
            ports,
            numbers,
            payload_bytes,
        })
}

fn build(shape: &Shape) -> Vec<u8> {
    use etherparse::{
        IpFragOffset, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6FragmentHeader, Ipv6Header,
    };
    let transport = if shape.udp { IpNumber::UDP } else { IpNumber::TCP };
    let ip = if shape.v6 {
        let extensions = Ipv6Extensions {
            fragment: shape.extension.then(|| Ipv6FragmentHeader::new(transport, IpFragOffset::ZERO, false, 7)),
            ..Default::default()
        };
        let next_header = if shape.extension { IpNumber::IPV6_FRAGMENTATION_HEADER } else { transport };
        let header =
            Ipv6Header { next_header, hop_limit: 9, source: [0x20; 16], destination: [0xfd; 16], ..Default::default() };
        IpHeaders::Ipv6(header, extensions)
    } else {
        let mut header = Ipv4Header::new(0, 9, transport, [10, 1, 2, 3], [10, 3, 2, 1]).expect("a header");
        if shape.extension {
            header.options = [1u8; 12].into();
        }
        IpHeaders::Ipv4(header, Ipv4Extensions::default())
    };
    let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let step = match shape.vlan {
        0 => ethernet.ip(ip),
        1 => ethernet.single_vlan(5.try_into().expect("an id")).ip(ip),
        _ => ethernet.double_vlan(5.try_into().expect("an id"), 6.try_into().expect("an id")).ip(ip),
    };
    let payload = vec![7; shape.payload_bytes];
    let mut frame = Vec::new();
    let written = if shape.udp {
        step.udp(shape.ports.0, shape.ports.1).write(&mut frame, &payload)
    } else {
        step.tcp(shape.ports.0, shape.ports.1, shape.numbers.0, 77).ack(shape.numbers.1).write(&mut frame, &payload)
    };
    written.expect("a packet");
    frame
}

proptest! {
    #[test]
    fn headers_as_etherparse_reads_them(shape in any_shape()) {
        let data = build(&shape);
        let frame = Frame { time_ns: None, original_bytes: data.len() as u32, link: LinkType::ETHERNET, data: &data };
        let Dissected::Ip(packet) = dissect(&frame) else { panic!("not IP: {shape:?}") };
        let theirs = SlicedPacket::from_ethernet(&data).expect("etherparse reads its own");
        prop_assert_eq!(matches!(packet.addresses, Addresses::V6 { .. }), shape.v6);
        prop_assert!(!packet.longer_than_frame);
        match (packet.transport, theirs.transport) {
            (Transport::Tcp(own), Some(TransportSlice::Tcp(their))) => {
                prop_assert_eq!((own.source_port, own.destination_port), (their.source_port(), their.destination_port()));
                prop_assert_eq!((own.sequence, own.acknowledgment), (their.sequence_number(), their.acknowledgment_number()));
                prop_assert_eq!(own.payload_bytes as usize, their.payload().len());
                prop_assert_eq!(own.window, their.window_size());
            }
            (Transport::Udp(own), Some(TransportSlice::Udp(their))) => {
                prop_assert_eq!((own.source_port, own.destination_port), (their.source_port(), their.destination_port()));
                prop_assert_eq!(own.payload_bytes as usize, their.payload().len());
            }
            (own, their) => panic!("{own:?}, etherparse {their:?}"),
        }
    }

    #[test]
    fn records_as_pcap_parser_reads_them(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..12)) {
        let packets = paced(frames);
        let file = pcap(&packets, false, false, 1);
        let mut reader = LegacyPcapReader::new(4096, &file[..]).expect("a reader");
        let mut theirs = Vec::new();
        loop {
            match reader.next() {
                Ok((consumed, block)) => {
                    if let PcapBlockOwned::Legacy(record) = block {
                        let time_us = u64::from(record.ts_sec) * 1_000_000 + u64::from(record.ts_usec);
                        theirs.push((time_us, record.origlen, record.data.to_vec()));
                    }
                    reader.consume(consumed);
                }
                Err(PcapError::Eof) => break,
                Err(PcapError::Incomplete(_)) => reader.refill().expect("more"),
                Err(error) => panic!("{error:?}"),
            }
        }
        for file in [file.clone(), pcapng_section(&packets, false, MICROSECONDS, 1)] {
            let mut ours = Vec::new();
            read_slice(&file, |frame| {
                let time_ns = frame.time_ns.expect("a time");
                ours.push(((time_ns / 1000) as u64, frame.original_bytes, frame.data.to_vec()));
            })
            .expect("a capture");
            prop_assert_eq!(&ours, &theirs);
        }
    }
}
