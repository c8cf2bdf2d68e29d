"""Hands the cells of a notebook to the runner, one at a time, and takes only the answer to the cell it asked about.

A check stays out of the submission's reach until it is its turn, and an answer without the cell's own token, made up
in advance for instance, is not taken. Threads and children of a submission can read the same pipe, so cells are
enciphered (`Cipher`); the key goes first, before anything of the submission runs. On this machine `box` does the asking; in a pod of a cluster this module is the
program that starts the runner:

    python -m labkit.course.feeder NOTEBOOK SECONDS      reads and deletes NOTEBOOK; what was taken goes to stdout
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import hashlib
import json
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labkit.course.graded_cell import bound

_LONGEST_LINE = 20_000_000
_NOT_DUMPABLE = 4
_STUCK, _STARTING_S = 1.5, 30
#: Where a notebook's metadata name the builtins that the exercises themselves define.
DEFINED = "defined"


class Cipher:
    """A stream cipher of SHAKE-256, the same both ways. A nonce must not come twice."""

    def __init__(self, key: bytes) -> None:
        self._key, self._shake = key, hashlib.shake_256

    def apply(self, nonce: bytes, text: bytes) -> bytes:
        """Encipher or decipher."""
        stream = self._shake(self._key + nonce).digest(len(text))
        return (int.from_bytes(text) ^ int.from_bytes(stream)).to_bytes(len(text))


class Feeder:
    """Asks for one cell after the other. `notebook` is a notebook or its JSON."""

    def __init__(self, notebook: Any) -> None:
        about = notebook["metadata"].get("labkit")
        names = about.get(DEFINED) if isinstance(about, dict) else None
        self._defined = [str(n) for n in names] if isinstance(names, list) else []
        self._left = self._cells(notebook)
        self._cell, self._token = -1, ""
        self._key: bytes | None = secrets.token_bytes(32)
        self._cipher = Cipher(self._key)

    @staticmethod
    def _cells(notebook: Any) -> Iterator[tuple[int, str, bool]]:
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                mark = cell["metadata"].get("nbgrader") or {}
                source = cell["source"]
                text = source if isinstance(source, str) else "".join(source)
                yield number, text, bool(mark.get("grade"))

    def ask(self) -> bytes | None:
        """The line that asks for the next cell, before the first one a line with the key; None when all are answered.

        The line is "1" for a graded cell, else "0", a nonce of 16 bytes and the enciphered request, in hexadecimal.
        """
        cell = next(self._left, None)
        if cell is None:
            return None
        self._cell, source, graded = cell
        self._token = secrets.token_hex(16)
        asked = {"cell": self._cell, "token": self._token, "source": source, "graded": graded}
        text = json.dumps({**asked, "keep": self._defined}).encode()
        nonce = secrets.token_bytes(16)
        line = f"{graded:d}{nonce.hex()}{self._cipher.apply(nonce, text).hex()}\n"
        first = f"{self._key.hex()}\n" if self._key is not None else ""
        self._key = None
        return (first + line).encode()

    def is_answer(self, line: bytes) -> bool:
        """Is this the answer to the cell that was asked for last? The same line is taken once only."""
        try:
            said = json.loads(line)
            mine = bool(said["cell"] == self._cell and said["token"] == self._token and self._token)
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        if mine:
            self._token = ""
        return mine


def defined_builtins(sources: Iterator[str]) -> list[str]:
    """Builtins that code itself defines, for example in an exercise that has learners write `sum`."""
    import ast

    found: set[str] = set()
    for source in sources:
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        found |= bound(tree)
    return sorted(found & set(vars(builtins)))


def main() -> None:
    """Entry point in a pod. Exit status 1 when the runner ended before the last cell."""
    path = Path(sys.argv[1])
    feeder = Feeder(json.loads(path.read_text(encoding="utf-8")))
    path.unlink()
    # The runner has the same user: without this it could read the cells in this process's memory.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_NOT_DUMPABLE, 0, 0, 0, 0)
    command = [sys.executable, "-m", "labkit.course.runner", sys.argv[2]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runner:
        assert runner.stdin is not None
        assert runner.stdout is not None
        try:
            while (asked := feeder.ask()) is not None:
                # A cell that cannot be interrupted from inside must not take the time of the others.
                timer = threading.Timer(_STUCK * float(sys.argv[2]) + _STARTING_S, runner.kill)
                timer.daemon = True
                timer.start()
                runner.stdin.write(asked)
                runner.stdin.flush()
                while not feeder.is_answer(line := runner.stdout.readline(_LONGEST_LINE)):
                    if not line:
                        sys.exit(1)
                timer.cancel()
                sys.stdout.write(line.decode("utf-8", "replace"))
                sys.stdout.flush()
        except BrokenPipeError:
            sys.exit(1)
        finally:
            runner.kill()
    print('{"done": true}', flush=True)


if __name__ == "__main__":
    main()
