"""Runs the steps of the action the way a runner does: one process each, all that they know in their environment."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import yaml

from tests.support.harness.shared import ROOT

ACTION = ROOT / "ci" / "github" / "action.yml"
GITLAB = ROOT / "ci" / "gitlab" / "review.yml"
VENV = "/tmp/tiller"  # noqa: S108 - where the template puts it
SCRIPT = ROOT / "ci" / "github" / "tiller-ci.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a step ended."""

    code: int
    text: str
    """What the log of the job shows."""


@dataclass(kw_only=True)
class ActionRun:
    """One job; `temp` is the runner's own folder, `known` the environment of all its steps."""

    workspace: Path
    temp: Path
    known: Mapping[str, str]
    outputs: dict[str, str] = field(default_factory=dict)

    def install(self) -> None:
        """Put the checkout in the place of what pip would have installed."""
        place = self.temp / "tiller-venv" / "bin" / "tiller"
        put_tiller(place)

    async def step(self, name: str, **env: str) -> Ended:
        """Run a step; its outputs join those of the others."""
        files = {
            name: self.temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
        }
        for path in files.values():
            path.touch()
        before = files["GITHUB_OUTPUT"].read_text(encoding="utf-8")
        done = await anyio.run_process(
            ["bash", str(SCRIPT), name],
            cwd=self.workspace,
            env={
                **self.known,
                "RUNNER_TEMP": str(self.temp),
                **{name: str(path) for name, path in files.items()},
                **env,
            },
            stderr=-2,
            check=False,
        )
        after = files["GITHUB_OUTPUT"].read_text(encoding="utf-8")
        for line in after[len(before) :].splitlines():
            key, _, value = line.partition("=")
            self.outputs[key] = value
        return Ended(code=done.returncode, text=done.stdout.decode())

    def summary(self) -> str:
        return (self.temp / "github_step_summary").read_text(encoding="utf-8")


def put_tiller(place: Path) -> None:
    """Write a `tiller` that runs this checkout."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(
        f"#!{sys.executable} -P\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tiller_server.cli.entry import main\nsys.exit(main())\n",
        encoding="utf-8",
    )
    place.chmod(0o755)


def steps_of_action() -> list[dict[str, Any]]:
    return yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]


def script_of_gitlab(venv: Path) -> str:
    """Give the script of the template, with a folder for its environment."""
    job = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["tiller-review"]
    (script,) = job["script"]
    given = re.sub(
        rf"^(?:python3 -I -m venv|{VENV}/bin/python).*\n", "", script, flags=re.MULTILINE
    )
    return given.replace(VENV, str(venv))
