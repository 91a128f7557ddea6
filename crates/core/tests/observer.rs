//! What a watcher learns, of captures whose numbers are known by arithmetic. p0f and tshark are the oracles of real ones
//! (tests/unit/core/test_observer_peers.py).

mod made;
mod whole;

use etherparse::{PacketBuilder, TcpOptionElement};
use made::{pcap, Packet};
use twinbed_core::readers::observer::{Host, Observed, Observer, Role, Window, BLOCKS, LENGTHS};
use whole::whole;

/// A segment of Linux's: 10.0.0.1:40000 opens, 10.0.0.2:80 answers.
#[derive(Clone, Copy)]
struct Segment {
    client: bool,
    time_us: u64,
    flags: &'static str,
    sequence: u32,
    payload_bytes: usize,
    window: u16,
    scale: Option<u8>,
    ticks: u32,
    ip_id: u16,
    port: u16,
}

fn segment(client: bool, time_us: u64, flags: &'static str, sequence: u32, payload_bytes: usize) -> Segment {
    Segment {
        client,
        time_us,
        flags,
        sequence,
        payload_bytes,
        window: 64240,
        scale: None,
        ticks: 1,
        ip_id: 7,
        port: 40000,
    }
}

impl Segment {
    fn packet(&self) -> Packet {
        let (from, to, ports) = match self.client {
            true => ([10, 0, 0, 1], [10, 0, 0, 2], (self.port, 80)),
            false => ([10, 0, 0, 2], [10, 0, 0, 1], (80, self.port)),
        };
        let mut ip = etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::TCP, from, to).expect("short");
        ip.identification = self.ip_id;
        ip.dont_fragment = true;
        let builder = PacketBuilder::ethernet2([0x52, 0x54, 0, 1, 2, 3], [2, 0, 0, 0, 0, 9])
            .ip(etherparse::IpHeaders::Ipv4(ip, Default::default()));
        let mut tcp = builder.tcp(ports.0, ports.1, self.sequence, self.window);
        for flag in self.flags.chars() {
            tcp = match flag {
                'S' => tcp.syn(),
                'A' => tcp.ack(1),
                'P' => tcp.psh(),
                other => panic!("flag {other}"),
            };
        }
        use TcpOptionElement::{MaximumSegmentSize, Noop, SelectiveAcknowledgementPermitted, Timestamp, WindowScale};
        let stamp = Timestamp(self.ticks, u32::from(!self.flags.starts_with('S') || self.flags.len() > 1));
        let options: Vec<TcpOptionElement> = match self.scale {
            Some(scale) => {
                vec![MaximumSegmentSize(1460), SelectiveAcknowledgementPermitted, stamp, Noop, WindowScale(scale)]
            }
            None => vec![Noop, Noop, stamp],
        };
        let tcp = tcp.options(&options).expect("they fit");
        let mut data = Vec::new();
        tcp.write(&mut data, &vec![b'x'; self.payload_bytes]).expect("a packet");
        Packet { time_us: 1_700_000_000_000_000 + self.time_us, original_bytes: data.len() as u32, data }
    }
}

fn observe(segments: &[Segment]) -> Observed {
    let packets: Vec<Packet> = segments.iter().map(Segment::packet).collect();
    whole(Observer::default(), &pcap(&packets, false, false, 1))
}

fn text(host: &Host, name: &str) -> Option<String> {
    host.features.iter().find(|feature| feature.name == name).expect("a feature").text.clone()
}

fn number(host: &Host, name: &str) -> Option<f64> {
    host.features.iter().find(|feature| feature.name == name).expect("a feature").value
}

fn handshake(time_us: u64, port: u16, ticks: u32) -> [Segment; 2] {
    let syn = Segment { scale: Some(7), port, ticks, ..segment(true, time_us, "S", 1000, 0) };
    let answer =
        Segment { scale: Some(5), port, ticks, window: 65160, ip_id: 0, ..segment(false, time_us + 200, "SA", 1, 0) };
    [syn, answer]
}

