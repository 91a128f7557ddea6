"""An agent's answer about a NIC, and what is derived from it. Names of features are the kernel's."""

from __future__ import annotations

from typing import Any

import pytest

from nic_states import nic_state

FEATURES = {
    "rx-checksum": True,
    "tx-checksum-ip-generic": True,
    "tx-checksum-ipv4": False,
    "tx-scatter-gather": False,
    "tx-scatter-gather-fraglist": False,
    "tx-tcp-accecn-segmentation": True,
    "tx-tcp-segmentation": False,
    "tx-generic-segmentation": False,
    "tx-gso-robust": True,
}


def test_an_offload_is_on_where_any_of_its_features_is() -> None:
    assert nic_state(features=FEATURES).offloads == {
        "sg": "off",
        "tso": "off",
        "gso": "off",
        "rx": "on",
        "tx": "on",
        "gro": None,
    }
    assert set(nic_state().offloads.values()) == {None}


@pytest.mark.parametrize(("windows", "least"), [([None], 10), ([4, None], 4), ([32], 32), ([], None)])
def test_the_initial_window_is_the_least_of_the_routes(windows: list[int | None], least: int | None) -> None:
    routes = [{"initial_window": window, "quickack": False} for window in windows]
    assert nic_state(routes=routes).initial_window == least


@pytest.mark.parametrize(
    "wrong", [{"mtu": "1500"}, {"up": 1}, {"features": {"rx-gro": "on"}}, {"routes": [{}]}, {"addresses": None}]
)
def test_another_answer_is_refused_by_the_name_of_what_is_wrong(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        nic_state(**wrong)
