"""`tiller demo`: the main job from end to end, on a copy of a small project with a failing test."""

import argparse
import asyncio
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agent_core.assembly.models import load_models
from agent_core.kernel import SystemClock
from agent_core.kernel.json import as_object, decode, encode
from agent_core.kernel.values import Value
from agent_core.providers.http.client import HttpPool
from agent_core.resources.paths import AppPaths, app_paths
from agent_core.resources.settings.layers import Layer, load_settings
from tiller_server.cli.demo.editor import DemoEditor
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, complain
from tiller_server.cli.terminal.run_renderer import MARKS, TextOutput
from tiller_server.daemon.control_client import ask_daemon, wait_until_gone
from tiller_server.daemon.paths import log_path
from tiller_server.daemon.shim.connection import Unreachable

EXAMPLE: Final = "example: tiller demo"
PROMPT: Final = "The tests of this project fail. Please find out why and repair the code."
EMBEDDED: Final = "embedded/repair"
SAMPLE: Final = Path(__file__).parents[1] / "sample"
RUN_S: Final = 600.0
STOP_S: Final = 20.0

BOLD: Final = "1"
DIM: Final = "2"
ADDED: Final = "32"
REMOVED: Final = "31"
PREVIEW: Final = 100


class DemoStage(Value, frozen=True, kw_only=True):
    """Project, configuration folder, model and environment variables of a demo."""

    project: Path
    config: Path
    model: str
    variables: Mapping[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    _ = parser.add_argument("--debug", action="store_true", help="show the server's log")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    with tempfile.TemporaryDirectory(prefix="tiller-demo-") as folder:
        return asyncio.run(_demo(Path(folder).resolve(), environment, debug=options.debug))


async def _demo(folder: Path, environment: Environment, *, debug: bool) -> int:
    stage = await _set_up(folder, environment)
    view = _DemoView(sys.stdout, colour=environment.colour(sys.stdout))
    view.head(f"A copy of the sample project is in {stage.project}. Its tests, before:")
    view.plain(_tests(stage))
    view.head(f"An editor starts `tiller lsp` and asks {_named(stage.model)}:")
    view.plain(f"  «{PROMPT}»\n")
    try:
        async with DemoEditor(stage.project, stage.variables, debug=debug) as editor:
            session = await editor.begin(stage.model)
            result = await asyncio.wait_for(editor.ask(PROMPT, view.see), RUN_S)
    finally:
        await _stop_daemon(stage.variables, debug=debug)
    view.head("What changed:")
    view.plain(_diff(stage.project) or "nothing\n")
    view.head("Its tests, after:")
    tests = _tests(stage)
    view.plain(tests)
    view.head(f"Run {result['status']}; {_cost(result)}.")
    view.plain(f"The session was saved in {_session_file(stage, session)}\n")
    if "OK" not in tests:
        complain("demo", "the tests still fail; the output above has the model's answer")
        return FAILED
    return DONE


async def _stop_daemon(variables: Mapping[str, str], *, debug: bool) -> None:
    """Stop the daemon that the editor's `tiller lsp` has started, and wait until it has gone."""
    with suppress(Unreachable):
        _ = await asyncio.to_thread(ask_daemon, variables, "stopNow")
    _ = await wait_until_gone(variables, SystemClock(), within_s=STOP_S)
    if debug:
        with suppress(OSError):
            log = await asyncio.to_thread(Path(log_path(variables)).read_text, "utf-8")
            _ = sys.stderr.write(log)


async def _set_up(folder: Path, environment: Environment) -> DemoStage:
    """Copy the project, and the user's configuration with commands allowed in this copy alone."""
    project = folder / "project"
    _ = await asyncio.to_thread(
        shutil.copytree, SAMPLE, project, ignore=shutil.ignore_patterns("__pycache__")
    )
    paths = app_paths(environment.variables)
    config = folder / "config"
    await asyncio.to_thread(_copy_config, paths, config)
    # The project's tests run on the Python that runs this: the system's may be older, or missing.
    path = os.pathsep.join(
        (str(Path(sys.executable).parent), environment.variables.get("PATH", ""))
    )
    variables = {
        **environment.variables,
        "TILLER_CONFIG_DIR": str(config),
        # A daemon of its own: it neither uses the user's nor outlives the demo.
        "TILLER_RUNTIME_DIR": str(folder / "runtime"),
        "PATH": path,
    }
    return DemoStage(
        project=project,
        config=config,
        model=await _model(paths, environment.variables),
        variables=variables,
    )


def _copy_config(paths: AppPaths, config: Path) -> None:
    config.mkdir()
    for path in (paths.models, paths.auth):
        if path.is_file():
            _ = shutil.copy2(path, config / path.name)
    try:
        given = as_object(decode(paths.settings.read_bytes()))
    except (OSError, ValueError):
        given = {}
    # The copy that it works on comes from this program itself.
    made = {**given, "permission": {"mode": "yolo"}, "defaultProjectTrust": "always"}
    _ = (config / "settings.json").write_bytes(encode(made))


async def _model(paths: AppPaths, variables: Mapping[str, str]) -> str:
    """Return the user's model when there is one that can be asked, else the embedded one."""
    clock = SystemClock()
    pool = HttpPool(clock=clock)
    models = await load_models(paths=paths, env=variables, clock=clock, pool=pool)
    values = (await load_settings((Layer(name="user", content=paths.settings),))).values
    wished = (
        f"{values.default_provider}/{values.default_model}"
        if values.default_provider and values.default_model
        else values.default_model or None
    )
    choice = models.registry.choose(settings=wished, provider=values.default_provider or None)
    await pool.aclose()
    return EMBEDDED if choice.model is None else choice.model.ref


def _named(model: str) -> str:
    return f"{model} (rule-based, not a language model)" if model == EMBEDDED else model


def _tests(stage: DemoStage) -> str:
    """Run the project's tests; isolated, so that nothing of this process leaks in."""
    done = subprocess.run(
        [sys.executable, "-B", "-m", "unittest", "-q"],
        cwd=stage.project,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = (done.stdout + done.stderr).strip().splitlines()
    return "".join(f"  {line}\n" for line in lines[-8:])


def _diff(project: Path) -> str:
    parts: list[str] = []
    for path in sorted(project.rglob("*.py")):
        name = path.relative_to(project).as_posix()
        before = SAMPLE / name
        old = (
            before.read_text(encoding="utf-8").splitlines(keepends=True) if before.exists() else []
        )
        new = path.read_text(encoding="utf-8").splitlines(keepends=True)
        parts.extend(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))
    return "".join(parts)


def _cost(result: Mapping[str, Any]) -> str:
    usage: dict[str, Any] = result.get("usage") or {}
    tokens: dict[str, int] = usage.get("tokens") or {}
    money: dict[str, Any] | None = usage.get("cost")
    total = sum(tokens.get(kind, 0) for kind in ("in", "out", "cacheRead", "cacheWrite"))
    if money is not None:
        return f"{total} tokens, ${money['amount']:.4f}"
    return f"{total} tokens, cost unknown" if total else "no tokens, no cost"


def _session_file(stage: DemoStage, session: str) -> str:
    sessions = app_paths(stage.variables).sessions
    found = next(iter(sessions.glob(f"*/*{session}.jsonl")), None)
    return str(found or sessions)


class _DemoView:
    """Prints one event at a time."""

    def __init__(self, out: TextOutput, *, colour: bool) -> None:
        self._out = out
        self._colour = colour
        self._at_line_start = True
        self._titles: dict[str, str] = {}

    def head(self, text: str) -> None:
        """Print a heading."""
        self._break()
        self._write(f"\n{self._styled(text, BOLD)}\n")

    def plain(self, text: str) -> None:
        """Print text; lines of a diff get their colours."""
        for line in text.splitlines(keepends=True):
            style = {"+": ADDED, "-": REMOVED}.get(line[:1])
            body = line.rstrip("\n")
            self._write(f"{self._styled(body, style) if style else body}\n")

    def see(self, event: dict[str, Any]) -> None:
        """Print an event of the wire."""
        match event["type"]:
            case "message.delta":
                self._write(event["text"])
            case "message.ended" if event["role"] == "assistant":
                self._break()
            case "tool.running":
                self._titles[event["item"]] = event["title"]
                self._line(f"▸ {event['title']}")
            case "tool.ended":
                self._line(f"  {MARKS[event['status']]} {_line_of(event)[:PREVIEW]}")
            case "edit.applied":
                names = ", ".join(one["uri"].rsplit("/", 1)[-1] for one in event["documents"])
                self._line(f"  ✎ edit verified in {names}")
            case "run.ended" if event.get("error"):
                self._line(f"{event['error']['kind']}: {event['error']['message']}")
            case "notice":
                self._line(event["text"])
            case _:
                pass

    def _line(self, text: str) -> None:
        self._break()
        self._write(f"{self._styled(text, DIM)}\n")

    def _break(self) -> None:
        if not self._at_line_start:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            _ = self._out.write(text)
            _ = self._out.flush()
            self._at_line_start = text.endswith("\n")

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._colour else text


def _line_of(event: dict[str, Any]) -> str:
    """Choose the line of a tool's output that says most: the first of a success, the last of a failure."""
    text = next((part["text"] for part in event["content"] if part["type"] == "text"), "")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "no output"
    return lines[0] if event["status"] == "ok" and event["name"] != "bash" else lines[-1]
