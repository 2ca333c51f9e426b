"""Reads the persistent rules of a `policy.json`; an unreadable part never loosens the policy. Blocking."""

import errno
import hashlib
import json
import logging
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from typing_extensions import override

from agent_core.kernel.json import JsonObject, JsonValue, is_object
from agent_core.kernel.unknown_keys import NOTES as FOR_PEOPLE, did_you_mean
from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.rules.matching import (
    RulesFileContext,
    pinned,
    why_unsound,
)
from agent_core.workspace.permissions.policy.rules.rule import EVERY_TOOL, PolicyRuleScope, Rule

log = logging.getLogger(__name__)

RulesOrigin = Literal["user", "project", "repository"]
"""`project`: answers of a person, kept in their own folder. `repository`: comes with the code, so it only tightens."""
VERSION: Final = 1
MOST_BYTES: Final = 1 << 20
MOST_RULES: Final = 1000
NAME: Final = "policy.json"
OUTERMOST: Final = ("rules", "version", "note", "comment")
SCOPES: Final[Mapping[RulesOrigin, PolicyRuleScope]] = {
    "user": "user",
    "project": "project",
    "repository": "project",
}


class RulesFileProblem(Value, frozen=True, kw_only=True):
    """Something in a file that is not as its writer meant it."""

    path: Path
    rule: str | None
    """The id of the rule; None when it is the whole file."""
    text: str

    @override
    def __str__(self) -> str:
        """Format the problem as one line."""
        about = f" rule {self.rule!r}:" if self.rule is not None else ""
        return f"{self.path}:{about} {self.text}"


class LoadedRulesFile(Value, frozen=True, kw_only=True):
    """Rules and problems of a file."""

    rules: tuple[Rule, ...]
    """Those in force. Where one could not be read there stands one that asks instead."""
    problems: tuple[RulesFileProblem, ...]


def load_rules(
    path: Path,
    *,
    origin: RulesOrigin,
    roots: Sequence[Path],
    env_path: str,
    home: Path | None = None,
) -> LoadedRulesFile:
    """Read the rules of a file. Never raises for its content; a missing file has no rules.

    A file that cannot be read yields one rule, which asks about everything: the rules that deny are not known any more.

    Args:
        path: The file.
        origin: Author of the file. A file that comes with the code must be read in a trusted workspace only.
        roots: The folders of the workspace, without links.
        env_path: The PATH of commands: allowed programs that the file does not pin are pinned now.
        home: Folder that a leading `~/` in a path stands for.
    """
    ground = RulesFileContext(origin=origin, roots=tuple(roots), env_path=env_path, home=home)
    scope = SCOPES[origin]
    try:
        return _load(path, ground, scope)
    except ValueError as error:
        return _unreadable(path, scope, str(error))
    except Exception as error:
        # A fault in the reading must not lose what the file denies.
        log.exception("the rules of %s could not be read", path)
        return _unreadable(path, scope, f"cannot be understood ({type(error).__name__})")


def remembered_file(data: Path, workspace: Path) -> Path:
    """Return where the lasting answers about a workspace are kept: beside the sessions, not in the workspace."""
    digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
    name = re.sub(r"[^A-Za-z0-9._-]", "-", workspace.name)[:40]
    return data / "policy" / f"{name}-{digest}" / NAME


def read_bytes(path: Path) -> bytes:
    """Read a file whole; nothing for one that is not there.

    Raises:
        ValueError: It is no file, too large, or the system refuses it.
    """
    try:
        # Not blocking: a pipe of that name must not hold the session up.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return b""
        message = f"cannot be read ({error.strerror})"
        raise ValueError(message) from error
    try:
        return _read_regular(fd)
    except OSError as error:
        message = f"cannot be read ({error.strerror})"
        raise ValueError(message) from error
    finally:
        os.close(fd)


def read_document(content: bytes) -> JsonObject:
    """Read the outermost object; an empty file is an empty one.

    Raises:
        ValueError: It is something else, with line and column where they are known.
    """
    if not content.strip():
        return {}
    try:
        text = content.decode("utf-8-sig")
        found: JsonValue = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)  # pyright: ignore[reportAny] - a parser gives Any
    except json.JSONDecodeError as error:
        message = f"is not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise ValueError(message) from error
    except RecursionError as error:
        raise ValueError("is nested too deeply to be read") from error
    except UnicodeError as error:
        raise ValueError("is not UTF-8 text") from error
    if not is_object(found):
        raise ValueError("must hold a JSON object: { … }")
    version = found.get("version", VERSION)
    if version != VERSION or isinstance(version, bool):
        message = f"has version {version!r}; this Tiller knows version {VERSION}"
        raise ValueError(message)
    return found


