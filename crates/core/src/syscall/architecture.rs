//! System-call numbers and names of an architecture. The tables are made by `tables/generate.py`.

use std::sync::OnceLock;

/// Whose numbers a trace holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Architecture {
    #[default]
    X86_64,
    /// The kernel's generic numbers, which riscv64 and loongarch64 share but for a few.
    Aarch64,
    /// x86's numbers of 32-bit programs.
    I386,
}

impl Architecture {
    pub const ALL: [Architecture; 3] = [Architecture::X86_64, Architecture::Aarch64, Architecture::I386];

    pub fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
            Architecture::I386 => "i386",
        }
    }

    /// As `uname -m` says it, which is i686 for x86 of 32 bits.
    pub fn of(machine: &str) -> Option<Self> {
        let machine = if machine == "i686" { "i386" } else { machine };
        Architecture::ALL.into_iter().find(|one| one.name() == machine)
    }

    /// The name of a number; `None` for a number that the kernel's headers do not name.
    pub fn call(self, number: u64) -> Option<&'static str> {
        let index = usize::try_from(number).ok()?;
        self.table().get(index).copied().filter(|name| !name.is_empty())
    }

    /// Numbers with their names, in order.
    pub fn calls(self) -> impl Iterator<Item = (u16, &'static str)> {
        (0_u16..).zip(self.table().iter().copied()).filter(|(_, name)| !name.is_empty())
    }

    /// Names by number; empty where there is none.
    fn table(self) -> &'static [&'static str] {
        static X86_64: OnceLock<Vec<&str>> = OnceLock::new();
        static AARCH64: OnceLock<Vec<&str>> = OnceLock::new();
        static I386: OnceLock<Vec<&str>> = OnceLock::new();
        match self {
            Architecture::X86_64 => X86_64.get_or_init(|| parsed(include_str!("tables/x86_64.txt"))),
            Architecture::Aarch64 => AARCH64.get_or_init(|| parsed(include_str!("tables/aarch64.txt"))),
            Architecture::I386 => I386.get_or_init(|| parsed(include_str!("tables/i386.txt"))),
        }
    }
}

fn parsed(text: &'static str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for line in text.lines() {
        let Some((number, name)) = line.split_once(' ') else { continue };
        let Ok(number) = number.parse::<u16>() else { continue };
        let number = usize::from(number);
        names.resize(names.len().max(number + 1), "");
        names[number] = name;
    }
    names
}
