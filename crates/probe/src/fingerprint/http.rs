//! Requests that web servers answer differently: HTTPRecon's nine and some that are malformed, each on a connection of its own.
//!
//! Answers are kept as they came, a byte a character (ISO 8859-1), at most 64 KiB of each.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;

const LIMIT: Duration = Duration::from_secs(2);
const MOST_BYTES: usize = 64 * 1024;
/// How often the plain request is asked, for the times that it takes.
const TIMED: usize = 30;

/// Name, what is sent. `Host` is a name, never an address.
fn requests() -> Vec<(&'static str, String)> {
    const END: &str = "Host: www\r\nConnection: close\r\n\r\n";
    let line = |line: &str| format!("{line}\r\n{END}");
    vec![
        ("get", line("GET / HTTP/1.1")),
        ("head", line("HEAD / HTTP/1.1")),
        ("options", line("OPTIONS / HTTP/1.1")),
        ("delete", line("DELETE / HTTP/1.1")),
        ("trace", line("TRACE / HTTP/1.1")),
        ("unknown_method", line("TEST / HTTP/1.1")),
        ("not_found", line("GET /twinbed-404.html HTTP/1.1")),
        ("long_uri", line(&format!("GET /{} HTTP/1.1", "a".repeat(9000)))),
        ("attack", line("GET /etc/passwd?format=%%%%&xss=\"><script>alert('xss');</script> HTTP/1.1")),
        ("old_version", "GET / HTTP/1.0\r\n\r\n".to_owned()),
        ("bad_version", line("GET / HTTP/9.8")),
        ("bad_protocol", line("GET / JUNK/1.0")),
        ("no_method", line(" / HTTP/1.1")),
        ("garbage", "\u{1}\u{2}\u{3}\r\n\r\n".to_owned()),
        ("no_host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned()),
        ("lower_case", "GET / HTTP/1.1\r\nhost: www\r\nconnection: close\r\n\r\n".to_owned()),
        ("bad_header", "GET / HTTP/1.1\r\nHost: www\r\nno colon here\r\nConnection: close\r\n\r\n".to_owned()),
    ]
}

#[derive(Serialize)]
pub struct Asked {
    answers: Vec<Answer>,
    /// Of the plain request, asked again and again: to the first byte of the answer.
    times_s: Vec<f64>,
}

#[derive(Serialize)]
struct Answer {
    request: &'static str,
    /// `None` where no connection came about.
    answer: Option<String>,
    /// Why there is no more of it.
    end: String,
}

pub fn ask(to: SocketAddr) -> Asked {
    let requests = requests();
    let mut times_s = Vec::new();
    if let Some((_, plain)) = requests.first() {
        for _ in 0..TIMED {
            match exchange(to, plain.as_bytes()) {
                Ok(Exchange { first_s: Some(first_s), .. }) => times_s.push(first_s),
                _ => break,
            }
        }
    }
    let mut answers = Vec::new();
    for (name, text) in &requests {
        answers.push(match exchange(to, text.as_bytes()) {
            Ok(exchange) => Answer { request: name, answer: Some(exchange.text()), end: exchange.end },
            Err(error) => Answer { request: name, answer: None, end: error.to_string() },
        });
        // What answers no plain request is no web server.
        if times_s.is_empty() {
            break;
        }
    }
    Asked { answers, times_s }
}

struct Exchange {
    bytes: Vec<u8>,
    first_s: Option<f64>,
    end: String,
}

impl Exchange {
    fn text(&self) -> String {
        self.bytes.iter().map(|byte| char::from(*byte)).collect()
    }
}

fn exchange(to: SocketAddr, request: &[u8]) -> io::Result<Exchange> {
    let mut stream = TcpStream::connect_timeout(&to, LIMIT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    let began = Instant::now();
    // A server may answer and close before it has all.
    let _ = stream.write_all(request);
    let mut exchange = Exchange { bytes: Vec::new(), first_s: None, end: "closed".to_owned() };
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(exchange),
            Ok(count) => {
                exchange.first_s.get_or_insert_with(|| began.elapsed().as_secs_f64());
                exchange.bytes.extend_from_slice(&piece[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                exchange.end = match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "silent".to_owned(),
                    io::ErrorKind::ConnectionReset => "reset".to_owned(),
                    _ => error.to_string(),
                };
                return Ok(exchange);
            }
        }
        if exchange.bytes.len() >= MOST_BYTES || began.elapsed() > LIMIT {
            exchange.end = "cut off".to_owned();
            return Ok(exchange);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn every_request_gets_its_answer() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let all = requests().len() + TIMED;
        let server = std::thread::spawn(move || {
            let mut first_lines = Vec::new();
            for _ in 0..all {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = [0; 16384];
                let count = stream.read(&mut head).unwrap();
                first_lines.push(head[..count.min(4)].to_vec());
                stream.write_all(b"HTTP/1.1 400 Bad\r\nX: \xff\r\n\r\n").unwrap();
            }
            first_lines
        });
        let asked = ask(to);
        assert_eq!((asked.times_s.len(), asked.answers.len()), (TIMED, all - TIMED));
        assert!(asked.answers.iter().all(|each| each.answer.as_deref().is_some_and(|text| text.contains('ÿ'))));
        let lines = server.join().unwrap();
        assert_eq!(&lines[TIMED + 1], b"HEAD");
        // Nobody listens any more.
        let nobody = ask(to);
        assert_eq!((nobody.answers.len(), &nobody.answers[0].answer), (1, &None));
    }
}
