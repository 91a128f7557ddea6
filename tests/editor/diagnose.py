"""What an editor shows of a study: the diagnostics of the real yaml-language-server, asked over its protocol (LSP, stdio).

    ./setup.sh test
    .venv/bin/python tests/editor/diagnose.py studies/*.yaml

prints each diagnostic as file:line:column: message; the exit code is 1 where there are any.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).parent
SERVER = HERE / "node_modules/yaml-language-server/bin/yaml-language-server"


class Server:
    """A server that was told of no settings: the schema is named by each study's first line."""

    def __init__(self) -> None:
        command = ["node", str(SERVER), "--stdio"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.out: IO[bytes] = self.process.stdin
        self.messages = messages(self.process.stdout)
        self.send(
            "initialize", {"processId": None, "rootUri": None, "capabilities": {"workspace": {"configuration": True}}}, id=1
        )
        next(each for each in self.messages if each.get("id") == 1 and "result" in each)
        self.send("initialized", {})

    def send(self, method: str, params: object, **more: object) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params, **more})

    def write(self, message: object) -> None:
        body = json.dumps(message).encode()
        self.out.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.out.flush()

    def diagnostics(self, path: Path) -> list[dict[str, Any]]:
        uri = path.resolve().as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": path.read_text(encoding="utf-8")}
        self.send("textDocument/didOpen", {"textDocument": document})
        for message in self.messages:
            if "method" in message and "id" in message:  # the server asks for its settings: there are none
                asked = message.get("params", {}).get("items", ())
                self.write({"jsonrpc": "2.0", "id": message["id"], "result": [None for _ in asked]})
            elif message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                found: list[dict[str, Any]] = message["params"]["diagnostics"]
                return found
        raise EOFError("the server has ended")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def messages(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    while line := stream.readline():
        length = int(line.partition(b":")[2])
        while stream.readline().strip():
            pass
        yield json.loads(stream.read(length))


def main(paths: list[str]) -> int:
    server, count = Server(), 0
    try:
        for path in map(Path, paths):
            for each in server.diagnostics(path):
                at = each["range"]["start"]
                print(f"{path}:{at['line'] + 1}:{at['character'] + 1}: {each['message']}")  # noqa: T201
                count += 1
    finally:
        server.close()
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
