//! Radiotap (radiotap.org): a header of its own length before an 802.11 frame, in little-endian order. Of its fields
//! one counts here: the flags, which tell padding after the 802.11 header and a wrong frame check sequence.

use super::layer::{End, Layer, Next};

const FIXED_BYTES: usize = 8;

pub(super) fn read(data: &[u8]) -> Next {
    const CUT_OFF: Next = Err(End::Unusable("radiotap_header_cut_off"));
    const PADDED: u8 = 0x20;
    const WRONG_CHECK_SEQUENCE: u8 = 0x40;
    if data.len() < FIXED_BYTES {
        return CUT_OFF;
    }
    let header_bytes = usize::from(u16::from_le_bytes([data[2], data[3]]));
    if data[0] != 0 {
        return Err(End::Unusable("radiotap_version_not_0"));
    }
    if header_bytes < FIXED_BYTES {
        return Err(End::Unusable("radiotap_length_below_8"));
    }
    let Some(header) = data.get(..header_bytes) else { return CUT_OFF };
    let flags = flags(header).unwrap_or(0);
    if flags & WRONG_CHECK_SEQUENCE != 0 {
        return Err(End::Unusable("wlan_frame_damaged"));
    }
    Ok((Layer::Wlan { is_padded: flags & PADDED != 0 }, header_bytes))
}

/// The field "flags", if there is one. It comes after the words that say which fields are there, and after the time,
/// which is aligned to its 8 bytes.
fn flags(header: &[u8]) -> Option<u8> {
    const TIME: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    const MORE_WORDS: u32 = 1 << 31;
    let (words, _) = header[4..].as_chunks::<4>();
    let present = u32::from_le_bytes(*words.first()?);
    if present & FLAGS == 0 {
        return None;
    }
    let last = words.iter().position(|word| u32::from_le_bytes(*word) & MORE_WORDS == 0)?;
    let fields = 4 + (last + 1) * 4;
    let at = if present & TIME != 0 { fields.next_multiple_of(8) + 8 } else { fields };
    header.get(at).copied()
}
