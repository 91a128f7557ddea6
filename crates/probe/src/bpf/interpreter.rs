//! Runs assembled programs, for tests: arithmetic, memory and jumps as RFC 9669 has them, without calls and maps.

use super::instruction::Instruction;

pub struct Machine {
    pub registers: [u64; 11],
    pub memory: Vec<u8>,
}

impl Machine {
    /// Addresses are offsets in the memory, which is all 0; so are the registers.
    pub fn new(bytes: usize) -> Machine {
        Machine { registers: [0; 11], memory: vec![0; bytes] }
    }

    pub fn double(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.memory[at..at + 8].try_into().unwrap())
    }

    /// To the end of the instructions.
    pub fn run(&mut self, instructions: &[Instruction]) {
        let mut next = 0;
        while next < instructions.len() {
            let Instruction { code, registers, offset, number } = instructions[next];
            next += 1;
            let (to, from) = (usize::from(registers & 15), usize::from(registers >> 4));
            let operand = if code & 8 == 0 { number as i64 as u64 } else { self.registers[from] };
            let address = |base: u64| (base as i64 + i64::from(offset)) as usize;
            match code {
                0x18 => {
                    let upper = u64::from(instructions[next].number as u32) << 32;
                    self.registers[to] = upper | u64::from(number as u32);
                    next += 1;
                }
                0x79 => self.registers[to] = self.double(address(self.registers[from])),
                0x7b | 0x7a => {
                    let value = if code == 0x7b { self.registers[from] } else { number as i64 as u64 };
                    let at = address(self.registers[to]);
                    self.memory[at..at + 8].copy_from_slice(&value.to_ne_bytes());
                }
                _ if code & 7 == 7 => {
                    let value = &mut self.registers[to];
                    *value = match code & 0xf0 {
                        0x00 => value.wrapping_add(operand),
                        0x10 => value.wrapping_sub(operand),
                        0x20 => value.wrapping_mul(operand),
                        0x40 => *value | operand,
                        0x60 => *value << operand,
                        0x70 => *value >> operand,
                        0xb0 => operand,
                        _ => panic!("operation {code:#x}"),
                    };
                }
                _ if code & 7 == 5 => {
                    let left = self.registers[to];
                    let taken = match code & 0xf0 {
                        0x00 => true,
                        0x10 => left == operand,
                        0x20 => left > operand,
                        0x50 => left != operand,
                        0x60 => left as i64 > operand as i64,
                        0xc0 => (left as i64) < operand as i64,
                        _ => panic!("condition {code:#x}"),
                    };
                    if taken {
                        next = (next as i64 + i64::from(offset)) as usize;
                    }
                }
                _ => panic!("instruction {code:#x}"),
            }
        }
    }
}
