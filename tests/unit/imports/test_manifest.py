"""Manifests: what they may say, and what they are refused for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed.imports.layout.manifest import Described, read_csv, read_passport, read_yaml
from twinbed.imports.layout.run_key import FileKey, ImportRefused, NotAssigned

CSV = "path,testbed,replicate,host,format,n,offload\na/b.txt,kvm,01,client,line,10,on\n./c.txt,kvm,,,,,off\n"


@pytest.mark.parametrize("text", [CSV, CSV.replace(",", ";"), CSV.replace(",", "\t"), "\ufeff" + CSV.replace("\n", "\r\n")])
def test_a_row_is_a_file(text: str) -> None:
    listed = read_csv(text, "files.csv")
    assert listed.assign("a/b.txt") == FileKey("kvm", {"n": 10, "offload": "on"}, "1", "client", "line")
    assert listed.assign("c.txt") == FileKey("kvm", {"n": None, "offload": "off"})
    with pytest.raises(NotAssigned, match="is not in the manifest"):
        listed.assign("d.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no column 'path'; its header is empty"),
        ("path,n\na,1\n", "has no column 'testbed'"),
        ("path,testbed,n,n\n", "'n' occurs twice"),
        ("path,testbed,\n", "a column has no name"),
        ("path,testbed\na\n", "row 2 has 1 columns, the header 2"),
        ("path,testbed\na,\n", "row 2: a has no testbed"),
        ("path,testbed\na,x\na,y\n", "row 3: a is listed twice"),
        ("path,testbed\n/etc/passwd,x\n", "row 2: /etc/passwd is not a path below the folder"),
        ("path,testbed\nx/../../y,x\n", "leads out of the folder"),
        ('path,testbed\na,"x\x1b[31m"\n', "has no plain text as testbed"),
        ('path,testbed\n"a,x\n', "is not CSV"),
    ],
)
def test_a_wrong_row_is_named(text: str, said: str) -> None:
    with pytest.raises(ImportRefused, match=re.escape(said)):
        read_csv(text, "files.csv")


YAML = """
reference: physical
testbeds:
  physical:
    link: {rate: 10gbit, mtu: 9000}
    facts: {kernel: 4.9.0, nic: {driver: ixgbe}}
  kvm:
files:
  - pattern: '{testbed}/{n:int}/{host}.csv'
    format: csv
    options: {columns: {rate: frames}}
    metrics: [{name: frames, unit: 1/s}]
  - regex: '(?P<n>\\d+)\\.txt'
    testbed: physical
    levels: {offload: on}
"""


def test_yaml_has_patterns_with_formats_and_what_testbeds_are() -> None:
    manifest = read_yaml(YAML, "import.yaml")
    assigner = manifest.assigner()
    found = assigner.assign("kvm/3/client.csv")
    assert (found.testbed, found.levels, found.host, found.format) == ("kvm", {"n": 3}, "client", "csv")
    assert (found.options, found.metrics[0].name) == ({"columns": {"rate": "frames"}}, "frames")
    assert assigner.assign("7.txt") == FileKey("physical", {"offload": "on", "n": 7})
    physical = manifest.testbeds["physical"]
    assert physical is not None and physical.link is not None
    assert (physical.link.rate, physical.facts["nic"], manifest.expressions) == (10**10, {"driver": "ixgbe"}, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("files: []", "import.yaml:1:8: files: "),
        ("files:\n- pattern: '{a}'", "import.yaml:2:3: '{a}' gives no testbed"),
        ("files:\n- pattern: a\n  regex: b", "either a pattern or a regex"),
        ("files:\n- pattern: '{testbed}'\n  levels: {host: a}", "host is not a factor"),
        ("files:\n- {pattern: '{testbed}', formt: x}", "import.yaml:2:33: files.0.formt: "),
        ("- a", "is not a mapping"),
        ("", "is empty"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_manifest_says_where(text: str, said: str) -> None:
    with pytest.raises(ImportRefused, match=re.escape(said)):
        read_yaml(text, "import.yaml")


def test_a_passport_is_facts_of_testbeds() -> None:
    found = read_passport("physical:\n  measured: 2019-03-01\n  nic: {driver: mlx5}\n", "p.yaml")
    assert found == {"physical": Described(facts={"measured": "2019-03-01", "nic": {"driver": "mlx5"}})}
    with pytest.raises(ImportRefused, match=re.escape("p.yaml:1:11: physical: is not a mapping of facts")):
        read_passport("physical: mlx5", "p.yaml")
    with pytest.raises(ImportRefused, match=re.escape("physical.nics: is not text, a number")):
        read_passport("physical: {nics: [a, b]}", "p.yaml")


@given(st.text(max_size=200))
def test_any_text_is_a_manifest_or_is_refused(text: str) -> None:
    for reader in (read_csv, read_yaml, read_passport):
        try:
            reader(text, "x")
        except ImportRefused as error:
            assert error.message
