//! The calls and programs of one trace, by small numbers: what is counted is numbers, what leaves is names.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::architecture::Architecture;

/// A system call of one trace: below [`CallNames::NAMED`] its number on the trace's architecture, from there on a name
/// that no number of it has.
pub type Call = u16;

/// The calls of one trace.
pub struct CallNames {
    architecture: Architecture,
    /// From [`CallNames::NAMED`] on.
    named: Vec<Box<str>>,
    calls: HashMap<Box<[u8]>, Call, RandomState>,
}

impl CallNames {
    pub const NAMED: Call = 1024;
    /// Calls from here on are never handed out: counting marks with them what is no call.
    pub const END: Call = u16::MAX - 1;
    const LONGEST_BYTES: usize = 64;

    pub fn new(architecture: Architecture) -> Self {
        let calls = architecture.calls().map(|(number, name)| (name.as_bytes().into(), number)).collect();
        CallNames { architecture, named: Vec::new(), calls }
    }

    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Says whose numbers follow. Only before the first call.
    pub fn set_architecture(&mut self, architecture: Architecture) {
        if architecture != self.architecture {
            *self = CallNames::new(architecture);
        }
    }

    /// The call of a number; `None` when there are too many that no kernel has.
    #[inline]
    pub fn number(&mut self, number: u64) -> Option<Call> {
        match u16::try_from(number) {
            Ok(call) if call < Self::NAMED => Some(call),
            _ => self.odd_number(number),
        }
    }

    #[cold]
    fn odd_number(&mut self, number: u64) -> Option<Call> {
        let name = format!("syscall_{number}");
        match self.calls.get(name.as_bytes()) {
            Some(call) => Some(*call),
            None => self.add(&name),
        }
    }

    /// The call of a name. `syscall_0x1b7` and `syscall_439` stand for numbers without a name.
    /// `None` for what cannot be a name, and when there are too many.
    #[inline]
    pub fn name(&mut self, name: &[u8]) -> Option<Call> {
        match self.calls.get(name) {
            Some(call) => Some(*call),
            None => self.new_name(name),
        }
    }

    /// A call that the table has or that has been seen.
    pub fn known(&self, name: &[u8]) -> Option<Call> {
        self.calls.get(name).copied()
    }

    #[cold]
    fn new_name(&mut self, name: &[u8]) -> Option<Call> {
        if name.len() > Self::LONGEST_BYTES {
            return None;
        }
        let text = std::str::from_utf8(name).ok()?;
        let call = match numbered(text) {
            Some(number) => self.number(number)?,
            None => return self.add(text),
        };
        // Only spellings of the numbers that kernels have, so few.
        if call < Self::NAMED {
            self.calls.insert(name.into(), call);
        }
        Some(call)
    }

    fn add(&mut self, name: &str) -> Option<Call> {
        let call = u16::try_from(self.named.len()).ok()?.checked_add(Self::NAMED)?;
        if call >= Self::END {
            return None;
        }
        self.named.push(name.into());
        self.calls.insert(name.as_bytes().into(), call);
        Some(call)
    }

    /// The calls that end a thread.
    pub fn exits(&self) -> [Option<Call>; 2] {
        [self.known(b"exit"), self.known(b"exit_group")]
    }

    /// How a call is called; numbers without a name are `syscall_N`.
    pub fn of(&self, call: Call) -> String {
        let named = || self.named.get(usize::from(call.checked_sub(Self::NAMED)?));
        match (self.architecture.call(u64::from(call)), named()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(name)) => name.to_string(),
            (None, None) => format!("syscall_{call}"),
        }
    }
}

fn numbered(name: &str) -> Option<u64> {
    let number = name.strip_prefix("syscall_")?;
    match number.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None => number.parse().ok(),
    }
}

/// The programs of one trace, as the kernel names them (15 bytes, TASK_COMM_LEN).
#[derive(Default)]
pub struct Programs {
    names: Vec<Box<str>>,
    index: HashMap<Box<[u8]>, Program, RandomState>,
}

/// A program of one trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Program(u32);

impl Program {
    /// Where the trace does not say.
    pub const UNKNOWN: Program = Program(u32::MAX);

    pub fn index(self) -> Option<usize> {
        (self != Self::UNKNOWN).then_some(self.0 as usize)
    }
}

impl Programs {
    /// Names beyond this many (a damaged trace) are all unknown.
    const MOST: usize = 1 << 16;
    const LONGEST_BYTES: usize = 256;

    pub fn of(&mut self, name: &[u8]) -> Program {
        if let Some(program) = self.index.get(name) {
            return *program;
        }
        if self.names.len() >= Self::MOST || name.is_empty() || name.len() > Self::LONGEST_BYTES {
            return Program::UNKNOWN;
        }
        let program = Program(self.names.len() as u32);
        self.names.push(String::from_utf8_lossy(name).into());
        self.index.insert(name.into(), program);
        program
    }

    /// In the order of [`Program::index`].
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }
}
