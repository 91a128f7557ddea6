//! Packets by etherparse's builder and capture files by hand, for tests.
#![allow(dead_code, reason = "each test file uses a part")]

use etherparse::{PacketBuilder, TcpOptionElement};

#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    /// Sent by the client (10.0.0.1:40000) or the server (10.0.0.2:80).
    pub client: bool,
    pub flags: &'static str,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub window: u16,
    pub payload_bytes: usize,
    pub mss: Option<u16>,
}

/// A segment; `flags` of the letters S, A, F, R.
pub fn tcp(client: bool, flags: &'static str, sequence: u32, acknowledgment: u32, payload_bytes: usize) -> Tcp {
    Tcp { client, flags, sequence, acknowledgment, window: 1000, payload_bytes, mss: None }
}

impl Tcp {
    pub fn window(self, window: u16) -> Self {
        Tcp { window, ..self }
    }

    pub fn mss(self, mss: u16) -> Self {
        Tcp { mss: Some(mss), ..self }
    }

    pub fn frame(&self) -> Vec<u8> {
        let (from, to) = if self.client { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
        let (from_port, to_port) = if self.client { (40000, 80) } else { (80, 40000) };
        let mut step = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv4(from, to, 64).tcp(
            from_port,
            to_port,
            self.sequence,
            self.window,
        );
        for flag in self.flags.chars() {
            step = match flag {
                'S' => step.syn(),
                'A' => step.ack(self.acknowledgment),
                'F' => step.fin(),
                'R' => step.rst(),
                other => panic!("flag {other}"),
            };
        }
        if let Some(mss) = self.mss {
            step = step.options(&[TcpOptionElement::MaximumSegmentSize(mss)]).expect("options fit");
        }
        let mut frame = Vec::new();
        step.write(&mut frame, &vec![b'x'; self.payload_bytes]).expect("a packet");
        frame
    }
}

pub fn udp(client: bool, payload_bytes: usize) -> Vec<u8> {
    let (from, to) = if client { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
    let (from_port, to_port) = if client { (5000, 53) } else { (53, 5000) };
    let builder =
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv4(from, to, 64).udp(from_port, to_port);
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![b'y'; payload_bytes]).expect("a packet");
    frame
}

/// A packet of a file: time, bytes, original length.
#[derive(Clone, Debug)]
pub struct Packet {
    pub time_us: u64,
    pub data: Vec<u8>,
    pub original_bytes: u32,
}

/// One packet a millisecond.
pub fn paced(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Packet> {
    let packet = |(at, data): (usize, Vec<u8>)| Packet {
        time_us: 1_700_000_000_000_000 + at as u64 * 1000,
        original_bytes: data.len() as u32,
        data,
    };
    frames.into_iter().enumerate().map(packet).collect()
}

pub fn segments(segments: &[Tcp]) -> Vec<Packet> {
    paced(segments.iter().map(Tcp::frame))
}

fn put32(file: &mut Vec<u8>, value: u32, big_endian: bool) {
    file.extend(if big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
}

fn put16(file: &mut Vec<u8>, value: u16, big_endian: bool) {
    file.extend(if big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
}

pub fn pcap(packets: &[Packet], big_endian: bool, nanoseconds: bool, link: u32) -> Vec<u8> {
    let mut file = Vec::new();
    put32(&mut file, if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }, big_endian);
    put16(&mut file, 2, big_endian);
    put16(&mut file, 4, big_endian);
    for value in [0, 0, 262_144, link] {
        put32(&mut file, value, big_endian);
    }
    for packet in packets {
        put32(&mut file, (packet.time_us / 1_000_000) as u32, big_endian);
        let fraction = (packet.time_us % 1_000_000) as u32;
        put32(&mut file, if nanoseconds { fraction * 1000 } else { fraction }, big_endian);
        put32(&mut file, packet.data.len() as u32, big_endian);
        put32(&mut file, packet.original_bytes, big_endian);
        file.extend(&packet.data);
    }
    file
}

fn block(file: &mut Vec<u8>, kind: u32, body: &[u8], big_endian: bool) {
    let length = 12 + body.len().next_multiple_of(4) as u32;
    put32(file, kind, big_endian);
    put32(file, length, big_endian);
    file.extend(body);
    file.resize(file.len().next_multiple_of(4), 0);
    put32(file, length, big_endian);
}

/// How a pcapng section counts time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// if_tsresol
    pub resolution: u8,
    pub ticks_per_second: u64,
    /// if_tsoffset
    pub offset_s: i64,
}

pub const MICROSECONDS: Clock = Clock { resolution: 6, ticks_per_second: 1_000_000, offset_s: 0 };

/// One section with one interface.
pub fn pcapng_section(packets: &[Packet], big_endian: bool, clock: Clock, link: u16) -> Vec<u8> {
    let mut file = Vec::new();
    let mut body = Vec::new();
    put32(&mut body, 0x1a2b_3c4d, big_endian);
    put16(&mut body, 1, big_endian);
    put16(&mut body, 0, big_endian);
    body.extend([0xff; 8]);
    block(&mut file, 0x0a0d_0d0a, &body, big_endian);
    body.clear();
    put16(&mut body, link, big_endian);
    put16(&mut body, 0, big_endian);
    put32(&mut body, 0, big_endian);
    put16(&mut body, 9, big_endian);
    put16(&mut body, 1, big_endian);
    body.extend([clock.resolution, 0, 0, 0]);
    put16(&mut body, 14, big_endian);
    put16(&mut body, 8, big_endian);
    let offset = clock.offset_s;
    body.extend(if big_endian { offset.to_be_bytes() } else { offset.to_le_bytes() });
    put32(&mut body, 0, big_endian);
    block(&mut file, 1, &body, big_endian);
    for packet in packets {
        let since_us = u128::from(packet.time_us) - clock.offset_s as u128 * 1_000_000;
        let ticks = (since_us * u128::from(clock.ticks_per_second) / 1_000_000) as u64;
        body.clear();
        put32(&mut body, 0, big_endian);
        put32(&mut body, (ticks >> 32) as u32, big_endian);
        put32(&mut body, ticks as u32, big_endian);
        put32(&mut body, packet.data.len() as u32, big_endian);
        put32(&mut body, packet.original_bytes, big_endian);
        body.extend(&packet.data);
        block(&mut file, 6, &body, big_endian);
    }
    file
}

/// Gives its bytes in pieces of these sizes, over and over.
pub struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: Vec<usize>,
    at: usize,
}

impl<'a> Pieces<'a> {
    pub fn new(bytes: &'a [u8], sizes: impl Into<Vec<usize>>) -> Self {
        Pieces { bytes, sizes: sizes.into(), at: 0 }
    }
}

impl std::io::Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let size = self.sizes[self.at % self.sizes.len()].min(self.bytes.len()).min(buffer.len());
        self.at += 1;
        let (piece, rest) = self.bytes.split_at(size);
        buffer[..size].copy_from_slice(piece);
        self.bytes = rest;
        Ok(size)
    }
}
