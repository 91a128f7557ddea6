"""Plugins of installed packages: entry points of the groups ``twinbed.drivers``, ``.workloads``, ``.instruments``, ``.formats``
and ``.analyses``, each with the plugin's name and the object that is the plugin.

Metadata of packages are read when a name is no built-in's, or when all are listed. A plugin is imported when it is asked for. A
list leaves out those that cannot be loaded, so that only what needs them fails: a name that is asked for raises PluginError.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar

from twinbed.contracts.analysis import Analysis
from twinbed.contracts.driver import Driver
from twinbed.contracts.format import Format
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.workload import Workload
from twinbed.model.error import TwinbedError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
KINDS: Mapping[str, tuple[str, type]] = {
    "drivers": ("driver", Driver),
    "workloads": ("workload", Workload),
    "instruments": ("instrument", Instrument),
    "formats": ("format", Format),
    "analyses": ("analysis", Analysis),
}
"""Group of entry points without ``twinbed.`` -> what one is called, and the class that its object inherits."""


class PluginError(TwinbedError):
    """A plugin of an installed package cannot be used."""


@dataclass(frozen=True, slots=True)
class Offered:
    """An entry point of an installed package."""

    kind: str
    name: str
    package: str
    version: str
    point: EntryPoint

    @property
    def requirement(self) -> str:
        """Return what pip installs it by."""
        return f"{self.package}=={self.version}"

    def __str__(self) -> str:
        return f"{KINDS[self.kind][0]} {self.name} of {self.package} {self.version}"

    def load(self) -> object:
        """Import the plugin. Raises PluginError."""
        noun, parent = KINDS[self.kind]
        try:
            plugin = self.point.load()
        except (Exception, SystemExit) as error:
            raise self.refused(f"cannot be loaded: {type(error).__name__}: {error}") from error
        if parent not in type(plugin).__mro__:
            raise self.refused(f"is no {parent.__name__}: {self.point.value} is a {type(plugin).__name__}")
        if (name := getattr(plugin, "name", None)) != self.name:
            raise self.refused(f"has another name itself: {name!r}; the {noun} and its entry point need the same one")
        return plugin

    def refused(self, why: str) -> PluginError:
        return PluginError(
            f"{self} {why}", advice=f"`twinbed test-plugin {self.package}` checks it; `pip` updates or removes it"
        )


@cache
def offered(kind: str) -> Mapping[str, tuple[Offered, ...]]:
    """Return name -> entry points of that name, by the metadata of installed packages; nothing is imported."""
    from importlib.metadata import entry_points

    points: dict[str, tuple[Offered, ...]] = {}
    for point in entry_points(group=f"twinbed.{kind}"):
        package, version = (point.dist.name, point.dist.version) if point.dist else ("an unknown package", "")
        points[point.name] = (*points.get(point.name, ()), Offered(kind, point.name, package, version, point))
    return points


def forget() -> None:
    """Forget which packages are installed, and what was loaded of them."""
    offered.cache_clear()
    _loaded.clear()
    _made.clear()


def every_offered() -> Iterator[Offered]:
    """Yield all entry points of installed packages."""
    for kind in KINDS:
        for several in offered(kind).values():
            yield from several


_loaded: dict[tuple[str, str], Offered] = {}


def requirements(plugins: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return which of these plugins (kind and name), used in this process, are of packages: ``workloads.echo`` -> the package
    and its version, as pip installs it."""
    from_packages = {f"{kind}.{name}": _loaded.get((kind, name)) for kind, name in plugins}
    return {plugin: origin.requirement for plugin, origin in from_packages.items() if origin is not None}


