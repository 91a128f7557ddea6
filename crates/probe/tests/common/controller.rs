//! A controller's side of the protocol, written from its specification rather than with the probe's
//! own code, and small enough to trust.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{json, Value};

use super::LIMIT;

pub const EXEC: u8 = 0x10;
pub const STDIN: u8 = 0x11;
pub const SIGNAL: u8 = 0x12;
pub const READ: u8 = 0x13;
pub const WRITE: u8 = 0x14;
pub const LIST: u8 = 0x15;
pub const LISTENING: u8 = 0x16;
pub const PING: u8 = 0x17;
pub const USAGE: u8 = 0x19;
pub const POWEROFF: u8 = 0x18;
pub const RELEASE: u8 = 0x1a;
pub const RESUMED: u8 = 0x1b;
pub const REACH: u8 = 0x1d;
pub const STARTED: u8 = 0x20;
pub const STDOUT: u8 = 0x21;
pub const STDERR: u8 = 0x22;
pub const EXIT: u8 = 0x23;
pub const DATA: u8 = 0x24;
pub const END: u8 = 0x25;
pub const ERROR: u8 = 0x2f;

pub type Frame = (u8, Vec<u8>);
type Routes = Arc<Mutex<(HashMap<u32, Sender<Frame>>, bool)>>;

pub struct Controller {
    stream: Arc<Mutex<UnixStream>>,
    routes: Routes,
    zero: Mutex<Receiver<Frame>>,
    next: Mutex<u32>,
    pub hello: Value,
}

pub struct Channel {
    pub number: u32,
    frames: Receiver<Frame>,
    stream: Arc<Mutex<UnixStream>>,
}

#[derive(Debug)]
pub struct Ended {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: Value,
}

impl Controller {
    pub fn new(stream: UnixStream) -> Self {
        let mut input = stream.try_clone().unwrap();
        let routes = Routes::default();
        let (sender, zero) = channel();
        routes.lock().unwrap().0.insert(0, sender);
        let reading = Arc::clone(&routes);
        std::thread::spawn(move || {
            while let Some((number, frame)) = read_frame(&mut input) {
                let routes = reading.lock().unwrap();
                routes.0[&number].send(frame).ok();
            }
            let mut routes = reading.lock().unwrap();
            routes.0.clear();
            routes.1 = true;
        });
        let (kind, hello) = zero.recv_timeout(LIMIT).expect("no HELLO");
        assert_eq!(kind, 0x01, "{}", String::from_utf8_lossy(&hello));
        Controller {
            stream: Arc::new(Mutex::new(stream)),
            routes,
            zero: Mutex::new(zero),
            next: Mutex::new(1),
            hello: serde_json::from_slice(&hello).unwrap(),
        }
    }

    pub fn open(&self, kind: u8, body: Value) -> Channel {
        let mut next = self.next.lock().unwrap();
        let number = *next;
        *next += 1;
        drop(next);
        let (sender, frames) = channel();
        let mut routes = self.routes.lock().unwrap();
        assert!(!routes.1, "the agent has gone");
        routes.0.insert(number, sender);
        drop(routes);
        let channel = Channel { number, frames, stream: Arc::clone(&self.stream) };
        channel.send(kind, body.to_string().as_bytes());
        channel
    }

    pub fn ask(&self, kind: u8, body: Value) -> Result<Value, Value> {
        self.open(kind, body).answer()
    }

    pub fn exec(&self, argv: &[&str]) -> Channel {
        self.open(EXEC, json!({ "argv": argv }))
    }

    pub fn run(&self, argv: &[&str]) -> Ended {
        self.exec(argv).finish()
    }

    pub fn sh(&self, script: &str) -> String {
        let ended = self.run(&["sh", "-c", script]);
        assert_eq!(ended.exit["code"], 0, "{script}: {ended:?}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// The next frame on channel 0, after HELLO.
    pub fn zero(&self) -> Option<Frame> {
        self.zero.lock().unwrap().recv_timeout(LIMIT).ok()
    }

    pub fn hang_up(&self) {
        self.shut_down().unwrap();
    }

    /// As `hang_up`, where the other side may have gone already.
    pub fn shut_down(&self) -> std::io::Result<()> {
        self.stream.lock().unwrap().shutdown(std::net::Shutdown::Both)
    }

    pub fn send(&self, number: u32, kind: u8, payload: &[u8]) {
        send(&self.stream, number, kind, payload);
    }

    pub fn send_raw(&self, bytes: &[u8]) {
        self.stream.lock().unwrap().write_all(bytes).unwrap();
    }
}

impl Channel {
    pub fn send(&self, kind: u8, payload: &[u8]) {
        send(&self.stream, self.number, kind, payload);
    }

    pub fn next(&self) -> Frame {
        self.frames.recv_timeout(LIMIT).expect("no frame")
    }

    pub fn try_next(&self, limit: Duration) -> Option<Frame> {
        self.frames.recv_timeout(limit).ok()
    }

    pub fn expect(&self, kind: u8) -> Value {
        let (received, payload) = self.next();
        assert_eq!(received, kind, "{}", String::from_utf8_lossy(&payload));
        serde_json::from_slice(&payload).unwrap()
    }

    /// END's or ERROR's body.
    pub fn answer(&self) -> Result<Value, Value> {
        let (kind, payload) = self.next();
        let body = serde_json::from_slice(&payload).unwrap();
        match kind {
            END => Ok(body),
            ERROR => Err(body),
            other => panic!("frame of kind {other:#x}"),
        }
    }

    /// DATA until END.
    pub fn data(&self) -> (Vec<u8>, Value) {
        let mut bytes = Vec::new();
        loop {
            match self.next() {
                (DATA, payload) => bytes.extend(payload),
                (END, body) => return (bytes, serde_json::from_slice(&body).unwrap()),
                (kind, body) => panic!("{kind:#x}: {}", String::from_utf8_lossy(&body)),
            }
        }
    }

    /// From STARTED to EXIT.
    pub fn finish(&self) -> Ended {
        self.expect(STARTED);
        self.drain()
    }

    /// To EXIT.
    pub fn drain(&self) -> Ended {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            match self.next() {
                (STDOUT, bytes) => stdout.extend(bytes),
                (STDERR, bytes) => stderr.extend(bytes),
                (EXIT, body) => return Ended { stdout, stderr, exit: serde_json::from_slice(&body).unwrap() },
                (kind, body) => panic!("{kind:#x}: {}", String::from_utf8_lossy(&body)),
            }
        }
    }
}

fn send(stream: &Mutex<UnixStream>, number: u32, kind: u8, payload: &[u8]) {
    write_frame(&mut stream.lock().unwrap(), number, kind, payload);
}

pub fn write_frame(output: &mut UnixStream, number: u32, kind: u8, payload: &[u8]) {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.extend(number.to_le_bytes());
    bytes.push(kind);
    bytes.extend(payload);
    output.write_all(&bytes).unwrap();
}

/// (channel, (kind, payload)), or nothing where the stream has ended.
pub fn read_frame(input: &mut UnixStream) -> Option<(u32, Frame)> {
    let mut header = [0; 9];
    input.read_exact(&mut header).ok()?;
    let length = u32::from_le_bytes(header[..4].try_into().unwrap()) as usize;
    let number = u32::from_le_bytes(header[4..8].try_into().unwrap());
    let mut payload = vec![0; length];
    input.read_exact(&mut payload).ok()?;
    Some((number, (header[8], payload)))
}
