//! The hello of a TLS client or server as the fingerprints JA3, JA3S and JA4.
//!
//! JA3 and JA3S (salesforce/ja3): MD5 of `version,ciphers,extensions,groups,point formats` and of `version,cipher,extensions`,
//! decimal numbers as they come. JA4 (FoxIO's technical details, BSD 3-clause): what is offered, in words, and truncated
//! SHA-256 of what is offered, sorted. JA3 and JA4 leave out GREASE (RFC 8701); JA3S has no such rule, and takes what it finds.
//!
//! A hello is read strictly, by RFC 8446 section 4.1 (that of older versions has the same form): where a length does not fit,
//! or a known extension is not what it must be, there is no fingerprint.

use std::fmt::Write as _;

use md5::{Digest, Md5};
use sha2::Sha256;

const SERVER_NAME: u16 = 0;
const GROUPS: u16 = 10;
const POINT_FORMATS: u16 = 11;
const SIGNATURE_ALGORITHMS: u16 = 13;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;
const RANDOM_BYTES: usize = 32;
const MAX_SESSION_BYTES: usize = 32;
const MOST_SHOWN: usize = 99;
/// JA4 of an empty list.
const NOTHING: &str = "000000000000";

/// What a client's hello gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub ja3: String,
    pub ja4: String,
}

/// Takes big-endian numbers and vectors off the front of bytes; `None` where there are too few.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.first_chunk().map(|two| u16::from_be_bytes(*two))
    }

    fn short(&mut self) -> Option<Fields<'a>> {
        let count = self.u8()?;
        self.bytes(count.into()).map(Fields)
    }

    fn long(&mut self) -> Option<Fields<'a>> {
        let count = self.u16()?;
        self.bytes(count.into()).map(Fields)
    }

    /// All of it as numbers of 16 bits.
    fn numbers(self) -> Option<Vec<u16>> {
        let (pairs, rest) = self.0.as_chunks();
        rest.is_empty().then(|| pairs.iter().map(|two| u16::from_be_bytes(*two)).collect())
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Kinds and contents; none where the hello ends before them, which it did before extensions were invented.
fn extensions<'a>(fields: &mut Fields<'a>) -> Option<Vec<(u16, &'a [u8])>> {
    let mut found = Vec::new();
    if !fields.0.is_empty() {
        let mut rest = fields.long()?;
        while !rest.0.is_empty() {
            found.push((rest.u16()?, rest.long()?.0));
        }
    }
    fields.end()?;
    Some(found)
}

/// The extension's list of 16-bit numbers; empty without the extension.
fn list(extensions: &[(u16, &[u8])], kind: u16, short: bool) -> Option<Vec<u16>> {
    let Some((_, content)) = extensions.iter().find(|(of, _)| *of == kind) else { return Some(Vec::new()) };
    let mut fields = Fields(content);
    let listed = if short { fields.short()? } else { fields.long()? };
    fields.end()?;
    listed.numbers()
}

/// RFC 8701: 0x0a0a, 0x1a1a, ... 0xfafa.
fn is_grease(number: u16) -> bool {
    let [high, low] = number.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}

fn without_grease(numbers: impl IntoIterator<Item = u16>) -> Vec<u16> {
    numbers.into_iter().filter(|number| !is_grease(*number)).collect()
}

/// The version, which both sides' hellos begin with; the random bytes and the session's name are passed over.
fn begun(fields: &mut Fields) -> Option<u16> {
    let version = fields.u16()?;
    fields.bytes(RANDOM_BYTES)?;
    (fields.short()?.0.len() <= MAX_SESSION_BYTES).then_some(version)
}

