//! Verdicts on checksums against tshark's (tests/golden/checksums/README.md).

mod made;

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use twinbed_core::capture::{read_slice, Frame, LinkType};
use twinbed_core::wire::checksum::{self, Verdict};
use twinbed_core::wire::{dissect, Dissected};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

/// The verdict on a frame's checksum of this kind, if it has one.
fn verdict(frame: &Frame, kind: &str) -> Option<Verdict> {
    let Dissected::Ip(packet) = dissect(frame) else { return None };
    let protocol = match kind {
        "ip" => return checksum::ip(&packet, frame.data),
        "tcp" => 6,
        "udp" => 17,
        "icmp" => 1,
        _ => 58,
    };
    (packet.protocol == protocol).then(|| checksum::transport(&packet, frame.data))
}

#[test]
fn tshark_agrees() {
    let text = std::fs::read_to_string(golden().join("checksums/expected.tsv")).expect("tshark's verdicts");
    let (mut compared, mut partial) = (0, 0);
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let bytes = std::fs::read(golden().join(cells[0])).expect("a capture");
        let mut theirs = cells[2].chars();
        let is_zeek = cells[0].contains("zeek-") && !cells[0].contains("dvwa") && !cells[0].contains("content-range");
        read_slice(&bytes, |frame| {
            let their = theirs.next().expect("a verdict for each packet");
            let own = verdict(frame, cells[1]);
            let letter = match own {
                Some(Verdict::Good) => 'g',
                Some(Verdict::Bad | Verdict::Partial) => 'b',
                Some(Verdict::NotChecked) => 'n',
                None => '-',
            };
            // Without reassembly tshark shows no transport in a fragment.
            if !(their == '-' && letter == 'n') {
                assert_eq!(letter, their, "{} {}", cells[0], cells[1]);
                compared += 1;
            }
            if their == 'b' {
                // retransmit-fast009's sender left IPv4's checksum to its NIC as well: tshark shows 0x0000 in its field.
                let is_unset = cells[1] == "ip" && frame.data[24..26] == [0, 0];
                let expected = if is_zeek && !is_unset { Verdict::Bad } else { Verdict::Partial };
                assert_eq!(own, Some(expected), "{} {}", cells[0], cells[1]);
                partial += u32::from(expected == Verdict::Partial);
            }
        })
        .expect("a readable capture");
        assert_eq!(theirs.next(), None, "{}", cells[0]);
    }
    assert!(compared > 1500 && partial > 200, "{compared} compared, {partial} partial");
}

/// RFC 1071, section 3: the sum of 00 01 f2 03 f4 f5 f6 f7 is ddf2.
#[test]
fn the_rfcs_example() {
    assert_eq!(checksum::sum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]).to_be(), 0xddf2);
    assert_eq!(checksum::sum(&[]), 0);
}

fn frame(data: &[u8]) -> Frame<'_> {
    Frame { time_ns: None, original_bytes: data.len() as u32, link: LinkType::ETHERNET, data }
}

const TRANSPORT: usize = 34;

/// As the RFCs say it: 0 is "no checksum" in IPv4's UDP.
#[test]
fn none_there() {
    let mut data = made::udp(true, 9);
    assert_eq!(verdict(&frame(&data), "udp"), Some(Verdict::Good));
    data[TRANSPORT + 6..TRANSPORT + 8].copy_from_slice(&[0, 0]);
    assert_eq!(verdict(&frame(&data), "udp"), Some(Verdict::NotChecked));
}

/// A wrong header checksum of 0 was left to the NIC; any other is damage. A header whose sum makes 0 the right checksum
/// is good: RFC 1071's complement of ffff.
#[test]
fn a_header_checksum_of_zero() {
    const CHECKSUM: usize = 14 + 10;
    const IDENTIFICATION: usize = 14 + 4;
    let mut data = made::tcp(true, "A", 1, 2, 3).frame();
    assert_eq!(verdict(&frame(&data), "ip"), Some(Verdict::Good));
    let right = u16::from_be_bytes([data[CHECKSUM], data[CHECKSUM + 1]]);
    data[CHECKSUM..CHECKSUM + 2].copy_from_slice(&[0, 0]);
    assert_eq!(verdict(&frame(&data), "ip"), Some(Verdict::Partial));
    data[CHECKSUM + 1] = if right == 1 { 2 } else { 1 };
    assert_eq!(verdict(&frame(&data), "ip"), Some(Verdict::Bad));
    // What the checksum said goes into the identification, so that the words sum to ffff without it.
    let identification =
        u32::from(u16::from_be_bytes([data[IDENTIFICATION], data[IDENTIFICATION + 1]])) + u32::from(right);
    let folded = ((identification & 0xffff) + (identification >> 16)) as u16;
    data[IDENTIFICATION..IDENTIFICATION + 2].copy_from_slice(&folded.to_be_bytes());
    data[CHECKSUM..CHECKSUM + 2].copy_from_slice(&[0, 0]);
    assert_eq!(verdict(&frame(&data), "ip"), Some(Verdict::Good));
}

/// Frames may be padded; the padding is in no checksum. A cut packet has none that can be checked.
#[test]
fn padded_and_cut() {
    let whole = made::tcp(true, "A", 1, 2, 3).frame();
    let padded = [&whole[..], &[7; 9]].concat();
    assert_eq!(verdict(&frame(&padded), "tcp"), Some(Verdict::Good));
    for length in 14..whole.len() {
        let cut = Frame { original_bytes: whole.len() as u32, ..frame(&whole[..length]) };
        assert!(matches!(verdict(&cut, "tcp"), None | Some(Verdict::NotChecked)), "{length}");
        let header = if length < TRANSPORT { None } else { Some(Verdict::Good) };
        assert_eq!(verdict(&cut, "ip"), header, "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_sum_is_the_textbooks(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut sum: u32 = 0;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        prop_assert_eq!(checksum::sum(&bytes).to_be(), sum as u16);
    }

    /// Any one bit that changes makes it bad, or no packet of that kind.
    #[test]
    fn a_changed_bit_is_seen(bytes in 0usize..90, at in 26usize..100, bit in 0u8..8, is_tcp in any::<bool>()) {
        let mut data = if is_tcp { made::tcp(true, "A", 9, 9, bytes).frame() } else { made::udp(false, bytes) };
        prop_assume!(at < data.len());
        data[at] ^= 1 << bit;
        // UDP's own length, or its checksum become 0, takes the check away.
        let kind = if is_tcp { "tcp" } else { "udp" };
        let own = verdict(&frame(&data), kind);
        prop_assert!(own != Some(Verdict::Good), "{:?}", own);
    }
}
