"""``vm info``: the guests of a namespace as minimega itself has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.hosts.error import HostError
from twinbed.model.json import Document, document, documents
from twinbed.testbeds.minimega.socket import CommandSocket

SOURCE = "vm info"


@dataclass(frozen=True, slots=True)
class Machine:
    """A guest: its row of the table, and the data behind it."""

    row: Mapping[str, str]
    data: Document

    @property
    def name(self) -> str:
        return self.row["name"]

    @property
    def state(self) -> str:
        return self.row["state"]

    @property
    def uuid(self) -> str:
        return self.row["uuid"]

    @property
    def node(self) -> str:
        return self.row["host"]

    @property
    def network(self) -> Document:
        """Its first NIC, as minimega understood it."""
        networks = documents(self.data.get("Networks") or [{}])
        return networks[0]

    @property
    def error(self) -> str:
        """Why it is in state ERROR."""
        return str(document(self.data.get("Tags") or {}).get("error", "minimega does not say why")).strip()


def machines(socket: CommandSocket) -> dict[str, Machine]:
    """Name -> guest, of every node. Raises HostError where table and data do not agree."""
    answer = socket.ask("vm", "info")
    try:
        data = {(item["Host"], item["Name"]): item for item in answer.data}
        machines = [Machine(row, data[row["host"], row["name"]]) for row in answer.rows]
    except (KeyError, TypeError) as error:
        raise HostError(f"minimega: `vm info`: its Data are not of its table's guests: {error!r}") from None
    return {machine.name: machine for machine in machines}


def not_failed(machine: Machine, card: str | None) -> None:
    """Raises HostError for a guest that was launched in vain: minimega does not say so when it launches. ``card`` is the NIC
    model that was asked for; one that QEMU lacks is taken for the name of a network."""
    if machine.state not in ("ERROR", "QUIT"):
        return
    why = machine.error if machine.state == "ERROR" else "it has ended"
    driver = machine.network.get("Driver")
    hint = ""
    if card is not None and driver not in (None, card):
        hint = f"; nic {card!r} is no card of QEMU's: minimega took it for a network's name, and {driver!r} for the card"
    raise HostError(f"{machine.name}: minimega says {machine.state}: {why}{hint}")
