//! Programs put together instruction by instruction, with labels for the places that they jump to.

use super::instruction::{Condition, Function, Instruction, Operand, Operation, Register, Width, R0, R1, R2, STACK};
use super::kernel::Map;

use Operand::Number;

const LOAD_IMMEDIATE_64: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE_NUMBER: u8 = 0x62;
const STORE: u8 = 0x63;
const ATOMIC_ADD: u8 = 0xc3;
const ARITHMETIC_64: u8 = 0x07;
const TO_BIG_ENDIAN: u8 = 0xdc;
const JUMP: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const FROM_REGISTER: u8 = 0x08;
const MAP: Register = 1;
const MAP_VALUE: Register = 2;

#[derive(Clone, Copy)]
pub struct Label(usize);

#[derive(Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
    labels: Vec<usize>,
    /// (instruction, label) of the jumps.
    jumps: Vec<(usize, usize)>,
}

impl Assembler {
    fn emit(&mut self, code: u8, to: Register, from: Register, offset: i16, number: i32) {
        self.instructions.push(Instruction { code, registers: to | from << 4, offset, number });
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() - 1)
    }

    /// The label means what comes next.
    pub fn here(&mut self, label: Label) {
        self.labels[label.0] = self.instructions.len();
    }

    pub fn operate(&mut self, operation: Operation, to: Register, operand: Operand) {
        match operand {
            Operand::Register(from) => self.emit(ARITHMETIC_64 | FROM_REGISTER | operation as u8, to, from, 0, 0),
            Number(number) => self.emit(ARITHMETIC_64 | operation as u8, to, 0, 0, number),
        }
    }

    pub fn set(&mut self, to: Register, number: i32) {
        self.operate(Operation::Move, to, Number(number));
    }

    pub fn set_wide(&mut self, to: Register, number: u64) {
        self.emit(LOAD_IMMEDIATE_64, to, 0, 0, number as u32 as i32);
        self.emit(0, 0, 0, 0, (number >> 32) as u32 as i32);
    }

    pub fn copy(&mut self, to: Register, from: Register) {
        self.operate(Operation::Move, to, Operand::Register(from));
    }

    /// The address `offset` bytes from that in `from`.
    pub fn address(&mut self, to: Register, from: Register, offset: i16) {
        self.copy(to, from);
        self.operate(Operation::Add, to, Number(offset.into()));
    }

    pub fn map(&mut self, to: Register, map: &Map) {
        self.emit(LOAD_IMMEDIATE_64, to, MAP, 0, map.descriptor());
        self.emit(0, 0, 0, 0, 0);
    }

    /// The address of the first value of an array.
    pub fn first_value(&mut self, to: Register, array: &Map) {
        self.emit(LOAD_IMMEDIATE_64, to, MAP_VALUE, 0, array.descriptor());
        self.emit(0, 0, 0, 0, 0);
    }

    /// The lower 16 bits in network order, the others 0.
    pub fn network_order(&mut self, register: Register) {
        self.emit(TO_BIG_ENDIAN, register, 0, 0, 16);
    }

    pub fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.emit(LOAD | width as u8, to, from, offset, 0);
    }

    pub fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) {
        self.emit(STORE | width as u8, to, from, offset, 0);
    }

    pub fn store_number(&mut self, width: Width, to: Register, offset: i16, number: i32) {
        self.emit(STORE_NUMBER | width as u8, to, 0, offset, number);
    }

    /// Adds to memory that other processors add to as well.
    pub fn add_shared(&mut self, to: Register, offset: i16, from: Register) {
        self.emit(ATOMIC_ADD | Width::Double as u8, to, from, offset, 0);
    }

    /// Adds to memory that only this processor changes now. Uses R1.
    pub fn add_number(&mut self, to: Register, offset: i16, number: i32) {
        self.load(Width::Double, R1, to, offset);
        self.operate(Operation::Add, R1, Number(number));
        self.store(Width::Double, to, offset, R1);
    }

    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label.0));
        self.emit(JUMP, 0, 0, 0, 0);
    }

    pub fn jump_if(&mut self, left: Register, condition: Condition, right: Operand, label: Label) {
        self.jumps.push((self.instructions.len(), label.0));
        match right {
            Operand::Register(right) => self.emit(JUMP | FROM_REGISTER | condition as u8, left, right, 0, 0),
            Number(number) => self.emit(JUMP | condition as u8, left, 0, 0, number),
        }
    }

    pub fn call(&mut self, function: Function) {
        self.emit(CALL, 0, 0, 0, function as i32);
    }

    /// Looks up the key at `key` on the stack; R0 is the value's address, or 0.
    pub fn look_up(&mut self, map: &Map, key: i16) {
        self.look_up_at(map, STACK, key);
    }

    /// The key lies `key` bytes from the address in `from`.
    pub fn look_up_at(&mut self, map: &Map, from: Register, key: i16) {
        self.map(R1, map);
        self.address(R2, from, key);
        self.call(Function::MapLookup);
    }

    pub fn exit(&mut self) {
        self.set(R0, 0);
        self.emit(EXIT, 0, 0, 0, 0);
    }

    pub fn finish(mut self) -> Vec<Instruction> {
        for (instruction, label) in self.jumps {
            // A jump counts from the instruction after it. Programs here have a few hundred.
            self.instructions[instruction].offset = (self.labels[label] as i64 - instruction as i64 - 1) as i16;
        }
        self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::super::instruction::{R3, R6};
    use super::*;

    /// Encodings as in the examples and tables of RFC 9669.
    #[test]
    fn instructions_are_encoded_as_the_standard_says() {
        let mut code = Assembler::default();
        let end = code.label();
        code.jump_if(R1, Condition::Equal, Number(7), end);
        code.set_wide(R2, 0x1122_3344_5566_7788);
        code.load(Width::Word, R3, STACK, -4);
        code.store(Width::Double, STACK, -8, R6);
        code.here(end);
        code.exit();
        let bytes: Vec<_> = code.finish().iter().map(|i| (i.code, i.registers, i.offset, i.number)).collect();
        assert_eq!(
            bytes,
            [
                (0x15, 0x01, 4, 7),
                (0x18, 0x02, 0, 0x5566_7788),
                (0x00, 0x00, 0, 0x1122_3344),
                (0x61, 0xa3, -4, 0),
                (0x7b, 0x6a, -8, 0),
                (0xb7, 0x00, 0, 0),
                (0x95, 0x00, 0, 0),
            ]
        );
    }
}
