//! What a file looks like that is not a capture, so that the error can say it.

/// First bytes, and the kind of file that begins with them.
const KNOWN: [(&[u8], &str); 17] = [
    (b"PK\x03\x04", "a ZIP archive"),
    (b"BZh", "bzip2; decompress it first"),
    (b"\xfd7zXZ\0", "xz; decompress it first"),
    (b"\x04\x22\x4d\x18", "LZ4; decompress it first"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"snoop\0\0\0", "a snoop capture; editcap converts it"),
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

/// The likeness of `start`, the file's first bytes.
pub(crate) fn likeness(start: &[u8]) -> &'static str {
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)) {
        return what;
    }
    if start.get(257..262) == Some(b"ustar") {
        return "a tar archive";
    }
    let start = &start[..start.len().min(256)];
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
