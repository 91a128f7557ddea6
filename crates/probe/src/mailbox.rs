//! `mailbox`: a control stream in instalments, for a host whose only way in is to run short programs on it.
//!
//! `mailbox serve SOCKET` is an agent whose stream is kept here. Each `mailbox exchange SOCKET SEQUENCE WAIT_MS [BASE64]`
//! hands the next bytes to it and prints, in base64, what the agent has sent since: at once where there is something, else
//! what comes within WAIT_MS. An exchange that is repeated under the same number changes nothing and has the same answer,
//! since the carrier of the commands may deliver one twice.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::agent::serve_both;
use crate::arguments::{number, Arguments};
use crate::failure::{complain, Failure, Outcome, Tried};
use crate::session::{in_thread, Ending};

/// The most that an answer holds.
const ANSWER_BYTES: usize = 512 * 1024;
/// The most that is kept until it is fetched: beyond this the agent waits.
const KEPT_BYTES: usize = 4 << 20;
const REQUEST_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 64 * 1024;
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const CONNECT_STEP: Duration = Duration::from_millis(5);

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let word = |arguments: &mut Arguments, what: &str| {
        arguments.word().ok_or_else(|| Failure::new(format!("mailbox: {what} is missing")))
    };
    let action = word(&mut arguments, "serve or exchange")?;
    let socket = word(&mut arguments, "the socket")?;
    match action.as_str() {
        "serve" => {
            arguments.finish()?;
            serve(&socket)
        }
        "exchange" => {
            let sequence = number("SEQUENCE", &word(&mut arguments, "SEQUENCE")?)?;
            let wait_ms = number("WAIT_MS", &word(&mut arguments, "WAIT_MS")?)?;
            let bytes = decode(&arguments.word().unwrap_or_default())?;
            arguments.finish()?;
            let answer = exchange(&socket, sequence, wait_ms, &bytes)?;
            writeln!(io::stdout(), "{}", encode(&answer)).tried(|| "write to standard output")
        }
        other => Err(Failure::new(format!("mailbox takes serve or exchange, not {other:?}"))),
    }
}

#[derive(Default)]
struct Unfetched {
    bytes: VecDeque<u8>,
    ended: bool,
}

/// What the agent has sent and nobody has fetched.
#[derive(Default)]
struct Outbox {
    unfetched: Mutex<Unfetched>,
    changed: Condvar,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Unfetched> {
        self.unfetched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self, mut stream: UnixStream) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = stream.read(&mut chunk) {
            let full = |unfetched: &mut Unfetched| unfetched.bytes.len() >= KEPT_BYTES;
            let mut unfetched = self.changed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
            unfetched.bytes.extend(&chunk[..length]);
            self.changed.notify_all();
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }

    fn take(&self, wait: Duration) -> Vec<u8> {
        let nothing = |unfetched: &mut Unfetched| unfetched.bytes.is_empty() && !unfetched.ended;
        let waited = self.changed.wait_timeout_while(self.lock(), wait, nothing);
        let mut unfetched = waited.unwrap_or_else(PoisonError::into_inner).0;
        let length = unfetched.bytes.len().min(ANSWER_BYTES);
        let taken = unfetched.bytes.drain(..length).collect();
        self.changed.notify_all();
        taken
    }
}

fn serve(socket: &str) -> Outcome<()> {
    let (ours, theirs) = UnixStream::pair().tried(|| "make a pair of sockets")?;
    let reading = ours.try_clone().tried(|| "duplicate a socket")?;
    let listener = UnixListener::bind(socket).tried(|| format!("listen on {socket}"))?;
    let outbox = Arc::new(Outbox::default());
    let filling = Arc::clone(&outbox);
    in_thread(move || filling.fill(reading))?;
    in_thread(move || {
        let mut desk = Desk { stream: ours, outbox, last: (0, Vec::new()) };
        for visitor in listener.incoming().flatten() {
            if let Err(failure) = desk.answer(visitor).tried(|| "answer an exchange") {
                complain(&failure);
            }
        }
    })?;
    let Err(failure) = serve_both(File::from(OwnedFd::from(theirs)), Ending::Exit);
    Err(failure)
}

