//! Where the fields of an event are: tracefs's `format` files (kernel documentation: trace/events.rst).

use crate::failure::{Failure, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    pub bytes: usize,
    /// Its content is elsewhere in the event: length and offset are here (`__data_loc`).
    pub elsewhere: bool,
}

pub struct Format<'a>(&'a str);

impl<'a> Format<'a> {
    pub fn new(text: &'a str) -> Self {
        Format(text)
    }

    /// The number that the event has in the buffer.
    pub fn id(&self) -> Outcome<u16> {
        let id = self.0.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        id.ok_or_else(|| Failure::new("a tracefs event without a number"))
    }

    /// Its line: `field:TYPE NAME[...]; offset:N; size:N; signed:N;`.
    pub fn field(&self, name: &str) -> Outcome<Field> {
        self.find(name).ok_or_else(|| Failure::new(format!("a tracefs event without the field {name}")))
    }

    fn find(&self, name: &str) -> Option<Field> {
        for line in self.0.lines() {
            let Some(declared) = line.trim_start().strip_prefix("field:") else {
                continue;
            };
            let mut parts = declared.split(';').map(str::trim);
            let declaration = parts.next()?;
            let plain = declaration.split('[').next()?;
            let last = |text: &str| text.split_whitespace().last() == Some(name);
            // `char comm[16]`, or `__data_loc char[] comm`
            if !last(plain) && !last(declaration) {
                continue;
            }
            let mut sizes = parts.filter_map(|part| part.split_once(':'));
            let offset = sizes.find(|(key, _)| *key == "offset")?.1.parse().ok()?;
            let bytes = sizes.find(|(key, _)| *key == "size")?.1.parse().ok()?;
            return Some(Field { offset, bytes, elsewhere: declaration.starts_with("__data_loc") });
        }
        None
    }
}

impl Field {
    fn content<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        let here = event.get(self.offset..self.offset.checked_add(self.bytes)?)?;
        if !self.elsewhere {
            return Some(here);
        }
        let place = u32::from_ne_bytes(here.try_into().ok()?);
        let (offset, bytes) = ((place & 0xffff) as usize, (place >> 16) as usize);
        event.get(offset..offset + bytes)
    }

    pub fn signed(&self, event: &[u8]) -> Option<i64> {
        let content = self.content(event)?;
        match content.len() {
            4 => Some(i32::from_ne_bytes(content.try_into().ok()?).into()),
            8 => Some(i64::from_ne_bytes(content.try_into().ok()?)),
            _ => None,
        }
    }

    pub fn thread(&self, event: &[u8]) -> Option<u32> {
        u32::try_from(self.signed(event)?).ok()
    }

    /// The text up to the first NUL.
    pub fn text(&self, event: &[u8]) -> Option<Vec<u8>> {
        self.content(event)?.split(|byte| *byte == 0).next().map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENAME: &str = "name: task_rename
ID: 204
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char oldcomm[16];\toffset:12;\tsize:16;\tsigned:0;
\tfield:__data_loc char[] newcomm;\toffset:28;\tsize:4;\tsigned:0;
";

    #[test]
    fn fields_are_found_by_name() {
        let format = Format::new(RENAME);
        assert_eq!(format.id().unwrap(), 204);
        assert_eq!(format.field("oldcomm").unwrap(), Field { offset: 12, bytes: 16, elsewhere: false });
        assert!(format.field("newcomm").unwrap().elsewhere);
        assert!(format.field("comm").is_err());
    }

    #[test]
    fn what_is_not_there_is_none() {
        let field = Field { offset: 12, bytes: 16, elsewhere: false };
        assert_eq!(field.text(&[0; 27]), None);
        let field = Field { offset: 0, bytes: 4, elsewhere: true };
        assert_eq!(field.text(&(4u32 << 16 | 4).to_ne_bytes()), None);
    }
}
