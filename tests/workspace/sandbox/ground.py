"""A small machine to break out of: a home with keys, a repository, listeners, and somebody else's files."""

import os
import pwd
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from agent_core.workspace import KillReport, ProcessEnd
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.permissions.policy import writes_data
from agent_core.workspace.processes.disk_processes import DiskProcesses

SECRET = "tell-nobody-4711"
GRACE_S = 0.15
DATA: frozenset[Needs] = frozenset({"gitData"})
KEYS = (
    *("ACCESSKEY", "AZURE_STORAGE_CONNECTION_STRING", "CONNSTR", "HEROKU_API", "JWT", "KRB5CCNAME", "MNEMONIC"),
    *("MYSQLPWD", "OTEL_EXPORTER_OTLP_HEADERS", "SECRETKEYBASE", "SENTRY_DSN", "SLACK_HOOK", "SSHPASS"),
    *("STRIPE_SK", "WALLET_SEED"),
)  # fmt: skip
"""Variables with a secret in them, of which no word says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What became of a command."""

    output: str
    end: ProcessEnd
    killed: KillReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where everything lies."""

    top: Path
    root: Path
    home: Path
    own: tuple[Path, ...]
    """Folders as of Tiller: config, data, runtime."""
    env: Mapping[str, str]
    """As the user has it."""
    places: Mapping[str, str]
    """Variables that tell commands where to try; a command would not get them otherwise."""

    async def run(
        self,
        processes: DiskProcesses,
        command: str,
        *,
        needs: frozenset[Needs] = frozenset(),
        limit_s: float = 15,
    ) -> Ran:
        """Run a command to its end."""
        told = "".join(f"export {name}={shlex.quote(self.places[name])}\n" for name in self.places)
        argv = ("bash", "-c", told + command)
        writes = partial(writes_data, env_path=self.env["PATH"], roots=(self.root,))
        if await to_thread.run_sync(writes, command):
            needs |= DATA
        process = await processes.start(argv, cwd=self.root, env=self.env, needs=needs)
        output = b""
        end = ProcessEnd(exit_code=None)
        try:
            with anyio.fail_after(limit_s):
                end = await process.wait()
        finally:
            killed = await process.end(grace_s=GRACE_S)
            while chunk := await process.read():
                output += chunk
        return Ran(output=output.decode("utf-8", "replace"), end=end, killed=killed)


@contextmanager
def ground() -> Generator[Ground]:
    """Lay it out, not below /tmp, which nobody sees from inside anyway; and clear it away."""
    with ExitStack() as stack:
        top = _top()
        stack.callback(shutil.rmtree, top, ignore_errors=True)
        home, root = top / "home", top / "home" / "project"
        own = tuple(top / "own" / name for name in ("config", "data", "runtime"))
        for folder in (root, top / "outside", *own):
            folder.mkdir(parents=True)
        _fill(top, home=home, root=root, own=own)
        ports = _listeners(stack, home=home, runtime=own[2], name=top.name)
        places = {
            "TOP": str(top),
            "OUT": str(top / "outside"),
            "WS": str(root),
            "CONFIG": str(own[0]),
            "DATA": str(own[1]),
            "RUNTIME": str(own[2]),
            "ME": str(os.getpid()),
            **ports,
        }
        env = {
            "PATH": os.defpath,
            "HOME": str(home),
            **dict.fromkeys(KEYS, SECRET),
            "OPENAI_API_KEY": SECRET,
            "MY_TOKEN": SECRET,
            "DATABASE_URL": f"postgres://u:{SECRET}@host/db",
            "LD_PRELOAD": str(top / "outside" / "evil.so"),
            "BASH_ENV": str(top / "outside" / "env.sh"),
            "GIT_SSH_COMMAND": "echo BROKEN",
            "SSH_AUTH_SOCK": str(home / "odd.sock"),
        }
        yield Ground(top=top, root=root, home=home, own=own, env=env, places=places)


def _top() -> Path:
    places = (Path(pwd.getpwuid(os.geteuid()).pw_dir), Path.cwd())
    for place in places:
        if os.access(place, os.W_OK):
            return Path(tempfile.mkdtemp(prefix=".tiller-test-", dir=place)).resolve()
    return Path(tempfile.mkdtemp(prefix="tiller-test-")).resolve()


def _fill(top: Path, *, home: Path, root: Path, own: tuple[Path, ...]) -> None:
    texts = {
        home / ".ssh" / "id_ed25519": SECRET,
        home / ".aws" / "credentials": SECRET,
        home / ".gnupg" / "key": SECRET,
        home / ".config" / "gh" / "hosts.yml": SECRET,
        home / ".docker" / "config.json": SECRET,
        home / ".kube" / "config": SECRET,
        home / ".netrc": SECRET,
        home / ".npmrc": SECRET,
        home / ".git-credentials": SECRET,
        home / ".bash_history": SECRET,
        home / ".config" / "git" / "credentials": SECRET,
        home / ".bashrc": "# mine\n",
        home / ".gitconfig": "[user]\n\tname = a\n\temail = a@b.c\n",
        top / "outside" / "file": "outside\n",
        top / "outside" / "env.sh": "echo BROKEN\n",
        own[0] / "auth.json": SECRET,
        own[1] / "session.jsonl": SECRET,
        own[2] / "daemon.token": SECRET,
        root / "code.py": "print(1)\n",
        root / "AGENTS.md": "be good\n",
        root / ".vscode" / "settings.json": "{}\n",
        root / ".github" / "workflows" / "ci.yml": "on: push\n",
        root / ".mcp.json": "{}\n",
        root / ".envrc": "# none\n",
        root / "package" / ".vscode" / "tasks.json": "{}\n",
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    env = {"PATH": os.defpath, "HOME": str(home)}
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "code.py"],
        ["commit", "-q", "-m", "first"],
    ):
        subprocess.run(["git", *words], cwd=root, env=env, check=True)


def _listeners(stack: ExitStack, *, home: Path, runtime: Path, name: str) -> Mapping[str, str]:
    """Open what must not be reached; nobody answers, but a connection would be made."""

    def listen(family: int, kind: int, address: str | tuple[str, int]) -> socket.socket:
        opened = stack.enter_context(socket.socket(family, kind))
        opened.bind(address)
        if kind == socket.SOCK_STREAM:
            opened.listen()
        return opened

    # A path of a socket must be short.
    with _inside(runtime):
        listen(socket.AF_UNIX, socket.SOCK_STREAM, "daemon.sock")
    with _inside(home):
        listen(socket.AF_UNIX, socket.SOCK_STREAM, "odd.sock")
        listen(socket.AF_UNIX, socket.SOCK_DGRAM, "log.sock")
    listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{name}")
    tcp = listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    udp = listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
    return {
        "TCP": str(tcp.getsockname()[1]),
        "UDP": str(udp.getsockname()[1]),
        "ABSTRACT": name,
    }


@contextmanager
def _inside(folder: Path) -> Generator[None]:
    before = Path.cwd()
    os.chdir(folder)  # noqa: TID251 - taken back
    try:
        yield
    finally:
        os.chdir(before)  # noqa: TID251 - taken back
