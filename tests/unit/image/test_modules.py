"""Loading order of kernel modules. The excerpt is what depmod (kmod 30) wrote for Debian's 6.1 kernel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed.image import modules

DEP = """\
kernel/drivers/virtio/virtio_ring.ko:
kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/virtio/virtio_pci_modern_dev.ko:
kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio_pci_modern_dev.ko kernel/drivers/virtio/virtio.ko \
kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/char/hw_random/virtio-rng.ko: kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/net/vxlan/vxlan.ko: kernel/net/ipv4/udp_tunnel.ko
kernel/net/ipv4/udp_tunnel.ko:
kernel/net/netfilter/ipset/ip_set.ko:
kernel/net/netfilter/nf_tables.ko:
"""


def test_modules_dep_is_read() -> None:
    needs = modules.dependencies(DEP)
    assert needs["kernel/drivers/virtio/virtio.ko"] == ("kernel/drivers/virtio/virtio_ring.ko",)
    assert needs["kernel/net/netfilter/nf_tables.ko"] == ()


def test_a_line_without_colon_is_an_error() -> None:
    with pytest.raises(ValueError, match="no colon"):
        modules.dependencies("kernel/a.ko\n")


def test_what_is_needed_comes_first_and_once() -> None:
    needs = modules.dependencies(DEP)
    order = modules.loading_order(needs, modules.named(needs, ["virtio_pci", "virtio-rng"]))
    names = [path.rpartition("/")[2] for path in order]
    assert names == ["virtio_pci_modern_dev.ko", "virtio_ring.ko", "virtio.ko", "virtio_pci.ko", "virtio-rng.ko"]


def test_dash_and_underscore_are_the_same_in_names() -> None:
    """As in modprobe(8)."""
    needs = modules.dependencies(DEP)
    assert modules.named(needs, ["virtio_rng"]) == modules.named(needs, ["virtio-rng"])


def test_a_module_that_the_kernel_lacks_is_named() -> None:
    with pytest.raises(LookupError, match="no module e1000, tun"):
        modules.named(modules.dependencies(DEP), ["e1000", "virtio", "tun"])


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
    found = modules.matching(modules.dependencies(DEP), [pattern])
    assert [path.rpartition("/")[2] for path in found] == names


def test_a_circle_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"need each other: a\.ko b\.ko a\.ko"):
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
