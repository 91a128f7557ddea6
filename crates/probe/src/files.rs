//! READ, WRITE and LIST.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::failure::{Outcome, Tried};
use crate::frame::{Buffer, Kind};
use crate::inbox::Inbox;
use crate::request::{self, Bytes, Entry, Listing};
use crate::session::Session;

const CHUNK_BYTES: usize = 256 * 1024;
const DEFAULT_MODE: u32 = 0o644;

/// Sends the file's bytes as DATA; the answer is how many there were.
pub fn read(session: &Session, channel: u32, path: &str) -> Outcome<Bytes> {
    let mut file = File::open(path).tried(|| format!("open {path}"))?;
    let mut buffer = Buffer::new(CHUNK_BYTES);
    let mut bytes = 0;
    loop {
        let length = file.read(buffer.payload()).tried(|| format!("read {path}"))?;
        if length == 0 {
            return Ok(Bytes { bytes });
        }
        session.send_buffer(channel, Kind::Data, &mut buffer, length);
        bytes += length as u64;
    }
}

/// Writes what comes through `inbox` over what was there.
pub fn write(request: &request::Write, inbox: &Inbox) -> Outcome<Bytes> {
    let path = &request.path;
    if let (true, Some(parent)) = (request.parents, Path::new(path).parent()) {
        fs::create_dir_all(parent).tried(|| format!("create folder {}", parent.display()))?;
    }
    let mode = request.mode.unwrap_or(DEFAULT_MODE);
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path)
        .tried(|| format!("create {path}"))?;
    // Neither the umask nor the mode of a file that was there before counts. Without a given mode the mode is left alone: a
    // setting in /proc refuses to have one set.
    if request.mode.is_some() {
        file.set_permissions(fs::Permissions::from_mode(mode)).tried(|| format!("set mode {mode:o} of {path}"))?;
    }
    let mut bytes = 0;
    while let Some(chunk) = inbox.take() {
        file.write_all(&chunk).tried(|| format!("write {path}"))?;
        bytes += chunk.len() as u64;
    }
    Ok(Bytes { bytes })
}

/// The folder's entries by name. One that vanishes meanwhile is left out.
pub fn list(path: &str) -> Outcome<Listing> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).tried(|| format!("list {path}"))? {
        let entry = entry.tried(|| format!("list {path}"))?;
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let kind = metadata.file_type();
        entries.push(Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: metadata.len(),
            kind: if kind.is_file() {
                "file"
            } else if kind.is_dir() {
                "dir"
            } else if kind.is_symlink() {
                "symlink"
            } else {
                "other"
            },
        });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Listing { entries })
}
