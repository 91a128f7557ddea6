"""tcpdump in a namespace: ready when it says so, done when its file holds what passed the device."""

from __future__ import annotations

import signal
import struct
import subprocess
import time
from pathlib import Path

from tests.traffic.namespace import Namespace


class Capture:
    def __init__(self, namespace: Namespace, device: str, path: Path, snaplen: int) -> None:
        self.path = path
        command = ["tcpdump", "-n", "-i", device, "-w", str(path), "-U", "--immediate-mode", "-s", str(snaplen)]
        # A buffer of a few whole packets would lose some; dropping privileges would need the right to write in the folder.
        command += ["-B", "32768", "-Z", "root"]
        with namespace:
            self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr
        said = ""
        while "listening on" not in said:
            line = self._process.stderr.readline()
            if not line:
                raise RuntimeError(f"tcpdump ended: {said}")
            said += line

    def stop(self, packets: int, limit_s: float = 30.0) -> None:
        """Once the file holds ``packets`` packets."""
        deadline = time.monotonic() + limit_s
        while self._held() < packets and time.monotonic() < deadline:
            try:
                self._process.wait(0.005)
            except subprocess.TimeoutExpired:
                continue
            break
        self._process.send_signal(signal.SIGINT)
        _, said = self._process.communicate(timeout=limit_s)
        held = self._held()
        if held < packets or "0 packets dropped by kernel" not in said:
            raise RuntimeError(f"{self.path.name}: {held} of {packets} packets captured; tcpdump said: {said}")

    def _held(self) -> int:
        data, at, count = self.path.read_bytes(), 24, 0
        while at + 16 <= len(data):
            at += 16 + struct.unpack_from("=I", data, at + 8)[0]
            count += at <= len(data)
        return count
