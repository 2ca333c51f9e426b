"""Other sides for tests of remote workspaces: a real sshd on loopback, and a container of podman or a stand-in."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

HOST = "tl-loopback"
SSHD = shutil.which("sshd", path=f"{os.defpath}:/usr/sbin:/usr/local/sbin")
STARTS_S = 10.0
LOOK_AGAIN_S = 0.02
KEY_EXCHANGE = "curve25519-sha256"
"""The one that costs least: what new versions prefer takes longer than all else that a connection does."""
NO_SSHD = "there is no sshd here: `make remote-setup` installs openssh-server"


@dataclass(kw_only=True)
class SshServer:
    """An sshd on loopback, with keys of its own."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def options(self) -> tuple[str, ...]:
        """Options of `ssh` that make `HOST` this server."""
        return ("-F", str(self.folder / "ssh_config"))

    def serving(self) -> set[int]:
        """Return the processes of sshd that serve connections."""
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(self.process.pid).children(recursive=True)
            return {one.pid for one in below if _is_sshd(one)}
        return set()

    def signal_connections(self, number: signal.Signals) -> None:
        """Send a signal to what serves connections."""
        for pid in self.serving():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def start(self) -> None:
        """Start it again with the same port and keys."""
        self.process = _started(self.folder)
        _wait_for_port(self)

    def stop(self) -> None:
        """End it, and the connections that it serves."""
        serving = self.serving()
        self.process.terminate()
        _ = self.process.wait(STARTS_S)
        for pid in serving:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _is_sshd(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.name().startswith("sshd")
    return False


def _started(folder: Path) -> "subprocess.Popen[bytes]":
    assert SSHD is not None, NO_SSHD
    with (folder / "log").open("ab") as log:
        return subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)


@contextmanager
def ssh_server(folder: Path) -> Generator[SshServer]:
    """Run an sshd for the user of this process."""
    assert SSHD is not None, NO_SSHD
    for name in ("host_key", "user_key"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        _ = subprocess.run(made, check=True, stdin=subprocess.DEVNULL)
    shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    # The start files of the user's own shell are read for each script, and may take far longer than it.
    home = folder / "home"
    home.mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    _ = (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nPidFile none\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        f'MaxStartups 100\nKexAlgorithms {KEY_EXCHANGE}\nSetEnv "HOME={home}"\n'
    )
    key = (folder / "host_key.pub").read_text()
    _ = (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}")
    _ = (folder / "ssh_config").write_text(
        f"Host {HOST}\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {folder}/user_key\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known_hosts\n  StrictHostKeyChecking yes\n"
    )
    server = SshServer(folder=folder, port=port, process=_started(folder))
    try:
        _wait_for_port(server)
        yield server
    finally:
        server.stop()


def _wait_for_port(server: SshServer) -> None:
    deadline = time.monotonic() + STARTS_S
    while time.monotonic() < deadline and server.process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 1):
            return
        time.sleep(LOOK_AGAIN_S)
    message = f"sshd did not start: {(server.folder / 'log').read_text()}"
    raise RuntimeError(message)


ENV = {"PATH": os.defpath, "HOME": str(Path.home())}
