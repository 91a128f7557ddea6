//! What a file looks like that is not a capture, so that the error can say it.

/// First bytes, and the kind of file that begins with them.
const KNOWN: [(&[u8], &str); 30] = [
    (b"PK\x03\x04", "a ZIP archive"),
    (b"BZh", "bzip2; decompress it first"),
    (b"\xfd7zXZ\0", "xz; decompress it first"),
    (b"\x04\x22\x4d\x18", "LZ4; decompress it first"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"snoop\0\0\0", "a snoop capture; editcap converts it"),
    (b"btsnoop\0", "a btsnoop capture; editcap converts it"),
    (b"\x7fver", "an EtherPeek or OmniPeek capture; editcap converts it"),
    (b"TRSNIFF data", "a Sniffer capture; editcap converts it"),
    (b"\x05VNF", "a Visual Networks capture; editcap converts it"),
    (b"ObserverPktBuffe", "an Observer capture; editcap converts it"),
    (b"iptrace ", "a capture of AIX's iptrace; editcap converts it"),
    (b"\xaa\xaa\xaa\xaa", "a 5Views capture; editcap converts it"),
    (b"\x01\x10\x4c\0", "a LANalyzer capture; editcap converts it"),
    (b"TR\0d", "a capture of HP-UX's nettl; `editcap -F pcap -T ether` converts it"),
    (b"+---------+---------------+----------+", "a K12 text capture; `editcap -F pcap -T ether` converts it"),
    (b"\x28\xb5\x2f\xfd", "Zstandard inside another compression; decompress it first"),
    (b"\x1f\x8b\x08", "gzip inside another compression; decompress it first"),
    (b"LOGG", "a Vector BLF log; editcap converts it"),
    (b"RTSS", "a Network Monitor capture; editcap converts it"),
    (b"GMBU", "a Network Monitor capture; editcap converts it"),
    (b"XCP\0", "a NetXray capture; editcap converts it"),
    (b"\x7fELF", "a program (ELF)"),
    (b"PAR1", "a Parquet table"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a PNG picture"),
    (b"SQLite format 3", "an SQLite database"),
    (b"#separator", "a log of Zeek's"),
    (b"<?xml", "XML"),
    (b"<!DOCTYPE", "HTML"),
];

/// So many bytes of a file tell all that can be told.
pub(crate) const START_BYTES: usize = 512;

/// The likeness of `start`, the file's first bytes.
pub(crate) fn likeness(start: &[u8]) -> &'static str {
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)) {
        return what;
    }
    if start.get(257..262) == Some(b"ustar") {
        return "a tar archive";
    }
    if is_erf(start) {
        return "an ERF capture; `editcap -F pcap -T ether` converts it";
    }
    let start = &start[..start.len().min(START_BYTES)];
    if start.iter().all(|byte| *byte == 0) {
        return "zeros";
    }
    let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
    if start.iter().all(printable) {
        return match start.first() {
            Some(b'{' | b'[') => "JSON text",
            _ => "text",
        };
    }
    "unknown binary data"
}

/// Endace's ERF has no magic number. Its record header has a time whose upper half is in seconds and in little-endian
/// order, a type, and in big-endian order the record's length, a count of losses, and the packet's length. Records follow
/// each other without a gap; all that begin here must be such.
fn is_erf(mut start: &[u8]) -> bool {
    const HEADER_BYTES: usize = 16;
    const YEAR_2100: u32 = 4_102_444_800;
    const MAX_TYPE: u8 = 48;
    let mut records = 0;
    while let Some(header) = start.first_chunk::<HEADER_BYTES>() {
        let seconds = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let record_bytes = usize::from(u16::from_be_bytes([header[10], header[11]]));
        let kind = header[8] & 0x7f;
        if seconds > YEAR_2100 || kind == 0 || kind > MAX_TYPE || record_bytes < HEADER_BYTES {
            return false;
        }
        records += 1;
        start = start.get(record_bytes..).unwrap_or_default();
    }
    records >= 2
}
