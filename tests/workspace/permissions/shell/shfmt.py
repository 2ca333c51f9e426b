"""Asks shfmt, a stranger to our readers, which plain commands it sees in a line."""

import json
import subprocess
import sys
from pathlib import Path

Argv = tuple[str, ...]
BEYOND_PLAIN = frozenset({"Redirs", "Background", "Coprocess", "Disown", "Assigns"})
GROUPS = frozenset({"Subshell", "Block"})
JOINS = frozenset({"&&", "||", "|"})


def find_shfmt() -> Path | None:
    """Give the program that lies beside this Python."""
    path = Path(sys.executable).parent / "shfmt"
    return path if path.is_file() else None


def commands_by_shfmt(line: str, *, shfmt: Path) -> tuple[Argv, ...] | None:
    """Give the commands of a line; None when shfmt sees more in it than plain ones, or nothing."""
    done = subprocess.run(
        [shfmt, "-ln", "bash", "--to-json"],
        input=line.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        return None
    commands = _in_order(json.loads(done.stdout).get("Stmts", []))
    return None if commands is None else tuple(commands)


def _in_order(statements: list[dict]) -> list[Argv] | None:
    commands: list[Argv] = []
    for statement in statements:
        found = _commands(statement)
        if found is None:
            return None
        commands += found
    return commands


def _commands(statement: dict) -> list[Argv] | None:
    command = statement.get("Cmd")
    if command is None or BEYOND_PLAIN & statement.keys():
        return None
    if command["Type"] == "BinaryCmd" and command["Op"] in JOINS:
        left, right = _commands(command["X"]), _commands(command["Y"])
        return None if left is None or right is None else left + right
    if command["Type"] in GROUPS:
        return _in_order(command.get("Stmts", []))
    if command["Type"] != "CallExpr" or BEYOND_PLAIN & command.keys():
        return None
    words = [_word(word["Parts"]) for word in command.get("Args", [])]
    return (
        None if None in words or not words else [tuple(word for word in words if word is not None)]
    )


def _word(parts: list[dict]) -> str | None:
    texts: list[str] = []
    for part in parts:
        value = part.get("Value", "")
        if part.get("Dollar"):
            return None
        if part["Type"] == "SglQuoted" or (part["Type"] == "Lit" and "\\" not in value):
            texts.append(value)
        elif part["Type"] == "DblQuoted" and all(
            inner["Type"] == "Lit" and "\\" not in inner["Value"] for inner in part.get("Parts", [])
        ):
            texts += [inner["Value"] for inner in part.get("Parts", [])]
        else:
            return None
    return "".join(texts)
