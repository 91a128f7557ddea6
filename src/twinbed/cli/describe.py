"""``twinbed describe``: explain settings, metrics and factors, and the values that they take."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

import click

from twinbed import registry
from twinbed.contracts.installed import PluginError
from twinbed.model.near import did_you_mean, nearest
from twinbed.model.units import QUANTITIES
from twinbed.study.declared import KEY, TITLES, Declared, Kind, Subject, declared, factor_paths, subjects, written
from twinbed.study.params import also_of
from twinbed.terminal import say

WIDTH = 80
_OWN_FACTORS: Mapping[str, str] = {
    "testbed": "levels are names of testbeds; without this factor, every testbed is a level",
    "instruments": "each level is an instrument, a list of them, or none, such as [none, packets, [packets, counters]]",
}


@click.command("describe")
@click.argument("names", metavar="[NAME]...", nargs=-1)
def command(names: tuple[str, ...]) -> None:
    """Explain a setting, metric or factor of studies: its type, default, allowed values and an example.

    \b
    Examples:
      twinbed describe                        list all names
      twinbed describe qemu topology.link     the settings of a driver and of a key
      twinbed describe metric rtt             one metric

    NAME is a key of a study file, a driver, a workload, a background load, an instrument, or a setting of one of these.
    The words `metric` and `factor` alone list all metrics and factors; `units` explains sizes, rates, durations and shares.
    """
    catalogue = registry.catalogue()
    every = subjects(catalogue)
    sort = names[0] if names else ""
    if not names:
        lines: Iterable[str] = _contents(every)
    elif sort == "metric":
        lines = _each(names[1:], _metric) if names[1:] else _metrics()
    elif sort == "factor":
        paths = factor_paths(catalogue)
        factors = [
            (subject, setting)
            for subject in every
            for setting in subject.settings
            if subject.path_of(setting) in paths and not setting.models
        ]
        lines = _each(names[1:], lambda name: _factor(name, factors)) if names[1:] else _factors(factors)
    else:
        lines = _each(names, lambda name: _named(name, every))
    say(*lines)


def _contents(every: Sequence[Subject]) -> Iterator[str]:
    for sort, title in TITLES.items():
        yield f"{title}:"
        yield from _listed({subject.name: subject.about for subject in every if subject.sort == sort})
        yield ""
    yield "More:"
    yield from _listed(
        {
            "SETTING": "any setting by its name, such as keep_alive",
            "metric [NAME]": "a metric; without a name, all of them",
            "factor [NAME]": "a setting as a factor; without a name, all of them",
            "units": "how to write sizes, rates, durations and shares",
        }
    )


def _each(names: Sequence[str], describe: Callable[[str], Iterator[str]]) -> Iterator[str]:
    for index, name in enumerate(names):
        if index:
            yield ""
        yield from describe(name)


def _named(name: str, every: Sequence[Subject]) -> Iterator[str]:
    """Yield the description of a subject, a setting, a metric, or of how quantities are written."""
    named = [subject for subject in every if subject.name == name]
    settings: dict[Declared, list[Subject]] = {}
    """Each setting with all subjects that have it alike."""
    for subject in every:
        for setting in subject.settings:
            if name in (setting.name, subject.path_of(setting)) and subject not in named:
                settings.setdefault(setting, []).append(subject)
    metrics = () if named or settings else registry.every_metric()
    if name == "units":
        yield from _units()
    elif named or settings:
        for index, subject in enumerate(named):
            yield from ([""] if index else []) + list(_subject(subject, every))
        for index, (setting, having) in enumerate(settings.items()):
            if index or named:
                yield ""
            yield from _wrapped("In " + ", ".join(_with_sort(subject) for subject in having) + ":", "")
            yield from _setting(setting, every)
    elif name in metrics:
        yield from _metric(name)
    else:
        _refuse_broken(name)
        known = {subject.name for subject in every} | {setting.name for subject in every for setting in subject.settings}
        also = {name: [*words] for name, words in registry.catalogue().also.items()}
        for model in (subject.model for subject in every if subject.model is not None):
            for setting_name, words in also_of(model).items():
                also.setdefault(setting_name, []).extend(words)
        _unknown(name, "a setting, metric or plugin", [*known, *metrics, "units"], "twinbed describe", also)


def _refuse_broken(name: str) -> None:
    """Raise PluginError for a plugin of a package that cannot be used."""
    for offer, plugin in registry.of_packages():
        if offer.name == name and isinstance(plugin, PluginError):
            raise plugin


def _subject(subject: Subject, every: Sequence[Subject]) -> Iterator[str]:
    yield from _wrapped(f"{subject.name}: {subject.about}", "")
    yield ""
    yield from _wrapped(subject.example, "  ", "      ")
    for setting in subject.settings:
        yield ""
        yield from _setting(setting, every)


def _with_sort(subject: Subject) -> str:
    return subject.name if subject.sort == KEY else f"{subject.sort} {subject.name}"


def _setting(setting: Declared, every: Sequence[Subject], indent: str = "  ") -> Iterator[str]:
    inner = indent + "    "
    yield f"{indent}{setting.name}" + (" (required)" if setting.required else "")
    yield from _wrapped(setting.about, inner)
    yield from _wrapped(f"allowed: {setting.allowed()}", inner, inner + "  ")
    if setting.default:
        yield from _wrapped(f"default: {setting.default}", inner, inner + "  ")
    for example in setting.examples[:1]:
        yield from _wrapped(f"example: {setting.name}: {written(example)}", inner, inner + "  ")
    for kind in setting.models:
        yield from _inside(kind, every, inner)


def _inside(kind: Kind, every: Sequence[Subject], indent: str) -> Iterator[str]:
    """Yield the settings of a mapping within a setting: those that no subject has, and where the others are described."""
    own: tuple[Declared, ...] = () if kind.model is None else declared(kind.model)
    alike = max((subject for subject in every if set(subject.settings) <= set(own)), key=lambda subject: len(subject.settings))
    if alike.settings:
        own = tuple(setting for setting in own if setting not in alike.settings)
        fixed = [setting for setting in own if len(setting.kinds[0].choices) == 1]
        own = tuple(setting for setting in own if setting not in fixed)
        which = "".join(f"with {setting.name}: {setting.kinds[0].choices[0]}, " for setting in fixed)
        yield from _wrapped(f"{which}settings as in `twinbed describe {alike.name}`", indent, indent + "  ")
    for setting in own:
        yield from _setting(setting, every, indent + "  ")


def _units() -> Iterator[str]:
    for quantity in QUANTITIES:
        yield from _wrapped(f"{quantity.name}: {quantity.allowed}", "", "    ")
    yield ""
    yield from _wrapped("The unit bps is refused, since it means bytes to tc and bits to everybody else.", "")


def _metrics() -> Iterator[str]:
    every = registry.every_metric()
    yield from _listed(
        {name: f"{metric.unit}; {metric.description}" for name, (metric, _) in every.items() if "_per_" not in name}
    )
    yield ""
    yield from _wrapped("A metric that grows with the work is also measured per unit of work, such as packets_per_request.", "")


def _metric(name: str) -> Iterator[str]:
    every = registry.every_metric()
    if name not in every:
        _unknown(name, "a metric", every, "twinbed describe metric", {key: of.also for key, (of, _) in every.items()})
    metric, measured_by = every[name]
    yield from _wrapped(f"{name}: {metric.description}", "")
    rows = {
        "unit": metric.unit,
        "layer": metric.layer.value,
        "scale": metric.scale.value,
        "measured by": ", ".join(measured_by),
        "shown": "in the summary" if metric.headline else "with --all",
    }
    for what, text in rows.items():
        yield from _wrapped(f"{what}: {text}", "  ", "    ")


def _factors(factors: Sequence[tuple[Subject, Declared]]) -> Iterator[str]:
    yield from _listed(_OWN_FACTORS)
    yield ""
    yield from _wrapped(", ".join(dict.fromkeys(setting.name for _, setting in factors)), "  ")
    yield ""
    yield from _wrapped("`twinbed describe factor NAME` explains a factor and its levels.", "")


def _factor(name: str, factors: Sequence[tuple[Subject, Declared]]) -> Iterator[str]:
    if name in _OWN_FACTORS:
        yield from _wrapped(f"{name}: {_OWN_FACTORS[name]}", "", "    ")
        return
    alike: dict[tuple[str, Declared], list[Subject]] = {}
    for subject, setting in factors:
        if name in (setting.name, subject.path_of(setting)):
            alike.setdefault((subject.path_of(setting), setting), []).append(subject)
    if not alike:
        _unknown(name, "a factor", [*(setting.name for _, setting in factors), *_OWN_FACTORS], "twinbed describe factor")
    for index, ((path, setting), having) in enumerate(alike.items()):
        if index:
            yield ""
        yield from _wrapped("In " + ", ".join(map(_with_sort, having)) + ":", "")
        yield from _wrapped(setting.about, "    ")
        yield from _wrapped(f"levels: {setting.allowed()}", "    ", "      ")
        levels = [*([setting.default] if setting.default else []), *map(written, setting.examples)]
        few = ", ".join(list(dict.fromkeys(levels))[:2])
        yield from _wrapped(f"example: factors: {{{setting.name}: [{few}]}}", "    ", "      ")
        yield from _wrapped(f"its full path, where another setting of the study has the same name: {path}", "    ", "      ")


def _unknown(
    name: str, what: str, names: Iterable[str], command: str, also: Mapping[str, Sequence[str]] | None = None
) -> NoReturn:
    near = nearest(name, names, also)
    hint = f" {did_you_mean(near).replace('did', 'Did', 1)}" if near else ""
    raise click.UsageError(f"{name!r} is not {what}.{hint} `{command}` lists all names.")


def _listed(rows: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each row, cut at ``WIDTH``."""
    width = min(24, max(map(len, rows)))
    for name, text in rows.items():
        head = f"  {name:<{width}}  "
        yield (head + textwrap.shorten(text, WIDTH - len(head), placeholder=" ...")).rstrip()


def _wrapped(text: str, indent: str, then: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if then is None else then,
        break_long_words=False,
        break_on_hyphens=False,
    )
