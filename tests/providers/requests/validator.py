"""Judges request bodies by the vendors' own published types, in an interpreter that has them."""

import faulthandler
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.sizes import is_campaign

VARIABLE = "TILLER_VALIDATOR_PYTHON"
NEEDED = (
    "anthropic==2.11.0",
    "botocore==1.44.5",
    "google-genai==3.4.0",
    "groq==1.7.0",
    "mistralai==3.7.0",
    "openai==3.52.0",
    "pydantic==2.14.3",
)
# As the session began: each test has an environment of its own.
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - see above
DRIVER = Path(__file__).with_name("validator_driver.py")


@dataclass(frozen=True, kw_only=True)
class Body:
    """A body to be judged."""

    api: str
    """As the validator calls it."""
    raw: bytes
    dialect: str | None = None
    model: str | None = None


def validator_python(config: pytest.Config) -> Path:
    """Find the interpreter, or make one where a long run is wanted; skips the test otherwise."""
    told = _ENVIRONMENT.get(VARIABLE)
    if told:
        return Path(told)
    if not is_campaign() and _ENVIRONMENT.get("CI") != "true":
        pytest.skip(f"{VARIABLE} names no interpreter that has the vendors' packages")
    # The pins are part of the name: other pins, another environment.
    versions = "-".join(sorted(need.partition("==")[2] for need in NEEDED))
    folder = config.cache.mkdir("validators") / versions
    if not folder.exists():
        _make(folder)
    return _python_in(folder)


def _make(folder: Path) -> None:
    """Make the environment; when two workers do so at once, the first to be done wins."""
    # It takes longer than pytest lets a test be silent; the test's own timeout holds all the same.
    faulthandler.cancel_dump_traceback_later()
    made = folder.with_name(f"{os.getpid()}.part")
    venv.create(made, with_pip=True, clear=True)
    install = [_python_in(made), "-m", "pip", "install", "--quiet", *NEEDED]
    subprocess.run(install, check=True, env=_ENVIRONMENT)
    try:
        made.rename(folder)
    except OSError:
        shutil.rmtree(made)


def _python_in(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def judged(python: Path, tool: Path, bodies: Sequence[Body]) -> list[list[str]]:
    """Say for each body what is wrong with it; one process for all."""
    lines = [
        b'{"api":%s,"dialect":%s,"model":%s,"body":%s}\n'
        % (_json(body.api), _json(body.dialect), _json(body.model), body.raw)
        for body in bodies
    ]
    done = subprocess.run(
        [python, "-X", "utf8", str(DRIVER), str(tool)],
        input=b"".join(lines),
        stdout=subprocess.PIPE,
        check=True,
        env=_ENVIRONMENT,
    )
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(verdicts) == len(bodies)
    return verdicts


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
