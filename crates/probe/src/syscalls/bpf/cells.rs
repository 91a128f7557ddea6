//! Parts of the programs of a count: finding the cell of a call's transition.
//!
//! A hash gives each transition a number, and its cell has this number in an array, which is as good as memory. Hashing a key
//! costs more than all else that a count does with a call, and programs repeat themselves. So each cell keeps which two cells
//! came after it last, and these are tried first: in most programs nine calls of ten then need no key. Cells of ended streams
//! are given to others. Only the stream's own thread and its other cells know a cell's number.

use super::layout::{cell, next, stack, thread, transition, KEPT};
use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{Condition, Function, Operand, Operation, Width, R0, R1, R2, R3, R4, R9, STACK};
use crate::bpf::kernel::Map;

use Condition::{Equal, Greater, NotEqual, SignedLess};
use Operand::Number;
use Width::{Double, Word};

/// Whatever comes after a call of this part, or of the one before it, is of this part.
const LAST_PART: i32 = 4;

/// Where calls are counted: a cell for each transition, found by its number.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    /// Transition to the number of its cell.
    pub numbers: &'a Map,
    /// An array; number 0 is no transition's, and nothing comes after it.
    pub cells: &'a Map,
    /// A stack of the first numbers of blocks that no stream has.
    pub free: &'a Map,
}

impl Cells<'_> {
    /// Goes to `has_cell` with the cell of the thread's call in R0, if the cell of the call before has kept it.
    pub fn find_next(&self, code: &mut Assembler, skip: u64, has_cell: Label) {
        let other = code.label();
        unless_in_last_part(code, skip, other);
        code.look_up_at(self.cells, KEPT, thread::PREVIOUS);
        code.jump_if(R0, Equal, Number(0), other);
        code.copy(R9, R0);
        for place in cell::NEXT {
            let not_this = code.label();
            code.load(Double, R1, KEPT, thread::HISTORY);
            code.load(Double, R2, R9, place + next::HISTORY);
            code.jump_if(R1, NotEqual, Operand::Register(R2), not_this);
            code.load(Word, R1, R9, place + next::NUMBER);
            code.store(Word, KEPT, thread::PREVIOUS, R1);
            code.look_up_at(self.cells, R9, place + next::NUMBER);
            code.jump_if(R0, NotEqual, Number(0), has_cell);
            code.here(not_this);
        }
        code.here(other);
    }

    /// R0 becomes the cell of the transition that ends with the thread's call, a new cell if the transition is new. Goes to
    /// `lost` where there is no room for one. The cell of the call before keeps what came after it.
    pub fn find_transition(&self, code: &mut Assembler, skip: u64, lost: Label) {
        let known = code.label();
        let fresh = code.label();
        let kept = code.label();
        let linked = code.label();
        code.load(Double, R1, KEPT, thread::HISTORY);
        code.store(Double, STACK, stack::TRANSITION + transition::HISTORY, R1);
        code.load(Double, R1, KEPT, thread::STREAM);
        code.store(Double, STACK, stack::TRANSITION + transition::STREAM, R1);
        code.load(Word, R1, KEPT, thread::TID);
        code.store(Word, STACK, stack::TRANSITION + transition::TID, R1);
        part(code, skip);
        code.store(Word, STACK, stack::TRANSITION + transition::PART, R1);
        code.look_up(self.numbers, stack::TRANSITION);
        code.jump_if(R0, NotEqual, Number(0), known);

        code.load(Word, R1, KEPT, thread::FRESH);
        code.jump_if(R1, NotEqual, Number(0), fresh);
        code.map(R1, self.free);
        code.address(R2, KEPT, thread::FRESH);
        code.call(Function::MapPop);
        code.jump_if(R0, NotEqual, Number(0), lost);
        code.here(fresh);
        code.load(Word, R1, KEPT, thread::FRESH);
        code.store(Word, STACK, stack::CELL_NUMBER, R1);
        // The cell may have been another transition's, so it is emptied before anyone can find it.
        code.look_up(self.cells, stack::CELL_NUMBER);
        code.jump_if(R0, Equal, Number(0), lost);
        for at in (0..cell::BYTES as i16).step_by(8) {
            code.store_number(Double, R0, at, 0);
        }
        for place in cell::NEXT {
            code.store_number(Double, R0, place + next::HISTORY, next::NO_HISTORY);
        }
        code.map(R1, self.numbers);
        code.address(R2, STACK, stack::TRANSITION);
        code.address(R3, STACK, stack::CELL_NUMBER);
        code.set(R4, 0);
        code.call(Function::MapUpdate);
        code.jump_if(R0, NotEqual, Number(0), lost);
        code.load(Word, R1, KEPT, thread::FRESH);
        code.operate(Operation::Add, R1, Number(1));
        code.store(Word, KEPT, thread::FRESH, R1);
        code.operate(Operation::ShiftLeft, R1, Number(64 - cell::BLOCK.trailing_zeros() as i32));
        code.jump_if(R1, NotEqual, Number(0), kept);
        code.store_number(Word, KEPT, thread::FRESH, 0);
        code.jump(kept);

        code.here(known);
        code.load(Word, R1, R0, 0);
        code.store(Word, STACK, stack::CELL_NUMBER, R1);
        code.here(kept);
        unless_in_last_part(code, skip, linked);
        code.load(Word, R1, KEPT, thread::PREVIOUS);
        code.jump_if(R1, Equal, Number(0), linked);
        code.look_up_at(self.cells, KEPT, thread::PREVIOUS);
        code.jump_if(R0, Equal, Number(0), linked);
        let [later, earlier] = cell::NEXT;
        for at in [next::HISTORY, next::NUMBER] {
            code.load(Double, R1, R0, later + at);
            code.store(Double, R0, earlier + at, R1);
        }
        code.load(Double, R1, KEPT, thread::HISTORY);
        code.store(Double, R0, later + next::HISTORY, R1);
        code.load(Word, R1, STACK, stack::CELL_NUMBER);
        code.store(Word, R0, later + next::NUMBER, R1);
        code.here(linked);
        code.load(Word, R1, STACK, stack::CELL_NUMBER);
        code.store(Word, KEPT, thread::PREVIOUS, R1);
        code.look_up(self.cells, stack::CELL_NUMBER);
        code.jump_if(R0, Equal, Number(0), lost);
    }
}

/// Goes to `otherwise` where the part does not follow from the part of the call before, which the history does not have.
fn unless_in_last_part(code: &mut Assembler, skip: u64, otherwise: Label) {
    if skip > 0 {
        part(code, skip);
        code.jump_if(R1, NotEqual, Number(LAST_PART), otherwise);
    }
}

/// R1 becomes the part (`Part`) of the thread's current call.
fn part(code: &mut Assembler, skip: u64) {
    code.set(R1, LAST_PART);
    if skip == 0 {
        return;
    }
    let known = code.label();
    let first = code.label();
    code.load(Double, R3, KEPT, thread::INDEX);
    code.set_wide(R2, skip);
    code.operate(Operation::Subtract, R3, Operand::Register(R2));
    // The difference is very large, as an unsigned number, where the index is within the first calls.
    code.jump_if(R3, SignedLess, Number(1), first);
    code.jump_if(R3, Greater, Number(3), known);
    code.copy(R1, R3);
    code.jump(known);
    code.here(first);
    code.set(R1, 0);
    code.here(known);
}
