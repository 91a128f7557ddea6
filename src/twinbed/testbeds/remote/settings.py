"""What a study file may set of hosts over SSH."""

from __future__ import annotations

from ipaddress import IPv4Interface
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from twinbed.contracts.host_settings import HostSettings, OnOff
from twinbed.hosts.session import FOLDER
from twinbed.hosts.ssh import Address, destination
from twinbed.model.declaration import TextAlone
from twinbed.model.units import Duration


class RemoteHost(BaseModel):
    """One host. In a study file a text alone is its ``ssh``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ssh: str = Field(min_length=1, examples=["root@c1"], description="USER@HOST, HOST or a Host entry of the ssh configuration")
    nic: str | None = Field(
        None,
        min_length=1,
        max_length=15,
        examples=["eth1"],
        description="the NIC of the experiment link; null: the only one that it can be",
    )
    port: int | None = Field(None, ge=1, le=65535, examples=[2222], description="sshd's; null: what ssh's configuration says")
    config: Path | None = Field(
        None,
        examples=["lab.conf"],
        description="an ssh configuration file in place of your own: who, where, with which key; it is read where the"
        " command has `--ssh-config` with the same file",
    )
    address: IPv4Interface | None = Field(
        None,
        examples=["10.0.0.2/24"],
        description="on the experiment link, such as 10.0.0.2/24; null: one of twinbed's own, 10.77.PAIR.1 or .2",
    )
    folder: str = Field(
        FOLDER, pattern="^/[^\\s]+$", description="where the probe, the image and artifacts go; only root may write there"
    )

    @model_validator(mode="before")
    @classmethod
    def _text_alone(cls, given: object) -> object:
        return {"ssh": given} if isinstance(given, str) else given

    _plain = field_validator("ssh")(destination)

    def reached(self, name: str) -> Address:
        return Address(name, self.ssh, self.port, self.config.expanduser() if self.config else None)


class RemoteSettings(HostSettings):
    """Which hosts, and how they are used."""

    hosts: dict[str, Annotated[RemoteHost, TextAlone("ssh")]] = Field(
        examples=[{"client": "root@c1", "server": "root@s1"}],
        description="client and server, or client1, server1 and so on: each host's way in",
    )
    image: Literal["archive", "none"] = Field(
        "archive", description="archive: the hosts run twinbed's image; none: the tools that are installed on them"
    )
    smt: OnOff | None = Field(
        None, description="simultaneous multithreading (hyperthreading) of the hosts while they are leased; null: as it is"
    )
    lease: Duration = Field(
        30.0, ge=2, le=3600, description="a host that has not heard of twinbed for so long puts everything back by itself"
    )

    @model_validator(mode="after")
    def _own_cpus(self) -> RemoteSettings:
        if self.cpus == "shared":
            raise ValueError(
                "cpus: shared is of hosts on one machine, and hosts over SSH have CPUs of their own: use cpus: auto"
            )
        return self

    @model_validator(mode="after")
    def _each_once(self) -> RemoteSettings:
        ways: dict[tuple[object, ...], str] = {}
        for name, host in self.hosts.items():
            first = ways.setdefault((host.ssh, host.port, host.config), name)
            if first != name:
                raise ValueError(f"hosts: {first} and {name} are the same host ({host.ssh}): each needs one of its own")
        return self

    def estimate_seconds(self) -> float:
        """What a run takes beside its workload."""
        return 1.5
