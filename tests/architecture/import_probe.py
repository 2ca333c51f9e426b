"""Imports modules, each in a process of its own, and prints what each did besides.

Run as: import_probe.py ROOT, with an object on the standard input: each module, and the one before it or null.
The one before it is a module that it imports itself: what is loaded then, a fresh start would load as well.
"""

import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

OURS = ("agent_core", "tiller_server")
# What others do on import is theirs; loading it once and not in every child saves most of the time.
FOREIGN = (
    "anyio",
    "anyio._backends._asyncio",
    "httpx",
    "lsprotocol.types",
    "pydantic",
    "pygls.lsp.server",
)
# What reaches outside, by the names of the interpreter's audit events.
ACTS = frozenset(
    {"os.chdir", "os.exec", "os.fork", "os.link", "os.mkdir", "os.posix_spawn", "os.putenv"}
    | {"os.remove", "os.rename", "os.rmdir", "os.symlink", "os.system", "os.truncate"}
    | {"socket.__new__", "socket.bind", "socket.connect", "sqlite3.connect"}
    | {"shutil.rmtree", "subprocess.Popen", "tempfile.mkdtemp", "tempfile.mkstemp"}
)


def main() -> None:
    """Fork for each module out of the process that has the module before it, or none of ours."""
    sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/server"]
    sys.dont_write_bytecode = True
    for name in FOREIGN:
        importlib.import_module(name)
    after: dict[str | None, list[str]] = defaultdict(list)
    for module, before in json.load(sys.stdin).items():
        after[before].append(module)
    # What is loaded stays: no collector has to look at it again in every child.
    gc.freeze()
    gc.disable()
    with tempfile.TemporaryFile("a+", encoding="utf-8") as report:
        probe = _Probe(after=after, report=report)
        probe.follow(None)
        report.seek(0)
        acts: dict[str, list[str]] = {}
        for line in report:
            module, found = json.loads(line)
            acts.setdefault(module, []).extend(found)
    json.dump(acts, sys.stdout)


class _Probe:
    """The tree of processes. Every process of it appends to one report."""

    def __init__(self, *, after: Mapping[str | None, list[str]], report: TextIO) -> None:
        self._after = after
        self._report = report
        self._acts: list[str] | None = None
        sys.addaudithook(self._note)
        _watch_environment(self._say)

    def follow(self, before: str | None) -> None:
        """Import, each in a child of this process, the modules that come after `before`."""
        for module in self._after.get(before, ()):
            with tempfile.TemporaryFile() as printed:
                pid = os.fork()
                if pid == 0:
                    os.dup2(printed.fileno(), 1)
                    os.dup2(printed.fileno(), 2)
                    self._tell(module, self._acts_of(module))
                    self.follow(module)
                    os._exit(0)
                _, status = os.waitpid(pid, 0)
                printed.seek(0)
                if words := printed.read():
                    self._tell(module, [f"printed {words[:200]!r}"])
            if status:
                self._tell(module, [f"ended with status {status}"])

    def _tell(self, module: str, acts: Sequence[str]) -> None:
        self._report.write(json.dumps([module, acts]) + "\n")
        self._report.flush()

    def _acts_of(self, module: str) -> list[str]:
        self._acts = acts = []
        handlers = _signal_handlers()
        try:
            importlib.import_module(module)
        except BaseException as error:  # noqa: BLE001 - whatever it raised, the report names the module
            acts.append(f"raised {error!r}")
        sys.stdout.flush()
        self._acts = None
        if (changed := _signal_handlers()) != handlers:
            names = [
                signal.Signals(number).name
                for number in changed
                if changed[number] != handlers[number]
            ]
            acts.append(f"took the signals {', '.join(names)}")
        if (threads := threading.active_count()) > 1:
            acts.append(f"left {threads - 1} threads")
        return acts

    def _say(self, act: str) -> None:
        if self._acts is not None:
            self._acts.append(act)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._acts is None:
            return
        if event in ACTS:
            self._say(f"{event} {arguments!r}"[:200])
        elif event == "open":
            path, mode, flags = arguments
            to_write = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if to_write or (isinstance(mode, str) and set(mode) & set("wax+")):
                self._say(f"wrote {path!r}")


def _signal_handlers() -> dict[int, object]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _watch_environment(say: Callable[[str], None]) -> None:
    environment = type(os.environ)  # noqa: TID251 - this is where reads are caught
    read = environment.__getitem__

    def noted(self: os._Environ[str], key: str) -> str:
        frame = sys._getframe(1)
        # Between here and who asked stand only os.py and the methods of Mapping.
        while frame.f_back and frame.f_globals.get("__name__") in {"os", "collections.abc"}:
            frame = frame.f_back
        asker = str(frame.f_globals.get("__name__"))
        if asker.split(".", maxsplit=1)[0] in OURS:
            say(f"{asker} read the variable {key!r}")
        return read(self, key)

    environment.__getitem__ = noted


if __name__ == "__main__":
    main()
