//! What a controller sends to the probe, as the probe reads it: frames and the requests in them.
#![no_main]
#![allow(dead_code, reason = "the probe's own files, of which reading is tried")]

#[path = "../../../probe/src/failure.rs"]
mod failure;
#[path = "../../../probe/src/frame.rs"]
mod frame;
#[path = "../../../probe/src/request.rs"]
mod request;

use frame::{read_frame, Kind, MAX_PAYLOAD_BYTES};
use request::parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Ok(read) = read_frame(&mut rest) {
        assert!(read.payload.len() <= MAX_PAYLOAD_BYTES.min(data.len()));
        let refused = match read.kind {
            Kind::Exec => parse::<request::Exec>("exec", &read.payload).err(),
            Kind::Signal => parse::<request::Signal>("signal", &read.payload).err(),
            Kind::Read | Kind::List => parse::<request::Path>("path", &read.payload).err(),
            Kind::Write => parse::<request::Write>("write", &read.payload).err(),
            Kind::Listening => parse::<request::Listening>("listening", &read.payload).err(),
            Kind::Usage => parse::<request::UsageOf>("usage", &read.payload).err(),
            Kind::Release => parse::<request::Release>("release", &read.payload).err(),
            _ => None,
        };
        assert!(refused.is_none_or(|failure| !failure.message.is_empty()));
    }
});