def rule_list(document: JsonObject) -> Sequence[JsonValue]:
    """Return the rules of a document.

    Raises:
        ValueError: There is something else in their place, or too many.
    """
    rules = document.get("rules", ())
    if isinstance(rules, str) or not isinstance(rules, Sequence):
        message = 'must hold a list under "rules"'
        raise ValueError(message)  # noqa: TRY004 - what a person wrote is wrong, not a type of ours
    if len(rules) > MOST_RULES:
        message = f"holds {len(rules)} rules; {MOST_RULES} are the most"
        raise ValueError(message)
    return rules


def _load(path: Path, ground: RulesFileContext, scope: PolicyRuleScope) -> LoadedRulesFile:
    rules: list[Rule] = []
    problems: list[RulesFileProblem] = []
    document = read_document(read_bytes(path))
    for unknown in document:
        if unknown not in OUTERMOST and not unknown.startswith(FOR_PEOPLE):
            text = f'"{unknown}" is no key of {NAME}, so it has no effect{did_you_mean(unknown, OUTERMOST)}'
            problems.append(RulesFileProblem(path=path, rule=None, text=text))
    for number, entry in enumerate(rule_list(document), 1):
        rule, found = _load_entry(entry, number=number, scope=scope, ground=ground)
        rules += [rule] if rule is not None else []
        problems += [RulesFileProblem(path=path, rule=name, text=text) for name, text in found]
    return LoadedRulesFile(rules=tuple(rules), problems=tuple(problems))


def _unreadable(path: Path, scope: PolicyRuleScope, why: str) -> LoadedRulesFile:
    text = f"{why}. Until it is repaired everything is asked about"
    problem = RulesFileProblem(path=path, rule=None, text=text)
    return LoadedRulesFile(rules=(_asking(EVERY_TOOL, scope),), problems=(problem,))


def _read_regular(fd: int) -> bytes:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("is no regular file")
    if found.st_size > MOST_BYTES:
        message = f"is larger than {MOST_BYTES} bytes"
        raise ValueError(message)
    with os.fdopen(fd, "rb", closefd=False) as file:
        return file.read(MOST_BYTES)


def _load_entry(
    entry: JsonValue, *, number: int, scope: PolicyRuleScope, ground: RulesFileContext
) -> tuple[Rule | None, list[tuple[str, str]]]:
    """Return the rule in force for an entry, and what is wrong with it, with its name."""
    from agent_core.workspace.permissions.policy.rules.entries import (  # noqa: PLC0415 - at first use
        RuleProblem,
        no_such_key,
        odd_key,
        read_entry,
    )

    name = f"number {number}"
    try:
        rule = read_entry(entry, scope=scope, home=ground.home)
    except RuleProblem as problem:
        name = problem.rule_id or name
        if problem.verdict == "allow":
            return None, [(name, f"{problem}; it is not in force")]
        asking = _asking(problem.tool or EVERY_TOOL, scope)
        return asking, [
            (name, f"{problem}; until it is repaired, {_named(asking.tool)} is asked about")
        ]
    wrong = list(_wrong(rule, ground))
    if rule.verdict != "allow" and is_object(entry) and (odd := odd_key(entry, scope)) is not None:
        # It narrows nothing, so the rule holds for more than was meant.
        wrong.append(f"has the key {no_such_key(odd)}")
    if rule.verdict != "allow":
        return rule, [(rule.id, f"{text}; it stays in force") for text in wrong]
    if wrong:
        return None, [(rule.id, f"{text}; it is not in force") for text in wrong]
    return pinned(rule, ground), []


def _wrong(rule: Rule, ground: RulesFileContext) -> Iterator[str]:
    from agent_core.workspace.permissions.policy.rules.examples import wrong_examples  # noqa: PLC0415 - at first use

    if unsound := why_unsound(rule, ground):
        yield unsound
        return
    yield from wrong_examples(rule, roots=ground.roots)


def _asking(tool: str, scope: PolicyRuleScope) -> Rule:
    return Rule(id="unreadable", tool=tool, verdict="ask", scope=scope)


def _named(tool: str) -> str:
    return "everything" if tool == EVERY_TOOL else f"the tool {tool!r}"


def _once(pairs: Sequence[tuple[str, JsonValue]]) -> JsonObject:
    """Refuse a key that stands twice: people read the first, parsers the last."""
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        message = f"has the key {double!r} twice in one object"
        raise ValueError(message)
    return made


def _refuse(name: str) -> JsonValue:
    message = f"holds {name}, which is not JSON"
    raise ValueError(message)
