//! Where HTTP/1.x messages begin and end in one direction of a connection (RFC 9112), from the bytes that are there.
//!
//! Where bytes of a head are missing, the message's end is unknown ([`Parser::is_unknown`]). Missing bytes of a body whose
//! length is known are passed over.

const METHODS: [&str; 16] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
];
/// What is kept of a line of a head.
const MAX_LINE_BYTES: usize = 512;

/// What a head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Head {
    pub method: Option<&'static str>,
    pub status: Option<u16>,
    content_length: Option<u64>,
    is_chunked: bool,
    has_transfer_coding: bool,
    is_wrong: bool,
}

impl Head {
    /// A response before the final one (RFC 9110, 15.2); 101 is final.
    pub fn is_interim(&self) -> bool {
        self.status.is_some_and(|status| (100..200).contains(&status) && status != 101)
    }

    /// How a request's body ends (RFC 9112, 6.3).
    fn request_body(&self) -> State {
        match self.content_length {
            _ if self.is_wrong => State::Unknown,
            _ if self.is_chunked => State::ChunkSize,
            _ if self.has_transfer_coding => State::Unknown,
            Some(length) => State::Length(length),
            None => State::Length(0),
        }
    }

    /// How a response's body ends, which depends on the request's method.
    fn response_body(&self, method: Option<&str>) -> State {
        let status = self.status.unwrap_or(0);
        match self.content_length {
            _ if status == 101 || method == Some("CONNECT") && (200..300).contains(&status) => State::UntilClose,
            _ if method == Some("HEAD") || (100..200).contains(&status) || status == 204 || status == 304 => {
                State::Length(0)
            }
            _ if self.is_wrong => State::Unknown,
            _ if self.is_chunked => State::ChunkSize,
            _ if self.has_transfer_coding => State::UntilClose,
            Some(length) => State::Length(length),
            None => State::UntilClose,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// The next byte begins a message.
    #[default]
    Between,
    StartLine,
    HeaderLine,
    /// Bytes of the body left.
    Length(u64),
    ChunkSize,
    /// Bytes of the chunk left.
    Chunk(u64),
    ChunkEnd,
    Trailer,
    UntilClose,
    /// Somewhere in a message whose end is not known.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Began,
    /// The head, or what was captured of it.
    Head(Head),
    Ended,
}

/// A direction's place in its messages.
#[derive(Debug, Default)]
pub(super) struct Parser {
    state: State,
    line: Vec<u8>,
    head: Head,
}

/// The request method that `bytes` begin with; cut short, they may be the start of one.
pub(super) fn begins_request(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| match bytes.get(..method.len()) {
        Some(start) => start == method.as_bytes() && bytes.get(method.len()).is_none_or(|&next| next == b' '),
        None => method.as_bytes().starts_with(bytes),
    })
}

pub(super) fn begins_response(bytes: &[u8]) -> bool {
    const VERSION: &[u8] = b"HTTP/1.";
    bytes.starts_with(VERSION) || VERSION.starts_with(bytes)
}

impl Parser {
    pub fn is_unknown(&self) -> bool {
        self.state == State::Unknown
    }

    /// The message lasts until its sender closes.
    pub fn is_until_close(&self) -> bool {
        self.state == State::UntilClose
    }

    pub fn is_between(&self) -> bool {
        self.state == State::Between
    }

    /// The message is over, for reasons outside its bytes.
    pub fn begin_anew(&mut self) {
        self.state = State::Between;
    }

    /// Reads on: how many of `bytes` (not empty) were used, and what they came to. `method` is that of the request which a
    /// response answers; `None` for requests.
    pub fn step(&mut self, bytes: &[u8], method: Option<&str>, is_response: bool) -> (usize, Option<Event>) {
        match self.state {
            State::Between => match bytes.first() {
                // Empty lines before a message are skipped (RFC 9112, 2.2).
                Some(b'\r' | b'\n') | None => (1.min(bytes.len()), None),
                Some(_) => {
                    self.state = State::StartLine;
                    self.head = Head::default();
                    self.line.clear();
                    (0, Some(Event::Began))
                }
            },
            State::Length(left) => self.body(left, bytes, Event::Ended),
            State::Chunk(left) => {
                let used = left.min(bytes.len() as u64);
                self.state = if used == left { State::ChunkEnd } else { State::Chunk(left - used) };
                (used as usize, None)
            }
            State::UntilClose | State::Unknown => (bytes.len(), None),
            State::StartLine | State::HeaderLine | State::ChunkSize | State::ChunkEnd | State::Trailer => {
                let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
                    self.keep(bytes);
                    return (bytes.len(), None);
                };
                self.keep(&bytes[..end]);
                let event = self.line_done(method, is_response);
                self.line.clear();
                (end + 1, event)
            }
        }
    }