#[test]
fn syns_tell_what_they_were_made_of() {
    let seen = observe(&[handshake(0, 40000, 500), handshake(1_000_000, 40001, 1500)].concat());
    let [client, server] = &seen.hosts[..] else { panic!("two hosts: {:?}", seen.hosts) };
    assert_eq!((client.role, server.role, client.syns, server.syns), (Role::Originator, Role::Responder, 2, 2));
    // 64240 = 44 x 1460; 65160 = 45 x (1460 - 12), 20 + 20 + 20 bytes of headers.
    let as_p0f = |host: &Host| text(host, "tcp_signature").expect("a text");
    assert_eq!(as_p0f(client), "4:64+0:0:1460:mss*44,7:mss,sok,ts,nop,ws:df,id+:0");
    assert_eq!(as_p0f(server), "4:64+0:0:1460:mss*45,5:mss,sok,ts,nop,ws:df:0");
    assert_eq!((number(client, "window_scale"), number(server, "window_scale")), (Some(7.0), Some(5.0)));
    assert_eq!(
        (number(client, "syn_window"), number(client, "mss"), number(client, "ttl")),
        (Some(64240.0), Some(1460.0), Some(64.0))
    );
    assert_eq!((number(client, "df"), text(client, "ecn").as_deref()), (Some(1.0), Some("none")));
    assert_eq!((text(client, "mac_vendor").as_deref(), number(client, "mac_local")), (Some("52:54:00"), Some(1.0)));
    assert_eq!(text(client, "timestamp_start").as_deref(), Some("one clock"));
    assert!((number(server, "syn_ack_delay_mean_s").expect("two answers") - 2e-4).abs() < 1e-12);
    assert_eq!(number(server, "syn_ack_delay_sd_s"), Some(0.0));
}

#[test]
fn starts_of_one_clock_are_told_from_others() {
    let seen = observe(&[handshake(0, 40000, 500), handshake(1_000_000, 40001, 3_000_000_000)].concat());
    assert_eq!(text(&seen.hosts[0], "timestamp_start").as_deref(), Some("own start per connection"));
    assert_eq!(text(&observe(&handshake(0, 40000, 5)).hosts[0], "timestamp_start"), None);
}

