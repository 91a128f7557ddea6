"""Results in a real S3 server: what is read there is what the folder says, or a clear error."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from s3_server import Answer, Proxy, environment, s3_server
from synthetic_results import planted_response, write_study
from twinbed.analyses.compare.method import analysis as compare
from twinbed.results.bucket import remote
from twinbed.results.bucket.address import Address, address_of
from twinbed.results.bucket.objects import BucketError, Objects
from twinbed.results.bucket.publish import Published, Publisher
from twinbed.results.bucket.snapshot import latest
from twinbed.results.extract import extract
from twinbed.results.store import Store
from twinbed.workloads.planted import planted

RATIOS = {"physical": 1.0, "slow": 0.5}
"""What was planted: the rate of each testbed."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with s3_server(tmp_path_factory.mktemp("s3")) as port:
        yield port


@pytest.fixture
def proxy(server: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with Proxy(server).running() as proxy:
        for name, value in environment(proxy.port).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(remote, "_RETRY", {"max_retries": 2})
        yield proxy


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Address:
    found = address_of(f"s3://bucket/{request.node.name.replace('[', '-').replace(']', '')}")
    assert found
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(
        tmp_path_factory.mktemp("results") / "study", list(RATIOS), {}, 6, planted_response(RATIOS, 0.01, seed=3)
    )


def opened(folder: Path) -> Store:
    return extract(folder, {"planted": planted}, {})


def publish(folder: Path, address: Address) -> Published:
    return Publisher(opened(folder), address, "0", raw=True).publish()


def part_of(folder: Path, to: Path, keep: slice) -> Path:
    """The same results with some of the runs only."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("tables"))
    for run in set(runs := sorted((to / "runs").iterdir())) - set(runs[keep]):
        shutil.rmtree(run)
    return to


def says_the_same(address: Address, folder: Path) -> None:
    here, there = opened(folder), opened(address)
    assert there.records == here.records
    assert (there.planned, there.digests, there.link_checks) == (here.planned, here.digests, here.link_checks)
    assert there.names() == here.names()
    for name in here.names():
        order = [(column, "ascending") for column in here.table(name).column_names]
        assert there.table(name).sort_by(order).equals(here.table(name).sort_by(order)), name
    assert compare.run(there).comparisons == compare.run(here).comparisons


def test_what_is_read_is_what_the_folder_says(proxy: Proxy, address: Address, folder: Path) -> None:
    assert publish(folder, address).added == 12
    proxy.asked.clear()
    says_the_same(address, folder)
    (rate,) = [each for each in compare.run(opened(address)).comparisons if each.metric == "requests_per_second"]
    assert rate.ratio == pytest.approx(RATIOS["slow"], rel=0.02)


def test_artifacts_are_published_and_not_read(proxy: Proxy, address: Address, folder: Path) -> None:
    publish(folder, address)
    sent = {path for method, path in proxy.asked if method == "PUT"}
    proxy.asked.clear()
    says_the_same(address, folder)
    read = {path for method, path in proxy.asked if method == "GET"}
    assert len([path for path in sent - read if "/objects/" in path]) == 12, "one object a run"
    assert {method for method, _ in proxy.asked} == {"GET"}


def test_publishing_again_sends_no_run_again(proxy: Proxy, address: Address, folder: Path, tmp_path: Path) -> None:
    publish(part_of(folder, tmp_path / "first", slice(0, 7)), address)
    proxy.asked.clear()
    assert publish(folder, address).added == 5
    assert len(set(proxy.asked)) < 5 + 20, "five runs' artifacts, and not those of twelve beside tables and lists"
    says_the_same(address, folder)
    assert publish(folder, address) == Published(2, 12, 0, pytest.approx(0, abs=10_000))


def test_many_publish_at_once(proxy: Proxy, address: Address, folder: Path, tmp_path: Path) -> None:
    """Each lays its runs beside those of the others: none is lost, none is there twice."""
    parts = [part_of(folder, tmp_path / str(at), slice(3 * at, 3 * at + 3)) for at in range(4)]
    for part in parts:
        opened(part)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda part: publish(part, address), parts))
    assert sorted(each.snapshot for each in done) == [1, 2, 3, 4]
    assert max(each.runs for each in done) == 12
    says_the_same(address, folder)


def test_failures_that_pass_are_not_noticed(proxy: Proxy, address: Address, folder: Path) -> None:
    seen: dict[tuple[str, str], int] = {}

    def first_fails(method: str, path: str, ask):
        seen[method, path] = seen.get((method, path), 0) + 1
        return Answer(503, [], b"") if seen[method, path] == 1 else ask()

    proxy.fault = first_fails
    publish(folder, address)
    seen.clear()
    says_the_same(address, folder)


def test_a_slow_server(proxy: Proxy, address: Address, folder: Path) -> None:
    def slow(method: str, path: str, ask):
        time.sleep(0.02)
        return ask()

    proxy.fault = slow
    publish(folder, address)
    says_the_same(address, folder)


@pytest.mark.parametrize("where", ["/objects/", "/snapshots/"])
def test_a_server_that_fails_leaves_what_was_there(
    proxy: Proxy, address: Address, folder: Path, tmp_path: Path, where: str
) -> None:
    first = part_of(folder, tmp_path / "first", slice(0, 6))
    publish(first, address)
    proxy.fault = lambda method, path, ask: Answer(500, [], b"") if method == "PUT" and where in path else ask()
    with pytest.raises(BucketError, match="500"):
        publish(folder, address)
    assert opened(address).records == opened(first).records
    proxy.fault = lambda method, path, ask: ask()
    assert publish(folder, address).added == 6
    says_the_same(address, folder)


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_an_answer_to_the_commit_that_is_lost(proxy: Proxy, address: Address, folder: Path, lost: int) -> None:
    """The server has done what was asked. Asked again it says that there is one already: that is our own."""
    times = 0

    def lose(method: str, path: str, ask):
        nonlocal times
        answer = ask()
        if method == "PUT" and "/snapshots/" in path:
            times += 1
            if times <= lost:
                return None
        return answer

    proxy.fault = lose
    if lost <= 2:
        assert publish(folder, address).added == 12
    else:
        with pytest.raises(BucketError):
            publish(folder, address)
    proxy.fault = lambda method, path, ask: ask()
    assert publish(folder, address).snapshot == 1
    says_the_same(address, folder)


@pytest.mark.parametrize("how", ["cut once", "cut always", "other bytes", "short"])
def test_an_object_that_arrives_in_part(proxy: Proxy, address: Address, folder: Path, how: str) -> None:
    publish(folder, address)
    seen: set[str] = set()

    def harm(method: str, path: str, ask):
        answer = ask()
        if "/objects/" not in path or (how == "cut once" and path in seen):
            return answer
        seen.add(path)
        half = len(answer.body) // 2
        if how.startswith("cut"):
            answer.cut = half
        elif answer.status == 200:
            answer.body = answer.body[:half] if how == "short" else answer.body[:half] + bytes(len(answer.body) - half)
        return answer

    proxy.fault = harm
    if how == "cut once":
        says_the_same(address, folder)
    else:
        with pytest.raises(BucketError):
            opened(address)


def test_an_upload_that_is_stored_in_part(proxy: Proxy, address: Address, folder: Path) -> None:
    """Half of an object under its name, as a broken gateway leaves it: whoever reads it is told, by its name."""
    publish(folder, address)
    snapshot = latest(Objects(address))
    assert snapshot
    import obstore
    from obstore.store import from_url

    bucket = from_url(str(address), client_options={"allow_http": True})
    stored = snapshot.batches[0].tables["metrics"][0]
    content = bytes(obstore.get(bucket, stored.name).bytes())
    obstore.put(bucket, stored.name, content[: len(content) // 2])
    with pytest.raises(BucketError, match=f"{stored.name} differs from what was put there"):
        opened(address).table("metrics")


def test_an_object_that_grew(proxy: Proxy, address: Address, folder: Path) -> None:
    """The size is known before: none of it is taken."""
    publish(folder, address)
    snapshot = latest(Objects(address))
    assert snapshot
    import obstore
    from obstore.store import from_url

    stored = snapshot.batches[0].tables["metrics"][0]
    obstore.put(from_url(str(address), client_options={"allow_http": True}), stored.name, bytes(32 * 2**20))
    with pytest.raises(BucketError, match=f"{stored.name} has 33,554,432 bytes, more than the allowed {stored.bytes:,}"):
        opened(address).table("metrics")


def test_no_right_to_read(proxy: Proxy, address: Address, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(folder, address)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(BucketError) as refused:
        Store.open(address)
    assert "AWS_ACCESS_KEY_ID" in refused.value.advice
    assert "another" not in str(refused.value)