    fn body(&mut self, left: u64, bytes: &[u8], end: Event) -> (usize, Option<Event>) {
        let used = left.min(bytes.len() as u64);
        if used == left {
            self.state = State::Between;
            return (used as usize, Some(end));
        }
        self.state = State::Length(left - used);
        (used as usize, None)
    }

    /// A body without bytes is over before the next one comes.
    pub fn ends_now(&mut self) -> bool {
        let is_over = self.state == State::Length(0);
        if is_over {
            self.state = State::Between;
        }
        is_over
    }

    /// Passes over `count` bytes (not 0) that are not there: how many were used, and what they came to.
    pub fn skip(&mut self, count: u64) -> (u64, Option<Event>) {
        match self.state {
            State::Between => {
                self.state = State::Unknown;
                self.head = Head::default();
                (0, Some(Event::Began))
            }
            State::Length(left) => {
                let used = left.min(count);
                if used == left {
                    self.state = State::Between;
                    return (used, Some(Event::Ended));
                }
                self.state = State::Length(left - used);
                (used, None)
            }
            State::Chunk(left) if count < left => {
                self.state = State::Chunk(left - count);
                (count, None)
            }
            State::StartLine | State::HeaderLine => {
                if self.state == State::StartLine {
                    self.start_line();
                }
                self.line.clear();
                self.state = State::Unknown;
                (count, Some(Event::Head(self.head)))
            }
            State::ChunkSize | State::Chunk(_) | State::ChunkEnd | State::Trailer => {
                self.state = State::Unknown;
                (count, None)
            }
            State::UntilClose | State::Unknown => (count, None),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn line_done(&mut self, method: Option<&str>, is_response: bool) -> Option<Event> {
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        match self.state {
            State::StartLine => {
                self.start_line();
                self.state = State::HeaderLine;
            }
            State::HeaderLine if self.line.is_empty() => {
                self.state = if is_response { self.head.response_body(method) } else { self.head.request_body() };
                return Some(Event::Head(self.head));
            }
            State::HeaderLine => self.header_line(),
            State::ChunkSize => {
                let digits = self.line.split(|&byte| byte == b';').next().unwrap_or_default();
                let size = std::str::from_utf8(digits).ok().and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
                self.state = match size {
                    Some(0) => State::Trailer,
                    Some(size) => State::Chunk(size),
                    None => State::Unknown,
                };
            }
            State::ChunkEnd => self.state = State::ChunkSize,
            State::Trailer if self.line.is_empty() => {
                self.state = State::Between;
                return Some(Event::Ended);
            }
            _ => {}
        }
        None
    }

    /// Reads what is there of a request line or status line.
    fn start_line(&mut self) {
        let mut words = self.line.split(|&byte| byte == b' ');
        let first = words.next().unwrap_or_default();
        if first.starts_with(b"HTTP/") {
            let digits = words.next().filter(|word| word.len() == 3);
            self.head.status = digits.and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
        } else if words.next().is_some() {
            self.head.method = METHODS.into_iter().find(|method| method.as_bytes() == first);
        }
    }

    fn header_line(&mut self) {
        let Some(colon) = self.line.iter().position(|&byte| byte == b':') else { return };
        let (name, value) = (&self.line[..colon], self.line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
            self.head.is_wrong |= length.is_none() || self.head.content_length.is_some_and(|old| Some(old) != length);
            self.head.content_length = length;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.head.has_transfer_coding = true;
            let last = value.rsplit(|&byte| byte == b',').next().unwrap_or_default().trim_ascii();
            self.head.is_chunked = last.eq_ignore_ascii_case(b"chunked");
        }
    }
}
