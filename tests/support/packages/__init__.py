"""Interpreters of this machine, and the first minute of a user with an installed form of Tiller."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.clients.server import Ground, calls, says
from tiller_server import VERSION

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")


def interpreter(version: str) -> Path | None:
    """Return a Python of a version such as `3.12`; None: this machine has none that works."""
    return next((path for path in _candidates(version) if _is(path, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)
    # Where pyenv and uv keep them: each in a folder of its own, beside that of this one.
    yield from sorted(Path(sys.base_prefix).parent.glob(f"*{version}*/bin/python{version}"))


def _is(python: Path, version: str) -> bool:
    """Return whether a program is that Python; a shim of pyenv may stand for one that is not there."""
    check = f"import sys, venv, ensurepip; sys.exit('{{}}.{{}}'.format(*sys.version_info) != {version!r})"
    return (
        subprocess.run([str(python), "-c", check], capture_output=True, check=False).returncode == 0
    )


def without_the_checkout(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose programs do not see the sources of the checkout."""
    return {name: value for name, value in env.items() if name != "PYTHONPATH"}


def spend_the_first_minute(ground: Ground, program: Sequence[str]) -> None:
    """Ask for the version and a check of the machine, then for a change of a file and a search for its session; check that each is done.

    Args:
        ground: Folders, environment and provider of the test.
        program: The command line that starts `tiller`.
    """

    def tiller(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *arguments],
            cwd=ground.root,
            env=without_the_checkout(ground.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    version = tiller("--version")
    assert (version.returncode, version.stdout) == (0, f"tiller {VERSION}\n"), version
    doctor = tiller("doctor")
    assert doctor.returncode in {0, 1}, doctor
    assert "Traceback" not in doctor.stdout + doctor.stderr
    ground.configure()
    target = ground.file("a.txt", "old\n")
    write = calls(("write", {"path": str(target), "content": "new\n"}))
    ground.provider.script([write, says("Done")])
    ran = tiller("run", "Change it")
    assert (ran.returncode, target.read_text("utf-8")) == (0, "new\n"), ran
    searched = tiller("sessions", "search", "--all", "Change")
    assert (searched.returncode, "[Change] it" in searched.stdout) == (0, True), searched
