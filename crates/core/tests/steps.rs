//! The steps of exchanges: made captures whose times are known, and what must hold of any.

mod made;
mod whole;

use made::{pcap, tcp, Packet, Tcp};
use proptest::prelude::*;
use twinbed_core::readers::http::{Analyzer, Exchange, Options, Requests, Steps};
use whole::whole;

/// (time in microseconds, frame)
type Frames = Vec<(u64, Vec<u8>)>;

fn read(frames: Frames, steps: bool) -> Requests {
    let packet = |(time_us, data): (u64, Vec<u8>)| Packet { time_us, original_bytes: data.len() as u32, data };
    let packets: Vec<Packet> = frames.into_iter().map(packet).collect();
    whole(Analyzer::new(Options { steps, ..Options::default() }), &pcap(&packets, false, false, 1))
}

fn with_text(segment: Tcp, text: &str) -> Vec<u8> {
    let mut frame = Tcp { payload_bytes: text.len(), ..segment }.frame();
    let at = frame.len() - text.len();
    frame[at..].copy_from_slice(text.as_bytes());
    frame
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";

fn get() -> u32 {
    GET.len() as u32
}

fn ok() -> u32 {
    OK.len() as u32
}

fn steps(row: &Exchange) -> &Steps {
    row.steps.as_ref().expect("steps were asked for")
}

fn us(time_ns: Option<i64>) -> Option<i64> {
    time_ns.map(|time| time / 1000)
}

fn handshake() -> Frames {
    vec![
        (0, tcp(true, "S", 0, 0, 0).frame()),
        (100, tcp(false, "SA", 0, 1, 0).frame()),
        (150, tcp(true, "A", 1, 1, 0).frame()),
    ]
}

#[test]
fn every_step_has_the_time_of_its_packet() {
    let (head, body) = OK.split_at(20);
    let mut list = handshake();
    list.extend([
        (200, with_text(tcp(true, "A", 1, 1, 0), &GET[..10])),
        (230, with_text(tcp(true, "A", 11, 1, 0), &GET[10..])),
        (300, tcp(false, "A", 1, 11, 0).frame()),
        (310, tcp(false, "A", 1, 1 + get(), 0).frame()),
        (700, with_text(tcp(false, "A", 1, 1 + get(), 0), head)),
        (750, tcp(true, "A", 1 + get(), 21, 0).frame()),
        (800, with_text(tcp(false, "A", 21, 1 + get(), 0), body)),
        (40_800, tcp(true, "A", 1 + get(), 1 + ok(), 0).frame()),
        // The next request acknowledges nothing new; its response acknowledges it.
        (50_000, with_text(tcp(true, "A", 1 + get(), 1 + ok(), 0), GET)),
        (50_100, with_text(tcp(false, "A", 1 + ok(), 1 + 2 * get(), 0), OK)),
        (50_150, tcp(true, "FA", 1 + 2 * get(), 1 + 2 * ok(), 0).frame()),
        (50_200, tcp(false, "FA", 1 + 2 * ok(), 2 + 2 * get(), 0).frame()),
        (50_250, tcp(true, "A", 2 + 2 * get(), 2 + 2 * ok(), 0).frame()),
    ]);
    let rows = read(list, true).exchanges;
    let [first, second] = &rows[..] else { panic!("{rows:?}") };
    let one = steps(first);
    assert_eq!((us(one.syn_ns), us(one.syn_ack_ns), us(one.established_ns)), (Some(0), Some(100), Some(150)));
    assert_eq!(
        (us(first.start_ns), us(one.request_end_ns), us(one.request_acked_ns)),
        (Some(200), Some(230), Some(310))
    );
    assert_eq!((us(first.response_start_ns), us(first.response_end_ns)), (Some(700), Some(800)));
    assert_eq!((us(one.response_acked_ns), us(one.next_ns)), (Some(40_800), Some(50_000)));
    assert_eq!((one.client_fin_ns, one.server_fin_ns, one.reset_ns), (None, None, None));
    assert_eq!((one.silence_ns, us(one.silence_start_ns), one.silence_ended_by), (40_000_000, Some(800), Some('A')));
    assert_eq!(one.pattern.text(), "S s A P+ a+ p+ A");
    let two = steps(second);
    assert_eq!((two.syn_ns, two.established_ns), (None, None));
    assert_eq!((us(two.request_acked_ns), us(second.response_start_ns)), (Some(50_100), Some(50_100)));
    assert_eq!((us(two.response_acked_ns), us(two.client_fin_ns)), (Some(50_150), Some(50_150)));
    assert_eq!((us(two.server_fin_ns), two.next_ns), (Some(50_200), None));
    assert_eq!(two.pattern.text(), "P p F f A");
    assert_eq!(two.request_sequence, 1 + get());
    assert_ne!(one.sampled_by, two.sampled_by);
    let packets = one.packets.as_ref().expect("few exchanges keep all packets");
    assert_eq!(packets.len(), 11);
    let letters: String = packets.iter().map(|mark| mark.letter()).collect();
    assert_eq!(letters, "SsAPPaapApA");
    assert_eq!((packets[7].position, packets[9].position), (0, 20));
    assert_eq!((packets[8].acknowledges, packets[10].acknowledges), (Some(20), Some(i64::from(ok()))));
}

#[test]
fn what_is_sent_again_is_told_from_what_is_new() {
    let mut list = handshake();
    list.insert(1, (50, tcp(true, "S", 0, 0, 0).frame()));
    list.extend([
        (200, with_text(tcp(true, "A", 1, 1, 0), GET)),
        // Its timer runs out.
        (200_200, with_text(tcp(true, "A", 1, 1, 0), GET)),
        (200_300, with_text(tcp(false, "A", 1, 1 + get(), 0), OK)),
        (200_310, with_text(tcp(false, "A", 1, 1 + get(), 0), OK)),
        (200_400, tcp(true, "FA", 1 + get(), 1 + ok(), 0).frame()),
        (400_400, tcp(true, "FA", 1 + get(), 1 + ok(), 0).frame()),
        (400_500, tcp(false, "RA", 1 + ok(), 2 + get(), 0).frame()),
    ]);
    let rows = read(list, true).exchanges;
    let [row] = &rows[..] else { panic!("{rows:?}") };
    let steps = steps(row);
    assert_eq!(steps.pattern.text(), "S Y s A P X p x F Z r");
    assert_eq!((steps.client_repeats, steps.server_repeats), (3, 1));
    assert_eq!((us(steps.syn_ns), us(row.start_ns), us(row.response_start_ns)), (Some(0), Some(200), Some(200_300)));
    assert_eq!((us(steps.client_fin_ns), us(steps.reset_ns)), (Some(200_400), Some(400_500)));
    assert_eq!((steps.silence_ns, steps.silence_ended_by), (200_000_000, Some('X')));
}

#[test]
fn pipelined_requests_have_steps_of_their_own() {
    let mut list = handshake();
    list.extend([
        (200, with_text(tcp(true, "A", 1, 1, 0), &GET.repeat(2))),
        (300, with_text(tcp(false, "A", 1, 1 + 2 * get(), 0), OK)),
        (400, with_text(tcp(false, "A", 1 + ok(), 1 + 2 * get(), 0), OK)),
        (450, tcp(true, "A", 1 + 2 * get(), 1 + ok(), 0).frame()),
        (500, tcp(true, "A", 1 + 2 * get(), 1 + 2 * ok(), 0).frame()),
    ]);
    let rows = read(list, true).exchanges;
    let acked = |row: &Exchange| (us(steps(row).request_acked_ns), us(steps(row).response_acked_ns));
    assert_eq!(rows.iter().map(acked).collect::<Vec<_>>(), [(Some(300), Some(450)), (Some(300), Some(500))]);
    let sequences: Vec<u32> = rows.iter().map(|row| steps(row).request_sequence).collect();
    assert_eq!(sequences, [1, 1 + get()]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever comes, in whatever order: steps change no exchange, and every packet of an exchange is in its list.
    #[test]
    fn steps_change_nothing_and_miss_nothing(list in prop::collection::vec(
        (
            any::<bool>(), prop::sample::select(vec!["S", "SA", "A", "FA", "RA"]), 0u32..200, 0u32..200,
            prop::sample::select(vec!["", GET, OK, "x", "HTTP/1.1 100 Go\r\n\r\n"]),
        ),
        0..30,
    )) {
        let mut frames = vec![(0, tcp(true, "S", 0, 0, 0).frame())];
        frames.extend((1..).zip(list).map(|(at, (client, flags, sequence, acknowledgment, text))| {
            (at, with_text(tcp(client, flags, sequence, acknowledgment, 0), text))
        }));
        let mut rows = read(frames.clone(), true);
        for row in &mut rows.exchanges {
            let steps = row.steps.take().expect("steps were asked for");
            let packets = steps.packets.expect("few exchanges keep all packets");
            prop_assert_eq!(packets.len() as u64, row.client.packets + row.server.packets);
            let of_client = packets.iter().filter(|mark| mark.from_client).count() as u64;
            prop_assert_eq!(of_client, row.client.packets);
            let repeats = packets.iter().filter(|mark| mark.is_repeat).count() as u32;
            prop_assert_eq!(repeats, steps.client_repeats + steps.server_repeats);
        }
        prop_assert_eq!(rows, read(frames, false));
    }
}
