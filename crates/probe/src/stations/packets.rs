//! The programs on the tracepoints that packets pass.
//!
//! On their way out: net_dev_queue (handed to the queueing discipline) and net_dev_start_xmit (to the driver). On their way in:
//! netif_receive_skb (received by the softirq, after GRO) and tcp_probe (taken by the socket, in the states in which data come).
//! The SYN-ACK is no data: the socket took it when inet_sock_set_state says that a connection is established. All are in Linux
//! 6.1 to 6.18. What is copied is the IP and the TCP header as they lie in memory; the reader of the ring takes them apart. Acknowledgments alone
//! say nothing of when bytes passed, and are left out.

use super::probe_files::station;
use super::record::{self, packet, socket, PACKET, SOCKET};
use super::sending::Sending;
use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{
    Condition, Function, Instruction, Operand, Operation, Width, R0, R1, R2, R6, R7, R8, STACK,
};
use crate::failure::Outcome;

use Condition::{Equal, NotEqual};
use Operand::Number;
use Width::{Byte, Double, Half, Word};

type Named = (&'static str, Vec<Instruction>);

const LOOPBACK: i32 = 1;
const IPV4: i32 = 0x0008;
const IPV6: i32 = 0xdd86;
const TCP: i32 = 6;
const IPV4_WITHOUT_OPTIONS: i32 = 0x45;
const IPV4_HEADER_BYTES: i16 = 20;
const IPV6_HEADER_BYTES: i16 = 40;
/// TCP's flags (RFC 9293, 3.1).
const SYN_FIN_RST: i32 = 7;
/// Flags and position of a fragment, but for "don't fragment", in network order.
const FRAGMENT: i32 = 0xff3f;
const SYN_SENT: i32 = 2;
const ESTABLISHED: i32 = 1;

pub fn programs(sending: &Sending) -> Outcome<Vec<Named>> {
    Ok(vec![
        ("tcp_probe", of_packet(sending, station::SOCKET)?),
        ("inet_sock_set_state", established(sending)?),
        ("netif_receive_skb", of_packet(sending, station::SOFTIRQ)?),
        ("net_dev_start_xmit", of_packet(sending, station::DRIVER)?),
        ("net_dev_queue", of_packet(sending, station::QDISC)?),
    ])
}

/// R6 is the packet, R8 the address of its IP header.
fn of_packet(sending: &Sending, at: u8) -> Outcome<Vec<Instruction>> {
    let types = sending.types;
    let mut code = Assembler::default();
    let out = code.label();
    if at == station::SOCKET {
        code.load(Double, R6, R1, 8);
        code.load(Double, R7, R1, 0);
        code.load(Word, R2, R6, types.offset("sk_buff", "skb_iif")?);
        code.load(Double, R7, R7, types.offset("sock", "__sk_common")? + types.offset("sock_common", "skc_net")?);
    } else {
        code.load(Double, R6, R1, 0);
        code.load(Double, R7, R6, types.offset("sk_buff", "dev")?);
        code.load(Word, R2, R7, types.offset("net_device", "ifindex")?);
        code.load(Double, R7, R7, types.offset("net_device", "nd_net")?);
    }
    code.jump_if(R2, Equal, Number(LOOPBACK), out);
    sending.only_own(&mut code, R7, out)?;
    code.load(Half, R7, R6, types.offset("sk_buff", "protocol")?);
    let is_ip = code.label();
    code.jump_if(R7, Equal, Number(IPV4), is_ip);
    code.jump_if(R7, NotEqual, Number(IPV6), out);
    code.here(is_ip);
    if at == station::SOFTIRQ {
        // The network header's place is not set yet.
        code.load(Double, R8, R6, types.offset("sk_buff", "data")?);
    } else {
        code.load(Double, R8, R6, types.offset("sk_buff", "head")?);
        code.load(Half, R1, R6, types.offset("sk_buff", "network_header")?);
        code.operate(Operation::Add, R8, Operand::Register(R1));
    }
    code.call(Function::KtimeGetNs);
    code.store(Double, STACK, PACKET + record::TIME_NS, R0);
    sending.copy(&mut code, R8, 0, PACKET + packet::HEADERS, packet::HEADER_BYTES, out);
    let (six, complete) = (code.label(), code.label());
    let ip = PACKET + packet::HEADERS;
    code.jump_if(R7, Equal, Number(IPV6), six);
    code.load(Byte, R1, STACK, ip);
    code.jump_if(R1, NotEqual, Number(IPV4_WITHOUT_OPTIONS), out);
    code.load(Byte, R1, STACK, ip + 9);
    code.jump_if(R1, NotEqual, Number(TCP), out);
    code.load(Half, R1, STACK, ip + 6);
    code.operate(Operation::And, R1, Number(FRAGMENT));
    code.jump_if(R1, NotEqual, Number(0), out);
    code.load(Half, R1, STACK, ip + 2);
    code.network_order(R1);
    code.operate(Operation::Subtract, R1, Number(i32::from(IPV4_HEADER_BYTES)));
    only_news(&mut code, ip + IPV4_HEADER_BYTES, out);
    sending.sample(&mut code, [ip + 12, ip + 16], ip + IPV4_HEADER_BYTES, out);
    code.jump(complete);
    code.here(six);
    code.load(Byte, R1, STACK, ip + 6);
    code.jump_if(R1, NotEqual, Number(TCP), out);
    code.load(Half, R1, STACK, ip + 4);
    code.network_order(R1);
    only_news(&mut code, ip + IPV6_HEADER_BYTES, out);
    // The last four bytes of each address.
    sending.sample(&mut code, [ip + 20, ip + 36], ip + IPV6_HEADER_BYTES, out);
    code.here(complete);
    sending.describe(&mut code, PACKET, at);
    sending.send(&mut code, PACKET, packet::BYTES);
    code.here(out);
    code.exit();
    Ok(code.finish())
}

/// To `out` where a segment of as many bytes as R1 has, whose header is on the stack, neither brings payload nor opens or closes.
fn only_news(code: &mut Assembler, tcp: i16, out: Label) {
    let news = code.label();
    code.load(Byte, R2, STACK, tcp + 13);
    code.operate(Operation::And, R2, Number(SYN_FIN_RST));
    code.jump_if(R2, NotEqual, Number(0), news);
    code.load(Byte, R2, STACK, tcp + 12);
    code.operate(Operation::ShiftRight, R2, Number(4));
    code.operate(Operation::ShiftLeft, R2, Number(2));
    code.jump_if(R1, Equal, Operand::Register(R2), out);
    code.here(news);
}

/// inet_sock_set_state(socket, old state, new state).
fn established(sending: &Sending) -> Outcome<Vec<Instruction>> {
    let types = sending.types;
    let mut code = Assembler::default();
    let out = code.label();
    code.load(Double, R7, R1, 8);
    code.jump_if(R7, NotEqual, Number(SYN_SENT), out);
    code.load(Double, R7, R1, 16);
    code.jump_if(R7, NotEqual, Number(ESTABLISHED), out);
    code.load(Double, R6, R1, 0);
    code.load(Double, R7, R6, types.offset("sock", "__sk_common")? + types.offset("sock_common", "skc_net")?);
    sending.only_own(&mut code, R7, out)?;
    code.call(Function::KtimeGetNs);
    code.store(Double, STACK, SOCKET + record::TIME_NS, R0);
    for nothing in [socket::END_NS, socket::VALUE] {
        code.store_number(Double, STACK, SOCKET + nothing, 0);
    }
    sending.describe(&mut code, SOCKET, station::SOCKET);
    sending.socket(&mut code, R6, "rcv_nxt", out)?;
    sending.send(&mut code, SOCKET, socket::BYTES);
    code.here(out);
    code.exit();
    Ok(code.finish())
}
