//! What a link-layer header says of what follows it. Each encapsulation is a file with a `read` of this outcome;
//! `link` goes through them.

/// What the next bytes of a frame are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Ethernet,
    /// What this EtherType names.
    EtherType(u16),
    Vlan,
    Mpls,
    ProviderBackbone,
    VnTag,
    FabricPath,
    Pppoe,
    Ppp,
    Llc,
    Radiotap,
    /// 802.11; padded where the header is followed by bytes that fill it up to a multiple of 4.
    Wlan {
        is_padded: bool,
    },
    Fddi,
    TokenRing,
    Cooked,
    CookedV2,
    CiscoHdlc,
    Loopback,
    Ip,
}

/// Why there is no next layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// What there is, by kind.
    NotIp(&'static str),
    Unusable(&'static str),
}

/// The next layer, and how many bytes before it are the header's.
pub(super) type Next = Result<(Layer, usize), End>;
