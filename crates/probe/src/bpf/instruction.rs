//! The parts of eBPF instructions (RFC 9669) by name, as far as this probe needs them.

pub type Register = u8;

/// Result of a call; R1 to R5 are its arguments and lost with it, R6 to R9 are kept.
pub const R0: Register = 0;
pub const R1: Register = 1;
pub const R2: Register = 2;
pub const R3: Register = 3;
pub const R4: Register = 4;
pub const R6: Register = 6;
pub const R7: Register = 7;
pub const R8: Register = 8;
pub const R9: Register = 9;
/// The end of the stack's 512 bytes, which lie below it.
pub const STACK: Register = 10;

/// Functions of the kernel, by their number in its ABI (include/uapi/linux/bpf.h).
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Function {
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    KtimeGetNs = 5,
    PrandomU32 = 7,
    CurrentPidTgid = 14,
    CurrentComm = 16,
    CurrentTaskUnderCgroup = 37,
    MapPop = 88,
    ProbeReadKernel = 113,
    NsCurrentPidTgid = 120,
    RingbufOutput = 130,
    RingbufQuery = 134,
    CurrentTaskBtf = 158,
}

#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Move = 0xb0,
}

/// Comparisons are of unsigned numbers unless they say otherwise.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Condition {
    Equal = 0x10,
    Greater = 0x20,
    GreaterOrEqual = 0x30,
    NotEqual = 0x50,
    SignedGreater = 0x60,
    SignedLess = 0xc0,
}

/// What an operation takes on its right-hand side.
#[derive(Clone, Copy)]
pub enum Operand {
    Register(Register),
    Number(i32),
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Instruction {
    pub(super) code: u8,
    /// Destination in the low four bits, source in the high ones (on little-endian machines).
    pub(super) registers: u8,
    pub(super) offset: i16,
    pub(super) number: i32,
}
