"""`tiller doctor`: a report of what works on this machine and how to repair the rest."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from agent_core.kernel.errors import TillerError, WorkspaceMissing
from agent_core.resources.paths import AppPaths, app_paths
from agent_core.resources.settings.layers import Layer, Settings, load_settings_now
from agent_core.workspace.sandbox import Prober
from tiller_server.cli.doctor.check import Check, checks_json, checks_text
from tiller_server.cli.doctor.environment import machine_checks
from tiller_server.cli.doctor.models import model_checks
from tiller_server.cli.doctor.storage import place_checks
from tiller_server.cli.doctor.system import checks
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, code_of_error, complain

EXAMPLE: Final = "example: tiller doctor --workspace ~/project --ask"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    _ = parser.add_argument(
        "--workspace", metavar="DIR", default=".", help="the folder that an editor opens [.]"
    )
    _ = parser.add_argument("--json", action="store_true", help="as JSON")
    _ = parser.add_argument(
        "--ask", action="store_true", help="also ask the model one word, which costs a little"
    )


def main(
    options: argparse.Namespace, environment: Environment, *, prober: Prober | None = None
) -> int:
    """Run the command; returns the exit code, 1 when something does not work."""
    try:
        workspace = Path(options.workspace).expanduser().resolve()
        if not workspace.is_dir():
            message = f"{workspace} is no folder; name the one that editors open"
            raise WorkspaceMissing(message)
        paths = app_paths(environment.variables)
        settings = load_settings_now((Layer(name="user", content=paths.settings),))
        found = [
            *checks(
                workspace=workspace,
                env=environment.variables,
                paths=paths,
                settings=settings,
                containing=(prober or Prober()).containing(),
            ),
            *place_checks(paths, workspace=workspace, env=environment.variables),
            *machine_checks(environment),
            *anyio.run(
                partial(
                    _models,
                    options,
                    environment,
                    workspace=workspace,
                    paths=paths,
                    settings=settings,
                )
            ),
        ]
    except TillerError as error:
        complain("doctor", str(error))
        return code_of_error(error)
    _ = sys.stdout.write(checks_json(found) if options.json else checks_text(found))
    return FAILED if any(check.status == "missing" for check in found) else DONE


async def _models(
    options: argparse.Namespace,
    environment: Environment,
    *,
    workspace: Path,
    paths: AppPaths,
    settings: Settings,
) -> Sequence[Check]:
    asked = model_checks(options, environment, workspace=workspace, paths=paths, settings=settings)
    return [check async for check in asked]
