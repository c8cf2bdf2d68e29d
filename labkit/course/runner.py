"""Runs a notebook's cells inside the box and reports the outputs of each, line by line, on the result pipe.

One process, IPython's shell, no kernel and no sockets: starts fast, and there is nothing to talk to outside.
A cell comes as an enciphered line on standard input (`feeder`), its report goes as JSON to standard output:
`{"cell": n, "token": "...", "outputs": [...], "changed": [...], "cut": true}`. There is no notebook here: a check that
was not asked for yet is nowhere in the box. What was reported stays reported when a later cell ends the process.

    python -m labkit.course.runner SECONDS
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, BinaryIO, TextIO

from labkit.course.feeder import Cipher
from labkit.i18n import t

LONGEST_OUTPUT = 200_000
_ALARM_EVERY = 0.5


class CellTimeout(KeyboardInterrupt):
    """The cell's time is up."""


class Streams:
    """Collects what a cell writes and shows, in order, up to a limit."""

    def __init__(self) -> None:
        self.outputs: list[dict[str, Any]] = []
        self.size = 0
        self.cut = False

    def start(self) -> None:
        """A new cell begins."""
        self.outputs, self.size, self.cut = [], 0, False

    def text(self, name: str, text: str) -> None:
        """Written to stdout or stderr."""
        room = LONGEST_OUTPUT - self.size
        if len(text) > room:
            self.cut = True
            # The fact that there was stderr counts for marks, however long it is.
            text = text[: max(room, 1)]
        if not text:
            return
        self.size += len(text)
        last = self.outputs[-1] if self.outputs else None
        if last is not None and last.get("output_type") == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.outputs.append({"output_type": "stream", "name": name, "text": text})

    def show(self, output: dict[str, Any]) -> None:
        """A result, a display or an error."""
        size = len(json.dumps(output, default=str))
        if self.size + size > LONGEST_OUTPUT:
            self.cut = True
            data = output.get("data")
            if data is None:
                output["traceback"] = []
            else:
                output["data"] = {"text/plain": str(data.get("text/plain", ""))[:1000]}
            size = 1000
        self.size += size
        self.outputs.append(output)


