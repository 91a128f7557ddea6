"""What installs twinbed elsewhere names things of this repository that are there: the Dockerfile, the workflow."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from twinbed.contracts.command import PRELOAD
from twinbed.hosts.packages import FOR_USERS

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
WORKFLOW = YAML(typ="safe").load((ROOT / ".github/workflows/release.yml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()


def scripts(text: str) -> list[str]:
    """Scripts of the repository that are started in it, or read (``. name``)."""
    return re.findall(r"(?:^|[\s\"/])(?:\./)?(packaging/\w+\.sh|(?<!packaging/)\w+\.sh)\b", text)


@pytest.mark.parametrize(
    "file",
    [
        *("Dockerfile", "Makefile", ".devcontainer/devcontainer.json", ".github/workflows/release.yml"),
        *("packaging/clean.sh", "packaging/cross.sh"),
    ],
)
def test_scripts_that_are_named_are_there(file: str) -> None:
    named = scripts((ROOT / file).read_text())
    assert named
    for name in named:
        script = ROOT / name if (ROOT / name).exists() else ROOT / "packaging" / name
        assert os.access(script, os.X_OK) or script.name == "fresh.sh", name  # which is read
        assert script.read_text().startswith("#"), name


def test_the_dockerfile_installs_by_the_packages_own_commands() -> None:
    stages = dict(re.findall(r"^FROM (\S+)(?: AS (\w+))?$", DOCKERFILE, re.M))
    copied = re.findall(r"^COPY --from=(\w+) (\S+)", DOCKERFILE, re.M)
    assert [source for source, _ in copied] == ["build"]
    assert "build" in stages.values()
    assert copied[0][1] == "/src/dist/"
    assert "--out dist" in (ROOT / "packaging/wheel.sh").read_text()
    (purposes,) = re.findall(r"twinbed setup ([\w ]+) --yes", DOCKERFILE)
    assert set(purposes.split()) <= set(FOR_USERS)


def test_the_development_container_is_a_stage_of_it() -> None:
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert re.search(rf"^FROM \S+ AS {container['build']['target']}$", DOCKERFILE, re.M)
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"


def steps(job: str) -> list[dict[str, Any]]:
    return list(WORKFLOW["jobs"][job]["steps"])


def test_only_a_tag_publishes_and_only_what_was_tried() -> None:
    publish = WORKFLOW["jobs"]["publish"]
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(publish["needs"]) == set(WORKFLOW["jobs"]) - {"publish"}
    assert publish["permissions"] == {"id-token": "write"}
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert not any("secrets." in str(job) for job in WORKFLOW["jobs"].values())


def test_the_workflow_calls_targets_of_the_makefile() -> None:
    targets = re.findall(r"make (\w+)", str([step.get("run") for step in steps("wheel")]))
    assert targets == ["dist"]
    assert re.search(r"^dist:$", MAKEFILE, re.M)
    uploaded = next(step["with"] for step in steps("wheel") if "upload-artifact" in str(step.get("uses")))
    names = {
        uploaded["name"].replace("${{ matrix.architecture }}", each["architecture"])
        for each in WORKFLOW["jobs"]["wheel"]["strategy"]["matrix"]["include"]
    }
    given = {
        job: next(step["with"]["name"] for step in steps(job) if "download-artifact" in str(step.get("uses")))
        for job in ("try", "clean")
    }
    assert given["clean"] in names
    machines = WORKFLOW["jobs"]["try"]["strategy"]["matrix"]["machine"]
    assert {given["try"].replace("${{ matrix.machine.architecture }}", each["architecture"]) for each in machines} == names


def test_the_wheel_has_what_git_ignores() -> None:
    """The two programs for hosts are where the code looks for them, and wheel.sh puts both there."""
    script = (ROOT / "packaging/wheel.sh").read_text()
    assert re.search(r"^programs=src/twinbed/bin$", script, re.M)
    for program in ("twinbed-probe", PRELOAD):
        assert f"$programs/{program}" in script


def test_templates_are_read_as_forms() -> None:
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = YAML(typ="safe").load(path.read_text())
        assert {"name", "description", "body"} <= set(form), path
        assert all(part["attributes"]["label"] for part in form["body"])
