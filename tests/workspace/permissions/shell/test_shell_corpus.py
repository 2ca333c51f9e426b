"""The hostile command lines of the reference data: none is allowed that should not be."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from agent_core.workspace.permissions.policy.commands.arguments import misleading
from agent_core.workspace.permissions.shell import (
    PlainCommandLine,
    is_wrapper,
    mentioned,
    read_command,
)
from tests.support.harness.shared import shared_path

Says = Literal["allow", "ask", "deny"]
ALLOWED = (("git", "status"), ("git", "diff"), ("ls",), ("pytest",), ("npm", "test"))
DENIED = (("rm", "-rf"), ("git", "push"))
MOST_NEEDLESS = 0.35
ROOT = Path("/workspace")


def test_no_line_of_the_corpus_is_allowed_that_should_not_be() -> None:
    rows = list(_rows())
    said = {row["id"]: _says(row["cmd"]) for row in rows}
    wrong = [(row["cmd"], said[row["id"]]) for row in rows if said[row["id"]] not in row["accept"]]
    assert wrong == []
    allowable = [row for row in rows if row["expect"] == "allow"]
    needless = [row["cmd"] for row in allowable if said[row["id"]] != "allow"]
    assert len(needless) <= MOST_NEEDLESS * len(allowable), needless
    missed = [row["cmd"] for row in rows if row["expect"] == "deny" and said[row["id"]] != "deny"]
    # History is expanded in no shell that runs a text, so this one names a program `!rm`.
    assert set(missed) <= {"!rm -rf x"}
    print(f"{len(rows)} lines, {len(needless)} of {len(allowable)} asked without need")


def _says(line: str) -> Says:
    read = read_command(line)
    plain = read.commands if isinstance(read, PlainCommandLine) else ()
    if any(argv[: len(rule)] == rule for rule in DENIED for argv in (*plain, *mentioned(line))):
        return "deny"
    return "allow" if plain and all(_is_allowed(argv) for argv in plain) else "ask"


def _is_allowed(argv: tuple[str, ...]) -> bool:
    rule = next((rule for rule in ALLOWED if argv[: len(rule)] == rule), None)
    if rule is None or is_wrapper(argv[0]):
        return False
    return misleading(argv[0], argv[len(rule) :], cwd=ROOT, roots=(ROOT,)) is None


def _rows() -> Iterator[dict]:
    text = shared_path("data", "hostile", "shell.jsonl").read_text(encoding="utf-8")
    yield from (json.loads(line) for line in text.splitlines())