struct Desk {
    stream: UnixStream,
    outbox: Arc<Outbox>,
    /// Number of the last exchange, and its answer.
    last: (u64, Vec<u8>),
}

impl Desk {
    fn answer(&mut self, mut visitor: UnixStream) -> io::Result<()> {
        let mut head = [0; 16];
        visitor.read_exact(&mut head)?;
        let (sequence, rest) = head.split_at(8);
        let (wait_ms, length) = rest.split_at(4);
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        let (sequence, wait_ms, length) = (word(sequence), word(wait_ms), word(length) as usize);
        if length > REQUEST_BYTES || !(self.last.0..=self.last.0 + 1).contains(&sequence) {
            return Err(io::Error::other(format!("exchange {sequence} of {length} bytes after {}", self.last.0)));
        }
        let mut bytes = vec![0; length];
        visitor.read_exact(&mut bytes)?;
        if sequence != self.last.0 {
            self.stream.write_all(&bytes)?;
            self.last = (sequence, self.outbox.take(Duration::from_millis(wait_ms)));
        }
        visitor.write_all(&(self.last.1.len() as u32).to_le_bytes())?;
        visitor.write_all(&self.last.1)
    }
}

fn exchange(socket: &str, sequence: u64, wait_ms: u32, bytes: &[u8]) -> Outcome<Vec<u8>> {
    let mut stream = reach(socket).tried(|| format!("connect to {socket}"))?;
    let mut request = sequence.to_le_bytes().to_vec();
    request.extend(wait_ms.to_le_bytes());
    request.extend((bytes.len() as u32).to_le_bytes());
    request.extend(bytes);
    let mut answered = || {
        stream.write_all(&request)?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut answer = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    answered().tried(|| format!("make exchange {sequence} over {socket}"))
}

/// Connects to the serving side, which may only just have been started.
fn reach(socket: &str) -> io::Result<UnixStream> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Err(error) if start.elapsed() > CONNECT_LIMIT => return Err(error),
            Err(_) => std::thread::sleep(CONNECT_STEP),
            Ok(stream) => return Ok(stream),
        }
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 of RFC 4648, padded.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn decode(text: &str) -> Outcome<Vec<u8>> {
    let refused = || Failure::new("what is to be handed over is not base64");
    if text.len() & 3 != 0 {
        return Err(refused());
    }
    let digits = text.trim_end_matches('=').as_bytes();
    if text.len() - digits.len() > 2 {
        return Err(refused());
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut word = 0_u32;
        for digit in chunk {
            let value = ALPHABET.iter().position(|each| each == digit).ok_or_else(refused)?;
            word = word << 6 | value as u32;
        }
        word <<= 6 * (4 - chunk.len());
        bytes.extend(&word.to_be_bytes()[1..chunk.len()]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_rfc_4648() {
        let known = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in known {
            assert_eq!(encode(plain.as_bytes()), coded);
            assert_eq!(decode(coded).unwrap(), plain.as_bytes());
        }
        for wrong in ["Z", "Zg", "Zg=", "Z===", "Zm9%"] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_exchange_is_answered_once_and_repeated_alike() {
        let (ours, mut agent) = UnixStream::pair().unwrap();
        let outbox = Arc::new(Outbox::default());
        let filling = Arc::clone(&outbox);
        let reading = ours.try_clone().unwrap();
        std::thread::spawn(move || filling.fill(reading));
        let folder = std::env::temp_dir().join(format!("twinbed-mailbox-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            let mut desk = Desk { stream: ours, outbox, last: (0, Vec::new()) };
            for visitor in listener.incoming().flatten() {
                let _ = desk.answer(visitor);
            }
        });
        let path = socket.to_str().unwrap();
        agent.write_all(b"said").unwrap();
        assert_eq!(exchange(path, 1, 5000, b"asked").unwrap(), b"said");
        assert_eq!(exchange(path, 1, 0, b"asked").unwrap(), b"said");
        assert_eq!(exchange(path, 2, 0, b"again").unwrap(), b"");
        assert!(exchange(path, 4, 0, b"").is_err(), "a number was left out");
        let mut heard = [0; 10];
        agent.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"askedagain", "each once, in their order");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
