//! The exchanges of one connection: which request the client is sending, which response the server, and whose the packets are.

use std::collections::VecDeque;

use super::mark::Mark;
use super::message::{begins_request, begins_response, Event, Head, Parser};
use super::steps::{Below, Sampling, Steps};
use super::waits::Sides;
use crate::flow::reassembly::Chunk;

/// Most requests without a response on one connection; one more is taken for a part of the last.
const MAX_PENDING: usize = 1024;
/// Most packets before the first request whose times are kept.
pub(super) const MAX_BEFORE: usize = 64;

/// How the bounds of an exchange were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delimited {
    #[default]
    /// The heads of request and response say where each ends, by length, chunks or the connection's end.
    Headers,
    /// TLS hides the heads: as `Direction`, of application data alone.
    Records,
    /// A head is not captured fully: the exchange ends where the client next sends after the server did.
    Direction,
}

impl Delimited {
    pub fn name(self) -> &'static str {
        match self {
            Delimited::Headers => "headers",
            Delimited::Records => "records",
            Delimited::Direction => "direction",
        }
    }
}

/// Packets of one side in an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Way {
    pub packets: u64,
    /// Packets on the wire that they stand for.
    pub wire_packets: u64,
    /// IP header and all that follows.
    pub bytes: u64,
    pub payload_bytes: u64,
}

impl Way {
    pub(super) fn add(&mut self, other: &Way) {
        self.packets += other.packets;
        self.wire_packets += other.wire_packets;
        self.bytes += other.bytes;
        self.payload_bytes += other.payload_bytes;
    }
}

/// A request and what answers it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// Place in [`super::Requests::connections`].
    pub connection: u32,
    /// From 0, in the connection.
    pub index: u32,
    pub method: Option<&'static str>,
    pub status: Option<u16>,
    /// First byte of the request.
    pub start_ns: Option<i64>,
    /// First byte of the final response; interim ones (100 Continue) do not count.
    pub response_start_ns: Option<i64>,
    /// The latest byte of the response, each at its first capture.
    pub response_end_ns: Option<i64>,
    /// The response's end was seen: by its head, by the next response, or by the server's FIN.
    pub complete: bool,
    pub delimited: Delimited,
    pub client: Way,
    pub server: Way,
    /// Where they are asked for, of all exchanges or of a sample.
    pub steps: Option<Box<Steps>>,
}

impl Exchange {
    fn mark(&mut self, mark: &Mark, sides: &mut Sides) {
        match &mut self.steps {
            Some(steps) => {
                sides.packet(mark, &mut steps.waits);
                steps.packet(mark);
            }
            None => sides.packet(mark, &mut Vec::new()),
        }
    }

    /// From the request's first byte to the response's first byte.
    pub fn time_to_first_byte_s(&self) -> Option<f64> {
        Some(self.response_start_ns?.saturating_sub(self.start_ns?) as f64 / 1e9)
    }

    /// From the request's first byte to the response's last byte.
    pub fn duration_s(&self) -> Option<f64> {
        let end = self.response_end_ns.filter(|_| self.complete)?;
        Some(end.saturating_sub(self.start_ns?) as f64 / 1e9)
    }
}

#[derive(Debug)]
struct Pending {
    row: Exchange,
    /// Something of the final response was seen.
    is_answered: bool,
}

#[derive(Debug, Default)]
pub(super) struct Exchanges {
    request: Parser,
    response: Parser,
    pending: VecDeque<Pending>,
    /// Place in `pending` of the exchange whose response is under way, or comes next.
    answering: usize,
    next_index: u32,
    /// Packets before the first request: the handshake.
    before: [Way; 2],
    /// When the response that is under way began, until its head says whether it is the final one.
    response_began_ns: Option<i64>,
    /// TCP's number of its first byte.
    response_sequence: u32,
    /// Place in `pending` that the packet at hand first gave payload to.
    touched: Option<usize>,
    /// Set where steps are asked for.
    sampling: Option<Sampling>,
    /// The connection speaks TLS.
    pub is_encrypted: bool,
    /// Exchanges that began to keep their packets, since this was last asked.
    lists: usize,
    /// Packets before the first request, as `before`.
    marks_before: Vec<Mark>,
    /// What both ends wait for, where steps are asked for.
    sides: Sides,
}

