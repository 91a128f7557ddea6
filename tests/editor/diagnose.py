"""What an editor shows of a study: the diagnostics of the real yaml-language-server, asked over its protocol (LSP, stdio).

    npm install --prefix tests/editor
    .venv/bin/python tests/editor/diagnose.py studies/*.yaml

prints each diagnostic as file:line:column: message; the exit code is 1 where there are any. It is no part of the test suite,
which holds the schema against the study reader with jsonschema: the server needs Node.js, which nothing else here does.
`--try` writes a wrong study beside the first one, and expects its mistakes to be found.
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
WRONG = """# yaml-language-server: $schema=schema.json
study: wrong
testbeds: {container: {driver: container, nic: e1000}}
workload: {kind: http, keepalive: on}
topology: {link: {rate: fast}}
"""
"""Mistakes are in its lines 3 to 5."""


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


def main(arguments: list[str]) -> int:
    paths = [Path(each) for each in arguments if each != "--try"]
    server = Server()
    count = 0
    try:
        for path in paths:
            for each in server.diagnostics(path):
                at = each["range"]["start"]
                print(f"{path}:{at['line'] + 1}:{at['character'] + 1}: {each['message']}")  # noqa: T201
                count += 1
        if "--try" in arguments:
            wrong = paths[0].parent / "wrong-on-purpose.yaml"
            wrong.write_text(WRONG, encoding="utf-8")
            try:
                found = server.diagnostics(wrong)
            finally:
                wrong.unlink()
            lines = {each["range"]["start"]["line"] + 1 for each in found}
            print("\n".join(f"wrong line {each['range']['start']['line'] + 1}: {each['message']}" for each in found))  # noqa: T201
            if lines != {3, 4, 5}:
                print(f"mistakes of lines 3, 4 and 5 were looked for, found were those of {sorted(lines)}")  # noqa: T201
                count += 1
    finally:
        server.close()
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