def refuse_lack(wanted: Mapping[str, str], where: str) -> None:
    """Check that the packages of ``requirements`` of another process are installed here. Raises PluginError."""
    lacking: dict[str, str] = {}
    for plugin, requirement in wanted.items():
        kind, _, name = plugin.partition(".")
        here = offered(kind).get(name, ()) if kind in KINDS else ()
        if requirement not in [offer.requirement for offer in here]:
            noun = KINDS[kind][0] if kind in KINDS else kind
            lacking[f"{noun} {name} of {requirement}" + "".join(f" (it has {offer.requirement})" for offer in here)] = (
                requirement
            )
    if lacking:
        packages = " ".join(dict.fromkeys(lacking.values()))
        raise PluginError(f"{where} lacks the {', the '.join(lacking)}", advice=f"there: pip install {packages}")


class Extended(Mapping[str, T_co]):
    """The built-in plugins of a kind by name, then those of packages. ``taken`` has further names of built-in plugins."""

    def __init__(
        self, kind: str, builtin: Mapping[str, T_co] | Callable[[], Mapping[str, T_co]], taken: Collection[str] = ()
    ) -> None:
        self.kind, self._builtin, self._taken = kind, builtin, taken

    @property
    def builtin(self) -> Mapping[str, T_co]:
        return self._builtin() if callable(self._builtin) else self._builtin

    def __getitem__(self, name: str) -> T_co:
        """Return a plugin. Raises KeyError if there is none, and PluginError if a package's cannot be used."""
        builtin = self.builtin
        if name in builtin:
            return builtin[name]
        plugin: T_co = self.load(offered(self.kind)[name])
        return plugin

    def load(self, several: tuple[Offered, ...]) -> T_co:
        """Return the plugin of the entry points of a name. Raises PluginError."""
        first = several[0]
        if first.name in self.builtin or first.name in self._taken:
            raise first.refused(f"has the name of twinbed's own {first.name}, which no package replaces; it needs another name")
        if len(several) > 1:
            raise first.refused(f"has the name of the {several[1]}; remove one of the two packages")
        if (plugin := _made.get(first)) is None:
            plugin = _made[first] = first.load()
            _loaded[self.kind, first.name] = first
        return plugin  # type: ignore[return-value]  # ``load`` has checked its class

    def __contains__(self, name: object) -> bool:
        return name in self.builtin or (name in offered(self.kind) and name not in self._taken)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the built-in plugins, then of those of packages that can be loaded."""
        yield from self.builtin
        for name, several in offered(self.kind).items():
            try:
                self.load(several)
            except PluginError:
                continue
            yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)


_made: dict[Offered, object] = {}


class Both(Mapping[str, T_co]):
    """Two mappings as one. The first has precedence."""

    def __init__(self, one: Mapping[str, T_co], other: Mapping[str, T_co]) -> None:
        self.one, self.other = one, other

    def __getitem__(self, name: str) -> T_co:
        return self.one[name] if name in self.one else self.other[name]

    def __contains__(self, name: object) -> bool:
        return name in self.one or name in self.other

    def __iter__(self) -> Iterator[str]:
        yield from self.one
        yield from (name for name in self.other if name not in self.one)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Each(Mapping[str, T_co], Generic[U, T_co]):
    """A mapping whose values a function makes of another's, when they are asked for."""

    def __init__(self, of: Mapping[str, U], make: Callable[[U], T_co]) -> None:
        self._of, self._make = of, make

    def __getitem__(self, name: str) -> T_co:
        return self._make(self._of[name])

    def __contains__(self, name: object) -> bool:
        return name in self._of

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)


def builtin(plugins: Mapping[str, T_co]) -> Mapping[str, T_co]:
    """Return the plugins that are of no package."""
    if isinstance(plugins, Both):
        return {**builtin(plugins.other), **builtin(plugins.one)}
    return plugins.builtin if isinstance(plugins, Extended) else plugins


def state(plugin: str) -> tuple[str, str, bool]:
    """Return the package of a plugin as ``workloads.echo`` with its version, its module, and whether it can be loaded here;
    both texts are empty if no package has it."""
    kind, _, name = plugin.partition(".")
    several = offered(kind).get(name, ()) if kind in KINDS else ()
    if not several:
        return "", "", False
    try:
        several[0].load()
    except PluginError:
        return several[0].requirement, several[0].point.module, False
    return several[0].requirement, several[0].point.module, True
