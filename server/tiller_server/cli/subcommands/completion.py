"""`tiller completion`: prints a script that completes commands, options and files in your shell."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Final, cast

from tiller_server.cli.command_execution import load_command
from tiller_server.cli.command_line import COMMANDS, SERVERS, CommandParser
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE

SHELLS: Final = ("bash", "zsh", "fish")
EPILOG: Final = """\
bash: tiller completion bash > ~/.local/share/bash-completion/completions/tiller
zsh:  tiller completion zsh > ~/.zfunc/_tiller    (with ~/.zfunc in $fpath before compinit)
fish: tiller completion fish > ~/.config/fish/completions/tiller.fish
"""
FILES: Final = frozenset({"FILE", "PATH", "REPORT"})
FOLDERS: Final = frozenset({"DIR"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    _ = parser.add_argument("shell", choices=SHELLS, help="the shell to write the script for")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Print the script; return the exit code."""
    import shtab  # noqa: PLC0415 - 50 ms

    _ = environment
    parser = _whole_parser()
    kinds: Mapping[str, object] = {
        **dict.fromkeys(FILES, shtab.FILE),
        **dict.fromkeys(FOLDERS, shtab.DIRECTORY),
    }
    for action in _actions(parser):
        if isinstance(action.metavar, str) and action.metavar in kinds:
            vars(action)["complete"] = kinds[action.metavar]
    _ = sys.stdout.write(shtab.complete(parser, shell=options.shell))
    return DONE


def _whole_parser() -> argparse.ArgumentParser:
    """Return the parser with the options of all commands."""
    parser = CommandParser(prog="tiller")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        load_command(name).add_arguments(commands.add_parser(name, help=summary))
    for name, summary in SERVERS.items():
        _ = commands.add_parser(name, help=summary)
    return parser


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of its subparsers."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way, and shtab reads it too
        yield action
        if isinstance(action.choices, Mapping):
            for inner in cast("Mapping[str, object]", action.choices).values():
                if isinstance(inner, argparse.ArgumentParser):
                    yield from _actions(inner)