impl Exchanges {
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Steps are asked for: `connection` gives the hash of the connection's ends.
    pub fn sample(&mut self, connection: impl FnOnce() -> u64, below: Below) {
        let connection = self.sampling.map_or_else(connection, |sampling| sampling.connection);
        self.sampling = Some(Sampling { connection, below });
    }

    /// How many exchanges began to keep their packets since this was last asked.
    pub fn lists_begun(&mut self) -> usize {
        std::mem::take(&mut self.lists)
    }

    /// Bytes of the client. `done` takes exchanges that nothing can be added to.
    pub fn request_bytes(&mut self, chunk: &Chunk, mut done: impl FnMut(Exchange)) {
        if self.request.is_unknown() && chunk.begins_segment {
            let goes_on = if chunk.captured.is_empty() {
                !self.pending.back().is_some_and(|last| last.is_answered)
            } else {
                !begins_request(chunk.captured)
            };
            if !goes_on {
                self.request.begin_anew();
            }
        }
        let mut at = 0;
        let mut bytes = chunk.captured;
        while !bytes.is_empty() {
            let (used, event) = self.request.step(bytes, None, false);
            bytes = bytes.get(used..).unwrap_or_default();
            self.request_event(event, chunk, at, &mut done);
            at += used as u64;
            self.requested(used > 0, at, chunk);
        }
        let mut missing = chunk.missing;
        while missing > 0 {
            let (used, event) = self.request.skip(missing);
            missing = missing.saturating_sub(used);
            self.request_event(event, chunk, at, &mut done);
            at += used;
            self.requested(used > 0, at, chunk);
        }
        let last = self.pending.len().checked_sub(1);
        self.touched = self.touched.or(last);
    }

    /// Bytes of the last request were read, up to `read` bytes into the chunk.
    fn requested(&mut self, is_used: bool, read: u64, chunk: &Chunk) {
        if let Some(steps) = self.pending.back_mut().and_then(|last| last.row.steps.as_mut()).filter(|_| is_used) {
            let sequence = chunk.sequence.wrapping_add(read as u32);
            steps.request(chunk.position.saturating_add_unsigned(read), sequence, chunk.time_ns);
        }
    }

    /// `at`: how many bytes into the chunk it happened.
    fn request_event(&mut self, event: Option<Event>, chunk: &Chunk, at: u64, done: &mut impl FnMut(Exchange)) {
        let by_direction = self.by_direction();
        match event {
            Some(Event::Began) => self.begin(chunk, chunk.sequence.wrapping_add(at as u32), done),
            Some(Event::Head(head)) => {
                let is_cut = self.request.is_unknown();
                if let Some(last) = self.pending.back_mut() {
                    last.row.method = head.method;
                    if is_cut {
                        last.row.delimited = by_direction;
                    }
                }
                self.request.ends_now();
            }
            Some(Event::Ended) | None => {}
        }
        if self.request.is_unknown() {
            if let Some(last) = self.pending.back_mut() {
                last.row.delimited = by_direction;
            }
        }
    }

    fn by_direction(&self) -> Delimited {
        match self.is_encrypted {
            true => Delimited::Records,
            false => Delimited::Direction,
        }
    }

