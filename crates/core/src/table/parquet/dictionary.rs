//! A column chunk's different values, which its pages then name by number.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

/// The values of a dictionary page, each once, as PLAIN bytes; a value's number is its place.
#[derive(Default)]
pub struct Dictionary {
    addresses: HashMap<IpAddr, u32, foldhash::fast::RandomState>,
    texts: HashMap<Box<str>, u32, foldhash::fast::RandomState>,
    reals: HashMap<u64, u32, foldhash::fast::RandomState>,
    pub values: Vec<u8>,
    pub count: u32,
}

fn entry<K: Hash + Eq>(
    entries: &mut HashMap<K, u32, foldhash::fast::RandomState>,
    key: K,
    count: &mut u32,
    write: impl FnOnce(&K),
) -> u32 {
    *entries.entry(key).or_insert_with_key(|key| {
        write(key);
        *count += 1;
        *count - 1
    })
}

impl Dictionary {
    pub fn clear(&mut self) {
        self.addresses.clear();
        self.texts.clear();
        self.reals.clear();
        self.values.clear();
        self.count = 0;
    }

    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(at) = self.texts.get(text) {
            return *at;
        }
        let values = &mut self.values;
        entry(&mut self.texts, text.into(), &mut self.count, |text| plain_text(values, text))
    }

    pub fn address(&mut self, address: IpAddr) -> u32 {
        let values = &mut self.values;
        entry(&mut self.addresses, address, &mut self.count, |address| plain_text(values, &address.to_string()))
    }

    pub fn real(&mut self, real: u64) -> u32 {
        let values = &mut self.values;
        entry(&mut self.reals, real, &mut self.count, |real| values.extend_from_slice(&real.to_le_bytes()))
    }
}

fn plain_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
