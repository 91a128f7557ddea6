"""Which modules are taken and in which order they are loaded. What each needs is as Debian's 6.1 kernel has it (`modinfo`)."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed.image import modules

DEPENDS = {
    "kernel/drivers/virtio/virtio_ring.ko": "",
    "kernel/drivers/virtio/virtio.ko": "virtio_ring",
    "kernel/drivers/virtio/virtio_pci_modern_dev.ko": "",
    "kernel/drivers/virtio/virtio_pci.ko": "virtio_pci_modern_dev,virtio_ring,virtio",
    "kernel/drivers/char/hw_random/virtio-rng.ko": "virtio_ring,virtio",
    "kernel/drivers/net/vxlan/vxlan.ko": "udp_tunnel",
    "kernel/net/ipv4/udp_tunnel.ko": "",
    "kernel/net/netfilter/ipset/ip_set.ko": "",
    "kernel/net/netfilter/nf_tables.ko": "",
    "kernel/net/wireless/cfg80211.ko": "rfkill",
}
"""Of the last the kernel's folder lacks what it needs."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A kernel's modules, half of them compressed."""
    for place, (path, needed) in enumerate(DEPENDS.items()):
        content = b"\x7fELF\0license=GPL\0depends=%b\0retpoline=Y\0" % needed.encode()
        home = tmp_path / path
        home.parent.mkdir(parents=True, exist_ok=True)
        if place % 2:
            home.with_name(f"{home.name}.xz").write_bytes(lzma.compress(content))
        else:
            home.write_bytes(content)
    return tmp_path


def test_modules_are_listed_compressed_or_not(tree: Path) -> None:
    assert modules.listed(tree) == sorted(DEPENDS)


def test_what_is_needed_comes_first_and_once(tree: Path) -> None:
    asked = modules.named(DEPENDS, ["virtio_pci", "virtio-rng"])
    order = modules.loading_order(modules.needs(tree, asked), asked)
    names = [path.rpartition("/")[2] for path in order]
    assert names == ["virtio_ring.ko", "virtio.ko", "virtio_pci_modern_dev.ko", "virtio_pci.ko", "virtio-rng.ko"]


def test_what_is_needed_is_decompressed_and_nothing_else(tree: Path) -> None:
    taken = modules.needs(tree, ["kernel/drivers/virtio/virtio.ko"])
    assert taken == {
        "kernel/drivers/virtio/virtio.ko": ("kernel/drivers/virtio/virtio_ring.ko",),
        "kernel/drivers/virtio/virtio_ring.ko": (),
    }
    assert b"depends=virtio_ring" in (tree / "kernel/drivers/virtio/virtio.ko").read_bytes()
    assert not (tree / "kernel/drivers/virtio/virtio.ko.xz").exists()
    assert (tree / "kernel/drivers/virtio/virtio_pci.ko.xz").exists()


def test_what_a_module_needs_and_the_kernel_lacks_is_named(tree: Path) -> None:
    with pytest.raises(LookupError, match="no module rfkill, which cfg80211 needs"):
        modules.needs(tree, ["kernel/net/wireless/cfg80211.ko"])


def test_dash_and_underscore_are_the_same_in_names() -> None:
    """As in modprobe(8)."""
    assert modules.named(DEPENDS, ["virtio_rng"]) == modules.named(DEPENDS, ["virtio-rng"])


def test_a_module_that_the_kernel_lacks_is_named() -> None:
    with pytest.raises(LookupError, match="no module e1000, tun"):
        modules.named(DEPENDS, ["e1000", "virtio", "tun"])


def test_what_is_built_in_is_not_missed() -> None:
    assert modules.named(DEPENDS, ["virtio", "tun"], ["kernel/drivers/net/tun.ko"]) == ["kernel/drivers/virtio/virtio.ko"]


def test_drivers_that_are_built_in_are_there_too(tree: Path) -> None:
    (tree / "modules.builtin").write_text("kernel/drivers/net/virtio_net.ko\n")
    assert modules.names(tree) >= {"virtio_net", "virtio_pci", "virtio_rng"}
    assert "e1000" not in modules.names(tree)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("kernel/net/netfilter/*.ko", ["nf_tables.ko"]),
        ("kernel/net/netfilter/**/*.ko", ["ip_set.ko", "nf_tables.ko"]),
        ("kernel/drivers/net/*.ko", []),
        ("kernel/drivers/net/vxlan/vxlan.ko", ["vxlan.ko"]),
    ],
)
def test_patterns_stay_in_a_folder_unless_they_say_otherwise(pattern: str, names: list[str]) -> None:
    assert [path.rpartition("/")[2] for path in modules.matching(DEPENDS, [pattern])] == names


def test_a_circle_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"depend on each other: a\.ko b\.ko a\.ko"):
        modules.loading_order({"a.ko": ("b.ko",), "b.ko": ("a.ko",)}, ["a.ko"])


@given(st.data())
def test_every_module_follows_all_it_needs(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    needs = {
        str(number): tuple(map(str, data.draw(st.lists(st.integers(0, number - 1), unique=True)) if number else ()))
        for number in range(count)
    }
    asked = data.draw(st.lists(st.sampled_from(sorted(needs)), unique=True))
    order = modules.loading_order(needs, asked)
    assert len(set(order)) == len(order)
    assert set(asked) <= set(order)
    for place, path in enumerate(order):
        assert set(needs[path]) <= set(order[:place])