/// `hello` is the handshake message without its type and length. `None` of a malformed one.
pub fn client(hello: &[u8]) -> Option<Client> {
    let mut fields = Fields(hello);
    let version = begun(&mut fields)?;
    let ciphers = without_grease(fields.long()?.numbers()?);
    // Compression methods.
    fields.short()?;
    let extensions = extensions(&mut fields)?;
    let kinds = without_grease(extensions.iter().map(|(kind, _)| *kind));
    let groups = without_grease(list(&extensions, GROUPS, false)?);
    let formats = match extensions.iter().find(|(kind, _)| *kind == POINT_FORMATS) {
        Some((_, content)) => {
            let mut fields = Fields(content);
            let formats = fields.short()?.0;
            fields.end()?;
            formats
        }
        None => &[],
    };
    let ja3 = format!("{version},{},{},{},{}", decimal(&ciphers), decimal(&kinds), decimal(&groups), decimal(formats));
    let versions = without_grease(list(&extensions, SUPPORTED_VERSIONS, true)?);
    let algorithms = without_grease(list(&extensions, SIGNATURE_ALGORITHMS, false)?);
    let name = if kinds.contains(&SERVER_NAME) { 'd' } else { 'i' };
    let ja4 = format!(
        "t{}{name}{:02}{:02}{}_{}_{}",
        version_text(versions.into_iter().max().unwrap_or(version)),
        ciphers.len().min(MOST_SHOWN),
        kinds.len().min(MOST_SHOWN),
        protocol(&extensions)?,
        offered(ciphers, &[]),
        offered(kinds.into_iter().filter(|kind| ![SERVER_NAME, ALPN].contains(kind)).collect(), &algorithms),
    );
    Some(Client { ja3: hexadecimal(&Md5::digest(ja3)), ja4 })
}

/// JA3S; `hello` as that of [`client`].
pub fn server(hello: &[u8]) -> Option<String> {
    let mut fields = Fields(hello);
    let version = begun(&mut fields)?;
    let cipher = fields.u16()?;
    // The compression method.
    fields.u8()?;
    let kinds: Vec<u16> = extensions(&mut fields)?.into_iter().map(|(kind, _)| kind).collect();
    Some(hexadecimal(&Md5::digest(format!("{version},{cipher},{}", decimal(&kinds)))))
}

fn decimal<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join("-")
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        let written = write!(text, "{byte:02x}");
        debug_assert!(written.is_ok(), "a String takes all");
        text
    })
}

fn version_text(version: u16) -> &'static str {
    match version {
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        0x0002 => "s2",
        _ => "00",
    }
}

/// The first and last character of the first protocol, or of its hexadecimal digits where one of these is no letter or digit.
fn protocol(extensions: &[(u16, &[u8])]) -> Option<String> {
    let none = || Some("00".to_owned());
    let Some((_, content)) = extensions.iter().find(|(kind, _)| *kind == ALPN) else { return none() };
    let mut fields = Fields(content);
    let mut listed = fields.long()?;
    fields.end()?;
    if listed.0.is_empty() {
        return none();
    }
    let Fields(first) = listed.short()?;
    let (Some(&start), Some(&end)) = (first.first(), first.last()) else { return none() };
    Some(if start.is_ascii_alphanumeric() && end.is_ascii_alphanumeric() {
        [char::from(start), char::from(end)].iter().collect()
    } else {
        let digit = |four: u8| char::from_digit(four.into(), 16).unwrap_or('0');
        [digit(start >> 4), digit(end & 0x0f)].iter().collect()
    })
}

/// A hash of what is offered, sorted, and of `algorithms` as they come.
fn offered(mut numbers: Vec<u16>, algorithms: &[u16]) -> String {
    if numbers.is_empty() {
        return NOTHING.to_owned();
    }
    numbers.sort_unstable();
    let text = |numbers: &[u16]| numbers.iter().map(|number| format!("{number:04x}")).collect::<Vec<_>>().join(",");
    let mut hashed = text(&numbers);
    if !algorithms.is_empty() {
        hashed = format!("{hashed}_{}", text(algorithms));
    }
    let mut digest = hexadecimal(&Sha256::digest(hashed));
    digest.truncate(NOTHING.len());
    digest
}
