"""`tiller trust`: which workspaces may configure Tiller and be changed by it."""

import argparse
import sys
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonObject, JsonValue, SystemClock
from agent_core.kernel.errors import TillerError, WorkspaceMissing
from agent_core.kernel.json import encode
from agent_core.resources.paths import AppPaths, app_paths
from agent_core.resources.settings.layers import Layer, load_settings_now
from agent_core.resources.trust.workspace_trust import TrustCheckResult, TrustStore, WorkspaceTrust
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, code_of_error, complain

EXAMPLE: Final = "example: tiller trust add ~/project"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="add|list|rm")
    added = verbs.add_parser(
        "add", help="trust a workspace as it is now; what could configure Tiller is shown"
    )
    listed = verbs.add_parser("list", help="list the workspaces that you have decided about")
    removed = verbs.add_parser("rm", help="forget your decision about a workspace")
    for one in (added, removed):
        _ = one.add_argument("folder", metavar="DIR", nargs="?", default=".", help="[.]")
    _ = listed.add_argument("--json", action="store_true", help="as JSON")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    try:
        paths = app_paths(environment.variables)
        if options.verb == "list":
            return _list(paths, as_json=options.json)
        folder = Path(options.folder).expanduser().resolve()
        if options.verb == "rm":
            return _remove(paths, folder)
        if not folder.is_dir():
            message = f"{folder} is no folder; name the one that editors open"
            raise WorkspaceMissing(message)
        return _add(paths, folder)
    except TillerError as error:
        complain("trust", str(error))
        return code_of_error(error)


def look_at(paths: AppPaths, folder: Path) -> TrustCheckResult:
    """Return whether a workspace is trusted as it is now."""
    return _trust(paths, folder).check_now()


def _trust(paths: AppPaths, folder: Path) -> WorkspaceTrust:
    values = load_settings_now((Layer(name="user", content=paths.settings),)).values
    store = TrustStore(paths.trust)
    default = values.default_project_trust
    return WorkspaceTrust(folder, store=store, default=default, clock=SystemClock())


def _add(paths: AppPaths, folder: Path) -> int:
    trust = _trust(paths, folder)
    before = trust.check_now()
    if before.problem:
        complain("trust", f"{folder} cannot be trusted: {before.problem}")
        return FAILED
    _ = trust.record_now("trusted", lasting=True)
    word = TrustStore(paths.trust).decision(folder)
    names = sorted(word.hashes) if word else []
    lines = [f"trusted {folder}"]
    lines += [f"  {name!a}" for name in names] or [
        "  there is nothing in it that configures Tiller"
    ]
    lines += _change_lines(before)
    return _write_line("\n".join(lines))


def _list(paths: AppPaths, *, as_json: bool) -> int:
    entries: list[JsonValue] = []
    lines: list[str] = []
    for name, word in sorted(TrustStore(paths.trust).decisions().items()):
        verdict = look_at(paths, Path(name))
        entry: JsonObject = {
            "folder": name,
            "said": word.said,
            "at": word.at,
            "state": verdict.state,
            "changed": [*verdict.changed, *verdict.added, *verdict.removed],
        }
        entries.append(entry)
        about = f" ({verdict.problem})" if verdict.problem else ""
        lines += [f"{verdict.state:9} {name!a}  since {word.at}{about}", *_change_lines(verdict)]
    if as_json:
        return _write_line(encode({"folders": entries}).decode())
    return _write_line("\n".join(lines) if lines else "nothing was said of any workspace")


def _remove(paths: AppPaths, folder: Path) -> int:
    if TrustStore(paths.trust).forget(folder):
        return _write_line(f"forgotten: {folder}")
    complain("trust", f"nothing was said of {folder}; see `tiller trust list`")
    return FAILED


def _change_lines(verdict: TrustCheckResult) -> list[str]:
    """Return what changed, in characters that a terminal only shows."""
    lines = [f"  changed  {name!a}" for name in verdict.changed]
    lines += [f"  new      {name!a}" for name in verdict.added]
    lines += [f"  gone     {name!a}" for name in verdict.removed]
    shown = verdict.difference.splitlines()
    return [*lines, *("    " + ascii(line)[1:-1] for line in shown)]


def _write_line(text: str) -> int:
    _ = sys.stdout.write(f"{text}\n")
    return DONE
