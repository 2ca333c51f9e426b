"""The tables of the guide that follow from code: the commands, and the table of the permission modes.

`python -m tests.architecture.documents.guide_tables` writes them.
"""

import argparse
from collections.abc import Iterator, Mapping
from typing import Final, get_args

from agent_core.workspace.permissions.call_permission import PolicyMode
from agent_core.workspace.permissions.policy.matrix import MATRIX
from tests.support.harness.shared import ROOT
from tiller_server.cli.command_execution import load_command
from tiller_server.cli.command_line import COMMANDS, SERVERS

COMMANDS_PAGE: Final = ROOT / "docs/commands.md"
MODES_PAGE: Final = ROOT / "docs/permissions.md"
BEGIN: Final = "<!-- modes:begin -->\n"
END: Final = "<!-- modes:end -->\n"
CELLS: Final[Mapping[str, str]] = {
    "run": "runs",
    "rules": "rules",
    "ask": "asks",
    "refuse": "refused",
}
LEAD: Final = """\
# Commands

The commands of `tiller` with their options, generated from the parser of the command line. `tiller COMMAND --help` prints the same for the
installed version. `tiller` alone begins a conversation, and `tiller "PROMPT"` begins one with that prompt; see [terminal](terminal/README.md).
"""


def command_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command, without the name of the command."""
    parser = argparse.ArgumentParser(prog=f"tiller {name}")
    load_command(name).add_arguments(parser)
    return parser


def commands_page() -> str:
    """Return the page of the commands as it should be."""
    parts = [LEAD]
    for name, summary in COMMANDS.items():
        parts.append(f"\n## `tiller {name}`\n\n{_sentence(summary)}\n")
        parts.extend(_tables(command_parser(name), f"tiller {name}"))
    for name, summary in SERVERS.items():
        parts.append(f"\n## `tiller {name}`\n\n{_sentence(summary)}\n")
    return "".join(parts)


def modes_page() -> str:
    """Return the page of permissions with its table as it should be."""
    before, _, rest = MODES_PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    modes: tuple[PolicyMode, ...] = get_args(PolicyMode)
    head = (
        f"| Call | {' | '.join(f'`{mode}`' for mode in modes)} |\n|{' --- |' * (len(modes) + 1)}\n"
    )
    rows = (
        f"| {column} | {' | '.join(CELLS[cells[mode]] for mode in modes)} |\n"
        for column, cells in MATRIX.items()
    )
    return f"{before}{BEGIN}\n{head}{''.join(rows)}\n{END}{after}"


def subcommands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of the verbs of a command by their names; empty if it has none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _tables(parser: argparse.ArgumentParser, prog: str) -> Iterator[str]:
    verbs = subcommands(parser)
    rows = [row for action in parser._actions if (row := _row(action))]
    if rows:
        yield f"\n| Argument | Meaning |\n| --- | --- |\n{''.join(rows)}"
    for verb, inner in verbs.items():
        yield f"\n### `{prog} {verb}`\n"
        yield from _tables(inner, f"{prog} {verb}")


def _row(action: argparse.Action) -> str:
    if action.help == argparse.SUPPRESS or isinstance(
        action,
        (argparse._HelpAction, argparse._SubParsersAction),
    ):
        return ""
    choices = "" if action.choices is None else "\\|".join(str(one) for one in action.choices)
    value = action.metavar if isinstance(action.metavar, str) else choices or action.dest.upper()
    takes = f" {value}" if action.nargs != 0 and action.option_strings else ""
    name = ", ".join(action.option_strings) + takes if action.option_strings else value
    about = " ".join(((action.help or "") % vars(action)).replace("|", "\\|").split())
    return f"| `{name}` | {about} |\n".replace("…", "...")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


if __name__ == "__main__":
    _ = COMMANDS_PAGE.write_text(commands_page(), encoding="utf-8")
    _ = MODES_PAGE.write_text(modes_page(), encoding="utf-8")
