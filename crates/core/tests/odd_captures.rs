//! Captures whose packets are duplicated or dated wrongly, against what tcptrace 6.6.7 prints of the same packets; and blocks
//! of pcapng that are no packets.

mod made;
mod whole;

use made::{pcap, pcapng_section, segments, tcp, Packet, MICROSECONDS};
use twinbed_core::capture::read_slice;
use twinbed_core::readers::tcptrace::{Options, Rows};
use whole::whole;

/// Packets of a connection at these microseconds after a second.
fn at(times_us: &[u64], mut packets: Vec<Packet>) -> Vec<u8> {
    for (packet, time_us) in packets.iter_mut().zip(times_us) {
        packet.time_us = 1_000_000 + time_us;
    }
    pcap(&packets, false, false, 1)
}

/// tcptrace: `hardware_dups_a2b` 4. Its ring holds the eight last originals: three duplicates of the ninth segment do not
/// push out the second, which comes again.
#[test]
fn duplicates_do_not_push_out_originals() {
    let one = |place: u16| {
        let mut frame = tcp(true, "A", 1000 + 10 * u32::from(place), 1, 10).frame();
        frame[18..20].copy_from_slice(&(100 + place).to_be_bytes());
        frame
    };
    let frames = (0..9).chain([8, 8, 8, 1]).map(one);
    let (rows, _) = whole(Rows::new(Options::default()), &pcap(&made::paced(frames), false, false, 1));
    assert_eq!((rows[0].a.total_packets, rows[0].a.rare().hardware_dups), (13, 4));
}

/// tcptrace: a connection of 0.000000 s without a throughput, where the last packet is dated before the first.
#[test]
fn a_clock_that_is_set_back_gives_no_negative_time() {
    let packets = segments(&[tcp(true, "S", 100, 0, 0), tcp(false, "SA", 500, 101, 0), tcp(true, "A", 101, 501, 50)]);
    let (rows, summary) = whole(Rows::new(Options::default()), &at(&[500_000, 501_000, 0], packets.clone()));
    assert_eq!((rows[0].elapsed, rows[0].a.throughput), (Some(0.0), None));
    let (far, near) = (
        "dated_1_ms_or_more_before_the_packet_ahead_in_its_connection",
        "dated_less_than_1_ms_before_the_packet_ahead_in_its_connection",
    );
    assert_eq!(summary.notes.into_iter().collect::<Vec<_>>(), [(far, 1)]);
    // Queues of a NIC that are captured side by side put packets in another order by microseconds.
    let (_, summary) = whole(Rows::new(Options::default()), &at(&[0, 501_000, 500_990], packets.clone()));
    assert_eq!(summary.notes.into_iter().collect::<Vec<_>>(), [(near, 1)]);
    let (_, summary) = whole(Rows::new(Options::default()), &at(&[0, 1, 1], packets));
    assert!(summary.notes.is_empty());
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = 12 + body.len() as u32;
    [&kind.to_le_bytes(), &length.to_le_bytes(), body, &length.to_le_bytes()].concat()
}

/// sysdig's recordings are pcapng with blocks of its own (libscap's scap_savefile.h: 0x201 is the machine, 0x204 an event).
#[test]
fn recordings_of_system_calls_are_refused() {
    let section = pcapng_section(&[], false, MICROSECONDS, 1);
    let scap = [&section[..28], &block(0x201, &[b'x'; 16]), &block(0x204, &[b'y'; 40])].concat();
    let error = read_slice(&scap, |_| {}).expect_err("no packets").to_string();
    assert!(error.contains("0x201") && error.contains("sysdig -r FILE"), "{error}");
}

/// Names, journal entries and the like are beside packets; what nobody knows is counted.
#[test]
fn blocks_of_unknown_types_are_counted() {
    let packets = segments(&[tcp(true, "S", 100, 0, 0)]);
    let section = pcapng_section(&packets, false, MICROSECONDS, 1);
    let file = [&section[..], &block(4, &[0; 4]), &block(0x7777, &[0; 8]), &block(0x7777, &[0; 8])].concat();
    let origin = read_slice(&file, |_| {}).expect("a capture");
    assert_eq!(origin.skipped.into_iter().collect::<Vec<_>>(), [("pcapng_block_of_a_type_that_is_not_read", 2)]);
}
