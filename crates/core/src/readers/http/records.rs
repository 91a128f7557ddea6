//! TLS records (RFC 8446, 5.1) of one direction: which bytes of it are application data.
//!
//! Their heads are in clear. TLS 1.3 sends its encrypted handshake as application data too: the client's Finished is the record of
//! 53 or 69 bytes (a hash of 32 or 48 bytes, 4 of its message's head, 1 of its type, a tag of 16) that follows its
//! ChangeCipherSpec, and an alert, such as that a side closes, is one of 19 (2, 1 and 16), for which no request is short enough.
//! What a server sends before a request is in no exchange anyway. Its session tickets, which follow the
//! client's Finished, cannot be told from an answer. Where a head lies in bytes that were not captured, a segment that
//! begins with one tells where records begin again, and until then all counts as application data.

use crate::flow::reassembly::Chunk;

const HEAD_BYTES: usize = 5;
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const ALERT_BYTES: u16 = 19;
const FINISHED_BYTES: [u16; 2] = [53, 69];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// So many bytes of a head were read.
    Head([u8; HEAD_BYTES], usize),
    /// Bytes left of a record, and whether they are application data.
    Body(u64, bool),
    Unknown,
}

#[derive(Debug)]
pub(super) struct Records {
    state: State,
    follows_change: bool,
    /// Application data was seen: what cannot be told belongs to it.
    has_data: bool,
}

impl Default for Records {
    fn default() -> Self {
        Records { state: State::Head([0; HEAD_BYTES], 0), follows_change: false, has_data: false }
    }
}

/// Whether a client's first bytes begin a TLS handshake.
pub(super) fn begins_handshake(bytes: &[u8]) -> bool {
    matches!(bytes, [HANDSHAKE, 3, 0..=4, ..])
}

fn begins_record(bytes: &[u8]) -> bool {
    matches!(bytes, [CHANGE_CIPHER_SPEC..=APPLICATION_DATA, 3, 0..=4, ..])
}

impl Records {
    /// Hands the application data of a chunk to `sink`, as bytes that are not captured: nobody can read them.
    pub fn data(&mut self, chunk: &Chunk, from_client: bool, mut sink: impl FnMut(&Chunk)) {
        let total = chunk.captured.len() as u64 + chunk.missing;
        let mut at = 0u64;
        if self.state == State::Unknown && chunk.begins_segment && begins_record(chunk.captured) {
            self.state = State::Head([0; HEAD_BYTES], 0);
        }
        while at < total {
            let (used, is_data, begins) = match self.state {
                State::Head(head, have) => {
                    self.head(head, have, chunk.captured.get(at as usize..).unwrap_or_default(), from_client);
                    match self.state {
                        State::Unknown => (0, false, false),
                        _ => (1, false, false),
                    }
                }
                State::Body(left, is_data) => {
                    let used = left.min(total - at);
                    self.state = match left - used {
                        0 => State::Head([0; HEAD_BYTES], 0),
                        left => State::Body(left, is_data),
                    };
                    (used, is_data, true)
                }
                State::Unknown => (total - at, self.has_data, at == 0 && chunk.begins_segment),
            };
            if is_data && used > 0 {
                self.has_data = true;
                sink(&Chunk {
                    captured: &[],
                    position: chunk.position.saturating_add_unsigned(at),
                    sequence: chunk.sequence.wrapping_add(at as u32),
                    missing: used,
                    time_ns: chunk.time_ns,
                    begins_segment: begins,
                });
            }
            at += used;
        }
    }

    /// Reads one more byte of a head; a whole one says what follows.
    fn head(&mut self, mut head: [u8; HEAD_BYTES], have: usize, bytes: &[u8], from_client: bool) {
        let Some(&byte) = bytes.first() else {
            self.state = State::Unknown;
            return;
        };
        head[have] = byte;
        if have + 1 < HEAD_BYTES {
            self.state = State::Head(head, have + 1);
            return;
        }
        let length = u16::from_be_bytes([head[3], head[4]]);
        if !begins_record(&head) {
            self.state = State::Unknown;
            return;
        }
        let is_data = head[0] == APPLICATION_DATA && length != ALERT_BYTES;
        let is_finished = from_client && self.follows_change && FINISHED_BYTES.contains(&length);
        self.follows_change = head[0] == CHANGE_CIPHER_SPEC;
        self.state = match length {
            0 => State::Head([0; HEAD_BYTES], 0),
            _ => State::Body(length.into(), is_data && !is_finished),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of records (type, length) cut into segments of these captured lengths: (position, bytes).
    fn found(records: &[(u8, u16)], segment: usize, snap: usize, from_client: bool) -> Vec<(i64, u64)> {
        let mut bytes = Vec::new();
        for (kind, length) in records {
            bytes.extend([*kind, 3, 3, (length >> 8) as u8, *length as u8]);
            bytes.extend(vec![0xee; usize::from(*length)]);
        }
        let (mut reader, mut list, mut at) = (Records::default(), Vec::<(i64, u64)>::new(), 0);
        for piece in bytes.chunks(segment) {
            let captured = &piece[..piece.len().min(snap)];
            let chunk = Chunk {
                captured,
                position: at,
                sequence: at as u32,
                missing: (piece.len() - captured.len()) as u64,
                time_ns: None,
                begins_segment: true,
            };
            reader.data(&chunk, from_client, |data| match list.last_mut() {
                Some((start, length)) if *start + *length as i64 == data.position => *length += data.missing,
                _ => list.push((data.position, data.missing)),
            });
            at += piece.len() as i64;
        }
        list
    }

    #[test]
    fn application_data_is_told_from_the_handshake() {
        let tls_1_2 = [(22, 200), (20, 1), (22, 40), (23, 100), (21, 26)];
        for segment in [1, 7, 60, 10_000] {
            assert_eq!(found(&tls_1_2, segment, usize::MAX, true), [(261, 100)], "{segment}");
        }
        let tls_1_3 = [(22, 512), (20, 1), (23, 53), (23, 90), (23, 19)];
        assert_eq!(found(&tls_1_3, 1448, usize::MAX, true), [(586, 90)]);
        let of_server = found(&tls_1_3[1..], 1448, usize::MAX, false);
        assert_eq!(of_server, [(11, 53), (69, 90)], "a server's handshake is in no exchange anyway");
    }

    #[test]
    fn heads_that_were_cut_off_leave_the_rest_as_data() {
        // The second head lies in what the snap length cut off; the third segment begins with one again.
        let records = [(23, 1000), (23, 1886), (23, 10)];
        assert_eq!(found(&records, 1448, 30, false), [(5, 2891), (2901, 10)]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end(pieces in proptest::collection::vec((proptest::collection::vec(0u8..=25, 0..40), 0u64..70_000), 0..20)) {
            let (mut reader, mut at) = (Records::default(), 0i64);
            for (captured, missing) in pieces {
                let total = captured.len() as u64 + missing;
                let chunk = Chunk { captured: &captured, position: at, sequence: 0, missing, time_ns: None, begins_segment: at % 2 == 0 };
                let mut next = at;
                reader.data(&chunk, true, |data| {
                    assert!(data.position >= next && data.missing > 0);
                    next = data.position.saturating_add_unsigned(data.missing);
                });
                at = at.saturating_add_unsigned(total);
                assert!(next <= at);
            }
        }
    }
}
