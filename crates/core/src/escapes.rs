//! Bytes that are written as `\xNN`, as the kernel's log and the probe's count file have them.

/// The bytes that a text with escapes stands for.
pub fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let hexadecimal = match rest {
            [b'\\', b'x', high, low, ..] => {
                (*high as char).to_digit(16).zip((*low as char).to_digit(16)).map(|(high, low)| (high * 16 + low) as u8)
            }
            _ => None,
        };
        match hexadecimal {
            Some(byte) => {
                plain.push(byte);
                rest = &rest[4..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}
