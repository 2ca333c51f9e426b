"""Imports modules, each in a process as fresh as a start, and prints what each did besides.

Run as: import_probe.py ROOT MODULE…
"""

import importlib
import json
import os
import signal
import sys
import tempfile
import threading

OURS = ("agent_core", "server")
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
    """Fork once for each module: the parent imports none of ours, so every child starts without them."""
    root, *modules = sys.argv[1:]
    sys.path.insert(0, root)
    sys.dont_write_bytecode = True
    for name in FOREIGN:
        importlib.import_module(name)
    json.dump({module: _in_child(module) for module in modules}, sys.stdout)


def _in_child(module: str) -> list[str]:
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as printed:
        pid = os.fork()
        if pid == 0:
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            os.write(answer.fileno(), json.dumps(_acts_of(module)).encode())
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        answer.seek(0)
        printed.seek(0)
        acts = json.loads(answer.read() or b"[]")
        if words := printed.read():
            acts.append(f"printed {words[:200]!r}")
    return [*acts, f"ended with status {status}"] if status else acts


def _acts_of(module: str) -> list[str]:
    acts: list[str] = []
    sys.addaudithook(lambda event, arguments: _note(acts, event=event, arguments=arguments))
    _watch_environment(acts)
    handlers = _signal_handlers()
    try:
        importlib.import_module(module)
    except BaseException as error:  # noqa: BLE001 - whatever it raised, the report names the module
        acts.append(f"raised {error!r}")
    sys.stdout.flush()
    if (changed := _signal_handlers()) != handlers:
        names = [
            signal.Signals(number).name for number in changed if changed[number] != handlers[number]
        ]
        acts.append(f"took the signals {', '.join(names)}")
    if (threads := threading.active_count()) > 1:
        acts.append(f"left {threads - 1} threads")
    return list(acts)


def _signal_handlers() -> dict[int, object]:
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _note(acts: list[str], *, event: str, arguments: tuple[object, ...]) -> None:
    if event in ACTS:
        acts.append(f"{event} {arguments!r}"[:200])
    elif event == "open":
        path, mode, flags = arguments
        wants_to_write = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if wants_to_write or (isinstance(mode, str) and set(mode) & set("wax+")):
            acts.append(f"wrote {path!r}")


def _watch_environment(acts: list[str]) -> None:
    environment = type(os.environ)  # noqa: TID251 - this is where reads are caught
    read = environment.__getitem__

    def noted(self: os._Environ[str], key: str) -> str:
        frame = sys._getframe(1)
        # Between here and who asked stand only os.py and the methods of Mapping.
        while frame.f_back and frame.f_globals.get("__name__") in {"os", "collections.abc"}:
            frame = frame.f_back
        asker = str(frame.f_globals.get("__name__"))
        if asker.split(".", maxsplit=1)[0] in OURS:
            acts.append(f"{asker} read the variable {key!r}")
        return read(self, key)

    environment.__getitem__ = noted


if __name__ == "__main__":
    main()