class _Writer:
    """sys.stdout or sys.stderr of the learner's code."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name: str, streams: Streams, number: int) -> None:
        self.name, self._streams, self._number = name, streams, number

    def write(self, text: str) -> int:
        """Collect."""
        self._streams.text(self.name, str(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Collect each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """A program, not a person."""
        return False

    def fileno(self) -> int:
        """The descriptor beneath."""
        return self._number


def run(feed: BinaryIO, seconds: float, results: TextIO) -> None:
    """Run the code cells that `feed` asks for, each at most `seconds`."""
    from labkit.course.graded_cell import parsed, run_checks

    cipher = Cipher(bytes.fromhex(feed.readline().decode()))
    streams = Streams()
    shell = _shell(streams)
    spill = _capture_descriptors()
    from labkit.course.integrity import Snapshot

    _import_all()
    snapshot = Snapshot()
    # Held here, out of reach of what a submission does to modules and classes.
    restore, decipher, take_spill, error_of = snapshot.restore, cipher.apply, _take_spill, _error
    me, dumps, loads = os.getpid(), json.dumps, json.loads
    while line := feed.readline():
        # Before the text of a check is in the clear, whatever could read along is put back.
        changed = restore() if line[:1] == b"1" else []
        cell = loads(decipher(bytes.fromhex(line[1:33].decode()), bytes.fromhex(line[33:].decode())))
        number, token, source = cell["cell"], cell["token"], cell["source"]
        streams.start()
        tree = parsed(source) if cell["graded"] else None
        keep, error, made = cell["keep"], None, None
        if tree is not None:
            # Nothing of the submission can read the checks' text while they run.
            del line, cell, source
        signal.signal(signal.SIGALRM, _on_alarm)
        signal.setitimer(signal.ITIMER_REAL, seconds, _ALARM_EVERY)
        try:
            if tree is not None:
                made = run_checks(tree, shell.user_ns, keep)
            else:
                result = shell.run_cell(source, store_history=True)
                error = result.error_before_exec or result.error_in_exec
        except (KeyboardInterrupt, SystemExit) as e:
            error = e
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if os.getpid() != me:
            # A child that the submission forked and forgot.
            os._exit(0)
        if tree is not None and (bent := restore()):
            changed += bent
            if names := [n for n in bent if not snapshot.is_attempt(n)]:
                why = f"changed while the checks ran: {', '.join(names)}"
                made = [error_of(RuntimeError(why), [])]
        take_spill(spill, streams)
        outputs = list(streams.outputs)
        if made is not None:
            # A result that is not the cell's own was put there by the submission.
            outputs = [o for o in outputs if o.get("output_type") != "execute_result"] + made
        elif error is not None and not any(o["output_type"] == "error" for o in outputs):
            outputs.append(error_of(error, []))
        report = {
            "cell": number,
            "token": token,
            "outputs": outputs,
            "changed": changed[:20],
            "cut": streams.cut,
        }
        results.write(dumps(report, default=str) + "\n")
        results.flush()


def _import_all() -> None:
    """What exercises use, so that the snapshot covers it."""
    import importlib
    import pkgutil

    import labkit.check
    import labkit.plugins

    # Default plugins too: they say what is right.
    names = [
        f"{package.__name__}.{m.name}"
        for package in (labkit.check, labkit.plugins)
        for m in pkgutil.iter_modules(package.__path__)
    ]
    for name in ("ctypes", *names, "labkit.lab", "labkit.engine.replay", "labkit.quiz.session"):
        importlib.import_module(name)


def _shell(streams: Streams) -> Any:
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    class Publisher(DisplayPublisher):
        def publish(self, data: Any, metadata: Any = None, *_: Any, **__: Any) -> None:
            streams.show({"output_type": "display_data", "data": _plain(data), "metadata": {}})

        def clear_output(self, wait: bool = False) -> None:
            streams.outputs.clear()

    class Hook(DisplayHook):
        def write_output_prompt(self) -> None:
            pass

        def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
            result = {"output_type": "execute_result", "data": _plain(format_dict), "metadata": {}}
            streams.show({**result, "execution_count": self.shell.execution_count})

    class Shell(InteractiveShell):
        def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
            streams.show(_error(evalue, [str(line) for line in stb]))

    Shell.display_pub_class = Publisher
    Shell.displayhook_class = Hook
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.cache_size = 1000
    shell = Shell.instance(config=config)
    sys.stdout = _Writer("stdout", streams, 1)
    sys.stderr = _Writer("stderr", streams, 2)
    return shell


def _plain(data: Any) -> dict[str, Any]:
    return {
        str(k): v if isinstance(v, str | dict | list | int | float) else str(v) for k, v in dict(data).items()
    }


def _error(error: BaseException, lines: list[str]) -> dict[str, Any]:
    return {
        "output_type": "error",
        "ename": type(error).__name__,
        "evalue": str(error)[:2000],
        "traceback": lines[-60:],
    }


def _on_alarm(*_: Any) -> None:
    raise CellTimeout(t("the time for this cell is up", "此单元的运行时间已到"))


def _capture_descriptors() -> dict[str, int]:
    """Descriptors 1 and 2 go to files of the box: what child processes and C code write is the cell's output too."""
    spill = {}
    for number, name in ((1, "stdout"), (2, "stderr")):
        handle = os.open(f"/tmp/.spill-{name}-{os.getpid()}", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        os.unlink(f"/tmp/.spill-{name}-{os.getpid()}")
        os.dup2(handle, number)
        spill[name] = handle
    return spill


def _take_spill(spill: dict[str, int], streams: Streams) -> None:
    for name, handle in spill.items():
        text = os.pread(handle, LONGEST_OUTPUT + 1, 0).decode("utf-8", "replace")
        if text:
            os.ftruncate(handle, 0)
            streams.text(name, text)


def main() -> None:
    """Entry point in the box."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.set_inheritable(pipe.fileno(), False)
    feed = os.fdopen(os.dup(0), "rb")
    # No one can be asked: input() ends with EOFError.
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    run(feed, float(sys.argv[1]), pipe)


if __name__ == "__main__":
    # By its own name: what a submission finds as `__main__` is another module.
    from labkit.course import runner

    runner.main()
    # Threads of the submission must not keep the box open.
    os._exit(0)