    fn begin(&mut self, chunk: &Chunk, sequence: u32, done: &mut impl FnMut(Exchange)) {
        if self.pending.len() >= MAX_PENDING {
            return;
        }
        if let Some(steps) = self.pending.back_mut().and_then(|last| last.row.steps.as_mut()) {
            steps.next_ns = chunk.time_ns;
        }
        while self.answering > 0 && !self.pending.is_empty() {
            // It is answered and no longer the last: no packet will belong to it.
            if let Some(first) = self.pending.pop_front() {
                done(first.row);
            }
            self.answering -= 1;
            self.touched = self.touched.map(|place| place.saturating_sub(1));
        }
        let [server, client] = std::mem::take(&mut self.before);
        let row = Exchange {
            connection: 0,
            index: self.next_index,
            method: None,
            status: None,
            start_ns: chunk.time_ns,
            response_start_ns: None,
            response_end_ns: None,
            complete: false,
            delimited: Delimited::Headers,
            client,
            server,
            steps: self.sampling.and_then(|sampling| Steps::begin(sequence, &sampling)),
        };
        self.next_index = self.next_index.saturating_add(1);
        self.lists += usize::from(row.steps.as_ref().is_some_and(|steps| steps.packets.is_some()));
        // One at a time is the rule: no room for four.
        self.pending.reserve_exact(1);
        self.pending.push_back(Pending { row, is_answered: false });
        self.touched = self.touched.or(Some(self.pending.len() - 1));
    }

    /// Bytes of the server.
    pub fn response_bytes(&mut self, chunk: &Chunk) {
        if self.response.is_unknown() && chunk.begins_segment {
            let next_waits = self.answering + 1 < self.pending.len();
            let is_interim = self.pending.get(self.answering).is_some_and(|now| !now.is_answered);
            let begins = if chunk.captured.is_empty() { next_waits } else { begins_response(chunk.captured) };
            if begins && (next_waits || is_interim) {
                self.response.begin_anew();
                if !is_interim {
                    self.answered();
                }
            }
        }
        let mut at = 0;
        let mut bytes = chunk.captured;
        while !bytes.is_empty() {
            if self.is_unasked() {
                return;
            }
            let method = self.pending.get(self.answering).and_then(|now| now.row.method);
            let (used, event) = self.response.step(bytes, method, true);
            bytes = bytes.get(used..).unwrap_or_default();
            let began = at;
            at += used as u64;
            self.response_event(event, began, (used > 0).then_some(at), chunk);
        }
        let mut missing = chunk.missing;
        while missing > 0 {
            if self.is_unasked() {
                return;
            }
            let (used, event) = self.response.skip(missing);
            missing = missing.saturating_sub(used);
            let began = at;
            at += used;
            self.response_event(event, began, (used > 0).then_some(at), chunk);
        }
    }

    /// The server sends without a request: such bytes are in no exchange.
    fn is_unasked(&self) -> bool {
        self.response.is_between() && self.answering >= self.pending.len()
    }

    /// `began`: how many bytes into the chunk it happened; `read`: where bytes were used, up to how many.
    fn response_event(&mut self, event: Option<Event>, began: u64, read: Option<u64>, chunk: &Chunk) {
        let place = self.answering;
        let (is_unknown, by_direction) = (self.response.is_unknown(), self.by_direction());
        let Some(now) = self.pending.get_mut(place) else { return };
        if event == Some(Event::Began) {
            self.response_began_ns = chunk.time_ns;
            self.response_sequence = chunk.sequence.wrapping_add(began as u32);
        }
        if let Some(read) = read {
            if let Some(steps) = &mut now.row.steps {
                let sequence = chunk.sequence.wrapping_add(read as u32);
                steps.response(chunk.position.saturating_add_unsigned(read), sequence);
            }
            self.touched = self.touched.or(Some(place));
            now.row.response_end_ns = now.row.response_end_ns.max(chunk.time_ns);
        }
        if is_unknown {
            now.row.delimited = by_direction;
        }
        match event {
            Some(Event::Head(head)) => self.response_head(&head),
            // Nothing of the head is captured.
            Some(Event::Began) if is_unknown => self.response_head(&Head::default()),
            Some(Event::Ended) => self.answered(),
            _ => {}
        }
    }