/// 250 ticks a second for four seconds, and identifications of every kind.
#[test]
fn timestamps_and_identifications_have_a_rule() {
    type Rule = (&'static str, fn(u16) -> u16);
    let ids: [Rule; 4] = [
        ("zero", |_| 0),
        ("increasing", |at| 65_000u16.wrapping_add(3 * at)),
        ("same", |_| 77),
        ("random", |at| at.wrapping_mul(30_011)),
    ];
    for (kind, id) in ids {
        let mut all = handshake(0, 40000, 1000).to_vec();
        for at in 0..1000u16 {
            let step = u32::from(at);
            all.push(Segment {
                ticks: 1000 + step,
                ip_id: id(at),
                ..segment(true, 1000 + 4000 * u64::from(at), "A", 1001, 0)
            });
        }
        let seen = observe(&all);
        let client = &seen.hosts[0];
        assert_eq!(text(client, "ip_id").as_deref(), Some(kind));
        let rate = number(client, "timestamp_hz").expect("four seconds are enough");
        assert!((rate - 250.0).abs() < 0.01, "{rate}");
        assert_eq!(text(client, "timestamp_hz").as_deref(), Some("250"));
    }
}

fn find(seen: &Observed, to_server: bool, packets: usize, block: u32) -> Window {
    let is_it = |row: &&Window| (row.client_to_server, row.packets, row.block) == (to_server, packets, block);
    *seen.windows.iter().find(is_it).expect("the block")
}

/// Eight packets of the client, 1, 2, 1, ... ms apart, each 100 us after one of the server's.
#[test]
fn blocks_come_to_what_they_hold() {
    let mut all = handshake(0, 40000, 1).to_vec();
    let mut sent = 1001;
    let times_us: [u64; 7] = [1000, 3000, 4000, 6000, 7000, 9000, 10_000];
    for (at, time_us) in times_us.into_iter().enumerate() {
        all.push(Segment { window: 501, ..segment(false, time_us - 100, "A", 2, 0) });
        // Full is 1460 - 12 bytes of options; the sixth packet sends the fifth again.
        let payload_bytes = if at < 5 { 1448 } else { 100 };
        let flags = if at == 6 { "PA" } else { "A" };
        let sequence = if at == 5 { sent - 1448 } else { sent };
        all.push(Segment { window: 100, ip_id: at as u16, ..segment(true, time_us, flags, sequence, payload_bytes) });
        sent += if at < 5 { 1448 } else { 0 };
    }
    let seen = observe(&all);
    assert_eq!(seen.windows.iter().filter(|row| row.client_to_server).count(), 2);
    let (first, second) = (find(&seen, true, 4, 0), find(&seen, true, 4, 1));
    // The SYN (60 bytes), three of 20 + 32 + 1448; gaps of 1, 2, 1 ms.
    assert_eq!((first.seconds, first.bytes_mean), (4e-3, (60.0 + 3.0 * 1500.0) / 4.0));
    assert_eq!((first.full_share, first.push_share, first.ack_share), (0.75, 0.0, 0.0));
    assert_eq!((first.gap_p10_s, first.gap_p50_s, first.gap_p90_s, first.burst_share), (1e-3, 1e-3, 2e-3, 0.0));
    let logarithms = [1e-3f64.ln(), 2e-3f64.ln(), 1e-3f64.ln()];
    let mean = logarithms.iter().sum::<f64>() / 3.0;
    assert!((first.gap_log_mean - mean).abs() < 1e-12);
    let squares: f64 = logarithms.iter().map(|each| (each - mean).powi(2)).sum();
    assert!((first.gap_log_sd - (squares / 2.0).sqrt()).abs() < 1e-12);
    assert_eq!((first.turn_p50_s, first.turn_p90_s), (Some(1e-4), Some(1e-4)));
    // A SYN's window is not scaled, the others are by 2^7.
    assert_eq!(first.window_mean, Some((64240.0 + 3.0 * 12800.0) / 4.0));
    assert_eq!((first.ip_id_zero_share, first.timestamp_rate_hz), (Some(0.25), None));
    // Sizes 1500, 1500, 152, 152: two are full, one is sent again, the last is pushed.
    assert_eq!((second.bytes_mean, second.full_share), (826.0, 0.5));
    assert_eq!((second.retransmitted_share, second.push_share), (0.25, 0.25));
    assert!((second.bytes_sd - (4.0 * 674.0f64.powi(2) / 3.0).sqrt()).abs() < 1e-9);
    let answers = find(&seen, false, 4, 1);
    assert_eq!((answers.ack_share, answers.window_mean), (1.0, Some(501.0 * 32.0)));
}

/// Without a SYN nothing is known of hosts, nor of scaled windows.
#[test]
fn a_capture_without_syns() {
    let all: Vec<Segment> = (0..4).map(|at| segment(true, at * 10, "A", 5, 0)).collect();
    let seen = observe(&all);
    assert_eq!((seen.hosts.len(), seen.windows.len()), (0, 1));
    let block = find(&seen, true, 4, 0);
    assert_eq!((block.window_mean, block.turn_p50_s, block.burst_share), (None, None, 1.0));
}

#[test]
fn no_more_blocks_than_are_kept() {
    let all: Vec<Segment> = (0..40_000).map(|at| segment(true, at * 10, "A", 5, 0)).collect();
    let seen = observe(&all);
    for length in LENGTHS {
        let blocks: Vec<u32> = seen.windows.iter().filter(|row| row.packets == length).map(|row| row.block).collect();
        let expected: Vec<u32> = (0..BLOCKS.min((40_000 / length) as u32)).collect();
        assert_eq!(blocks, expected, "{length}");
    }
}

#[test]
fn syns_that_are_cut_or_malformed_say_so() {
    let syn = handshake(0, 40000, 1)[0].packet();
    let mut cut = syn.clone();
    cut.data.truncate(14 + 20 + 30);
    let seen = whole(Observer::default(), &pcap(&[cut], false, false, 1));
    assert!(seen.hosts.is_empty());
    assert_eq!(seen.skipped.get("syn_options_cut_off"), Some(&1));
    let mut odd = syn;
    // The MSS option claims more than there is.
    odd.data[14 + 20 + 21] = 200;
    let seen = whole(Observer::default(), &pcap(&[odd], false, false, 1));
    let host = &seen.hosts[0];
    assert_eq!((text(host, "tcp_options").as_deref(), number(host, "mss")), (Some("mss"), None));
    assert!(text(host, "tcp_quirks").expect("a text").ends_with("bad"));
}
