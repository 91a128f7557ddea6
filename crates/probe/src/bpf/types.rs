//! The running kernel's types: where the members of its structures are, and the types of its tracepoints.
//!
//! Read from /sys/kernel/btf/vmlinux (Documentation/bpf/btf.rst of Linux): a header, types one behind the other, and names.

use crate::failure::{Failure, Outcome, Tried};

const FILE: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
const INTEGER: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const FUNCTION_PROTOTYPE: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const DECLARATION_TAG: u32 = 17;
const ENUM_64: u32 = 19;
const TYPE_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;

pub struct Types {
    content: Vec<u8>,
    names: usize,
    /// Where each type is; the first is void, which is nowhere.
    places: Vec<usize>,
}

impl Types {
    pub fn of_kernel() -> Outcome<Types> {
        let content = std::fs::read(FILE).tried(|| format!("read {FILE}"))?;
        Types::parse(content).ok_or_else(|| Failure::new(format!("{FILE} is not what is known of BTF")))
    }

    fn parse(content: Vec<u8>) -> Option<Types> {
        if half(&content, 0)? != MAGIC {
            return None;
        }
        let header = word(&content, 4)? as usize;
        let (types, bytes) = (header + word(&content, 8)? as usize, word(&content, 12)? as usize);
        let names = header + word(&content, 16)? as usize;
        let mut places = vec![0];
        let mut at = types;
        while at < types + bytes {
            places.push(at);
            let info = word(&content, at + 4)?;
            let count = (info & 0xffff) as usize;
            at += TYPE_BYTES
                + match info >> 24 & 0x1f {
                    INTEGER | VARIABLE | DECLARATION_TAG => 4,
                    ARRAY => 12,
                    STRUCT | UNION | SECTION | ENUM_64 => count * MEMBER_BYTES,
                    ENUM | FUNCTION_PROTOTYPE => count * 8,
                    _ => 0,
                };
        }
        Some(Types { content, names, places })
    }

    fn kind(&self, at: usize) -> Option<u32> {
        Some(word(&self.content, at + 4)? >> 24 & 0x1f)
    }

    fn is_named(&self, at: usize, name: &str) -> bool {
        let Ok(offset) = word(&self.content, at).ok_or(()) else { return false };
        let text = &self.content[(self.names + offset as usize).min(self.content.len())..];
        text.starts_with(name.as_bytes()) && text.get(name.len()) == Some(&0)
    }

    fn find(&self, kind: u32, name: &str) -> Option<usize> {
        (1..self.places.len()).find(|number| {
            let at = self.places[*number];
            self.kind(at) == Some(kind) && self.is_named(at, name)
        })
    }

    /// The number of the type that programs on the tracepoint are loaded for.
    pub fn tracepoint(&self, name: &str) -> Outcome<u32> {
        let found = self.find(TYPEDEF, &format!("btf_trace_{name}"));
        found.map(|number| number as u32).ok_or_else(|| Failure::new(format!("this kernel has no tracepoint {name}")))
    }

    /// Bytes from the start of a structure to a member, also of one without a name inside it.
    pub fn offset(&self, structure: &str, member: &str) -> Outcome<i16> {
        let found = self.find(STRUCT, structure).and_then(|number| self.offset_in(self.places[number], member));
        let absent = || Failure::new(format!("this kernel's {structure} has no {member}"));
        found.and_then(|bytes| i16::try_from(bytes).ok()).ok_or_else(absent)
    }

    fn offset_in(&self, at: usize, member: &str) -> Option<u32> {
        let info = word(&self.content, at + 4)?;
        let has_bit_fields = info >> 31 == 1;
        for number in 0..(info & 0xffff) as usize {
            let of = at + TYPE_BYTES + number * MEMBER_BYTES;
            let bits = word(&self.content, of + 8)? & if has_bit_fields { 0xff_ffff } else { u32::MAX };
            if self.is_named(of, member) {
                return Some(bits / 8);
            }
            let inner = *self.places.get(word(&self.content, of + 4)? as usize)?;
            if self.is_named(of, "") && matches!(self.kind(inner), Some(STRUCT | UNION)) {
                if let Some(further) = self.offset_in(inner, member) {
                    return Some(bits / 8 + further);
                }
            }
        }
        None
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct outer { int first; union { long second; struct { int third; int fourth; }; }; }` and `typedef outer
    /// btf_trace_it`, by the tables of Documentation/bpf/btf.rst.
    fn small() -> Vec<u8> {
        let names = b"\0outer\0first\0second\0third\0fourth\0btf_trace_it\0int\0long\0";
        let name = |text: &str| {
            let all = String::from_utf8_lossy(names);
            all.find(&format!("\0{text}\0")).unwrap() as u32 + 1
        };
        let info = |kind: u32, count: u32| kind << 24 | count;
        let types: Vec<u32> = [
            vec![name("int"), info(INTEGER, 0), 4, 32],                              // 1
            vec![name("long"), info(INTEGER, 0), 8, 64],                             // 2
            vec![0, info(STRUCT, 2), 8, name("third"), 1, 0, name("fourth"), 1, 32], // 3
            vec![0, info(UNION, 2), 8, name("second"), 2, 0, 0, 3, 0],               // 4
            vec![name("outer"), info(STRUCT, 2), 16, name("first"), 1, 0, 0, 4, 64], // 5
            vec![name("btf_trace_it"), info(TYPEDEF, 0), 5],                         // 6
        ]
        .concat();
        let bytes = types.len() as u32 * 4;
        let header = [u32::from(MAGIC) | 1 << 16, 24, 0, bytes, bytes, names.len() as u32];
        let words = header.iter().chain(&types).flat_map(|word| word.to_ne_bytes());
        words.chain(names.iter().copied()).collect()
    }

    #[test]
    fn finds_members_also_of_structures_without_a_name() {
        let types = Types::parse(small()).unwrap();
        let offsets = ["first", "second", "third", "fourth"].map(|member| types.offset("outer", member).unwrap());
        assert_eq!(offsets, [0, 8, 8, 12]);
        assert_eq!(types.tracepoint("it").unwrap(), 6);
        assert_eq!(types.tracepoint("other").unwrap_err().message, "this kernel has no tracepoint other");
        assert_eq!(types.offset("outer", "fifth").unwrap_err().message, "this kernel's outer has no fifth");
    }

    #[test]
    fn what_is_cut_or_something_else_is_refused() {
        let whole = small();
        for bytes in 0..whole.len() {
            if let Some(types) = Types::parse(whole[..bytes].to_vec()) {
                let _ = (types.offset("outer", "fourth"), types.tracepoint("it"));
            }
        }
        assert!(Types::parse(b"\x7fELF and more of it, which is no BTF".to_vec()).is_none());
    }
}