    fn response_head(&mut self, head: &Head) {
        let (began_ns, sequence) = (self.response_began_ns, self.response_sequence);
        let Some(now) = self.pending.get_mut(self.answering) else { return };
        if head.is_interim() {
            now.row.response_end_ns = None;
            self.response.ends_now();
            return;
        }
        now.is_answered = true;
        now.row.status = head.status;
        now.row.response_start_ns = began_ns;
        if let Some(steps) = &mut now.row.steps {
            steps.response_sequence = Some(sequence);
        }
        if self.response.ends_now() {
            self.answered();
        }
    }

    fn answered(&mut self) {
        if let Some(now) = self.pending.get_mut(self.answering) {
            now.row.complete = true;
            self.answering += 1;
        }
    }

    /// The server says that it sends no more.
    pub fn server_closed(&mut self) {
        let ends_here = self.response.is_until_close() || self.response.is_unknown();
        if ends_here && self.pending.get(self.answering).is_some_and(|now| now.is_answered) {
            self.answered();
            self.response.begin_anew();
        }
    }

    /// A packet that acknowledges all of the other side's payload before `position`.
    pub fn acknowledged(&mut self, from_client: bool, position: i64, time_ns: Option<i64>) {
        for steps in self.pending.iter_mut().filter_map(|pending| pending.row.steps.as_mut()) {
            steps.acknowledged(from_client, position, time_ns);
        }
    }

    /// As [`Exchanges::before`], of steps.
    pub fn mark_before(&mut self, mark: &Mark) {
        match self.pending.front_mut() {
            Some(first) => first.row.mark(mark, &mut self.sides),
            None if self.marks_before.len() < MAX_BEFORE => self.marks_before.push(*mark),
            None => {}
        }
    }

    /// Counts packets from before the first request.
    pub fn before(&mut self, from_client: bool, way: &Way) {
        self.before[usize::from(from_client)].add(way);
        if let Some(first) = self.pending.front_mut() {
            let [server, client] = std::mem::take(&mut self.before);
            first.row.client.add(&client);
            first.row.server.add(&server);
        }
    }

    /// Counts a packet for its exchange: the one that it first brings new payload of; else, from the client or with payload
    /// seen before, the one whose response is under way, or the last.
    pub fn packet(&mut self, from_client: bool, way: &Way, mark: Option<&Mark>) {
        let last = self.pending.len().saturating_sub(1);
        let place = self.touched.take().unwrap_or(self.answering).min(last);
        if let Some(mark) = mark {
            let owner = self.repeated(mark).unwrap_or(place);
            match self.pending.get_mut(owner) {
                Some(owner) => {
                    for before in std::mem::take(&mut self.marks_before) {
                        owner.row.mark(&before, &mut self.sides);
                    }
                    owner.row.mark(mark, &mut self.sides);
                }
                None => self.mark_before(mark),
            }
        }
        match self.pending.get_mut(place) {
            Some(owner) if from_client => owner.row.client.add(way),
            Some(owner) => owner.row.server.add(way),
            None => self.before[usize::from(from_client)].add(way),
        }
    }

    /// Place in `pending` of the exchange whose answer a packet repeats: of pipelined ones it may be another than that under way.
    fn repeated(&self, mark: &Mark) -> Option<usize> {
        if mark.from_client || !mark.is_repeat || mark.payload_bytes == 0 {
            return None;
        }
        let ends_behind =
            |pending: &Pending| pending.row.steps.as_ref().is_some_and(|steps| steps.has_answer_behind(mark.position));
        self.pending.iter().position(ends_behind)
    }

    /// Gives up what is left.
    pub fn finish(self, done: impl FnMut(Exchange)) {
        self.pending.into_iter().map(|pending| pending.row).for_each(done);
    }
}
