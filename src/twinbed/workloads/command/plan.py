"""Plan the programs of the workload ``command`` on its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from twinbed.contracts.command import Command
from twinbed.contracts.workload import WorkloadPlan
from twinbed.model import role_texts
from twinbed.model.run import Level
from twinbed.model.template import filled

if TYPE_CHECKING:
    pass

from twinbed.workloads.command.params import CommandParams
from twinbed.workloads.command.programs import ClientProgram, Program, ServerProgram, output_name


def workload_plan(params: CommandParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
    """Plan the programs of all pairs. Raises ValueError for params of a record, which lack the files' contents."""
    if len(params.contents) < len(params.files):
        raise ValueError("the contents of its files are not known here; run the study file")
    if params.roles:
        return _roles_plan(params)
    servers, clients, prepare, warm_up = list[Command](), list[Command](), list[Command](), list[Command]()
    for number, (client, server, address) in enumerate(pairs, start=1):
        places: dict[str, Level] = {
            "server": address,
            "client": f"{{address:{client}}}",
            "pair": number,
            "artifacts": "{artifacts}",
        }
        known = {**params.settings, **places}
        programs = [(server, "server", params.server), (client, "client", params.client)]
        for host, role, program in programs:
            if program is None:
                continue
            started = _command(host, role, program, known)
            steps = enumerate(program.prepare, start=1)
            prepared = replace(started, limit_s=program.limit)
            prepare += [replace(prepared, argv=_fill(argv, known), stdout=f"{role}-prepare-{step}.txt") for step, argv in steps]
            if isinstance(program, ServerProgram):
                servers.append(replace(started, ready=program.ready.sign(), limit_s=program.limit))
            elif isinstance(program, ClientProgram):
                clients.append(replace(started, limit_s=program.limit, exits=program.exit))
                if program.warm_up is not None:
                    warm_up.append(
                        replace(started, argv=_fill(program.warm_up, known), stdout="client-warm-up.txt", limit_s=program.limit)
                    )
    hosts = [host for client, server, _ in pairs for host in (client, server)]
    return WorkloadPlan(
        files=[(host, to, content) for host in hosts for to, content in params.contents.items()],
        executable=frozenset(file.to for file in params.files.values() if file.executable),
        prepare=prepare,
        servers=servers,
        warm_up=warm_up,
        clients=clients,
    )


def _roles_plan(params: CommandParams) -> WorkloadPlan:
    servers, clients, prepare = list[Command](), list[Command](), list[Command]()
    hosts, rounds = params.hosts(), params.rounds()
    for name, of_role in hosts.items():
        role = params.roles[name]
        for number, host in enumerate(of_role, start=1):
            own = role_texts.of_host(host, number)
            known = {**params.settings, **role_texts.places(hosts), **own, "artifacts": "{artifacts}"}

            def argv(texts: Sequence[str], known: Mapping[str, Level] = known) -> tuple[str, ...]:
                return tuple(made for text in texts for made in role_texts.texts(text, known, hosts))

            env = {key: role_texts.filled_in(text, known, hosts) for key, text in role.env.items()}
            started = Command(
                host, argv(role.run), output_name(name), env=env, memory_bytes=role.memory, limit_s=role.limit, exits=role.exit
            )
            steps = enumerate(role.prepare, start=1)
            prepare += [
                replace(started, argv=argv(words), stdout=output_name(name, f"-prepare-{step}")) for step, words in steps
            ]
            if role.ready is None:
                clients.append(started)
            else:
                servers.append(replace(started, ready=role.ready.sign(), round=rounds[name]))
    return WorkloadPlan(
        files=[(host, to, content) for names in hosts.values() for host in names for to, content in params.contents.items()],
        executable=frozenset(file.to for file in params.files.values() if file.executable),
        prepare=prepare,
        servers=servers,
        clients=clients,
        events=params.events,
    )


def _fill(argv: Sequence[str], known: Mapping[str, Level]) -> tuple[str, ...]:
    return tuple(filled(text, known) for text in argv)


def _command(host: str, role: str, program: Program, known: Mapping[str, Level]) -> Command:
    env = {name: filled(text, known) for name, text in program.env.items()}
    return Command(host, _fill(program.run, known), output_name(role), env=env, memory_bytes=program.memory)
