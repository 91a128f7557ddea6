"""Servers that do not end: what is asked of them does, by time and by bytes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from s3_server import environment
from twinbed.results.bucket import remote
from twinbed.results.bucket.address import address_of
from twinbed.results.bucket.objects import BucketError, Objects, TooLargeObject

LIST = (
    '<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated>'
    "<NextContinuationToken>{at}</NextContinuationToken>{keys}</ListBucketResult>"
)
KEY = (
    "<Contents><Key>p/snapshots/{at}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><Size>1</Size>"
    '<ETag>"x"</ETag></Contents>'
)


class _Handler(BaseHTTPRequestHandler):
    """A server that answers as a test says, in ``answers``."""

    protocol_version = "HTTP/1.1"
    answers: Callable[[BaseHTTPRequestHandler], None]

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        with_errors = (BrokenPipeError, ConnectionResetError)
        try:
            self.server.answers(self)  # type: ignore[attr-defined]
        except with_errors:
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answers: Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, value in environment(server.server_port).items():
            monkeypatch.setenv(name, value)
        yield server
        server.shutdown()


def objects() -> Objects:
    address = address_of("s3://bucket/p")
    assert address
    return Objects(address)


def head(handler: BaseHTTPRequestHandler, **headers: str) -> None:
    handler.send_response(200)
    for name, value in {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT", "ETag": '"x"', **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def test_a_byte_now_and_then(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes come until the deadline: that none comes is not what ends it."""
    sent = itertools.count()
    stop = threading.Event()

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        head(handler, Content_Length="1000")
        while not stop.wait(0.05):
            next(sent)
            handler.wfile.write(b"x")
            handler.wfile.flush()

    server.answers = trickle
    monkeypatch.setattr(remote, "DEADLINE_S", 1.0)
    with pytest.raises(BucketError, match="s3://bucket/p: objects/x did not arrive in time"):
        objects().read("objects/x", 1000)
    stop.set()
    assert next(sent) > 2


@pytest.mark.parametrize("keys", [0, 1000])
def test_a_list_without_end(server: _Server, monkeypatch: pytest.MonkeyPatch, keys: int) -> None:
    pages = itertools.count()

    def page(handler: BaseHTTPRequestHandler) -> None:
        at = next(pages)
        body = LIST.format(at=at, keys="".join(KEY.format(at=at * 1000 + key) for key in range(keys))).encode()
        head(handler, Content_Length=str(len(body)))
        handler.wfile.write(body)

    server.answers = page
    monkeypatch.setattr(remote, "DEADLINE_S", 2.0 if not keys else 100.0)
    monkeypatch.setattr(remote, "MOST_NAMES", 5000)
    with pytest.raises(BucketError, match="snapshots did not arrive" if not keys else "snapshots has more than"):
        objects().names("snapshots")
    assert next(pages) > 2


def test_more_than_was_asked_for(server: _Server) -> None:
    """It says its size at the start, and nothing of it is taken."""
    server.answers = lambda handler: head(handler, Content_Length=str(60 * 10**9))
    with pytest.raises(TooLargeObject, match="objects/x has 60,000,000,000 bytes, more than the allowed 5"):
        objects().read("objects/x", 5)
