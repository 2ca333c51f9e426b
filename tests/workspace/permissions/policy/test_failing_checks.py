"""A fault anywhere in the policy never becomes a yes."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

from agent_core.workspace.permissions import policy
from agent_core.workspace.permissions.policy import Allow, Deny, decide, load_rules, save_rule
from agent_core.workspace.permissions.policy.rules import entries, examples
from agent_core.workspace.permissions.shell import mentions, strict_parser, wrappers
from tests.workspace.permissions.policy.test_matrix import SUBJECTS
from tests.workspace.permissions.policy.world import World, command_rule, file_rule, other

MODULES = [
    importlib.import_module(f"{policy.__name__}.{found.name}")
    for found in pkgutil.iter_modules(policy.__path__)
]
FENCE = {"decide"}
ELSEWHERE = {"entries", "examples", "explain", "file", "git_facts", "keeping", "soundness"}
"""Modules that decide nothing: they read and write rules, or tell of them."""


PLACES = [
    (module, name)
    for module in MODULES
    if module.__name__.rsplit(".", 1)[-1] not in ELSEWHERE
    for name, found in vars(module).items()
    if inspect.isfunction(found)
    and "agent_core.workspace" in found.__module__
    and name not in FENCE
]
"""Every function of the package, in every module that calls it by name."""


class Broken(Exception):
    """What an injected fault raises."""


def broken(*_: object, **__: object) -> object:
    raise Broken


@pytest.mark.parametrize(
    ("module", "name"), PLACES, ids=[f"{m.__name__.rsplit('.')[-1]}.{n}" for m, n in PLACES]
)
def test_a_function_that_fails_never_turns_a_question_or_a_refusal_into_a_run(
    lasting: World, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> None:
    situations = [
        lasting.situation(
            command_rule("deny", "npm"), file_rule("deny", "*", "a"), lasting.allow("cat"), command_rule("ask", "git"),
            containment=containment, mode=mode,
        )
        for containment in ("none", "full")
        for mode in ("ask", "plan", "yolo")
    ]  # fmt: skip
    subjects = [make(lasting) for make in SUBJECTS.values()]
    subjects += [lasting.command(text) for text in ("npm x", "cat x", "git x", "cat x && npm y")]
    before = [[decide(subject, situation) for subject in subjects] for situation in situations]
    monkeypatch.setattr(module, name, broken)
    for situation, row in zip(situations, before, strict=True):
        for subject, was in zip(subjects, row, strict=True):
            now = decide(subject, situation)
            assert not isinstance(now, Allow) or isinstance(was, Allow)


def test_a_failed_check_refuses_says_so_and_is_logged(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(importlib.import_module(decide.__module__), "column_of", broken)
    why = "the permission check itself failed (Broken), so nothing was done."
    assert decide(other("look", "read"), world.situation()) == Deny(
        reason=f"{why} Go on without it, and tell the user.", happened=why
    )
    assert "the permission check failed" in caplog.text


def test_a_fault_in_the_loader_of_rules_asks_about_everything(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.base / "policy.json"
    save_rule(path, world.allow("ls"))
    loader = importlib.import_module(load_rules.__module__)
    for module, name in (
        (loader, "read_bytes"),
        (loader, "read_document"),
        (loader, "rule_list"),
        (entries, "read_entry"),
        (loader, "why_unsound"),
        (examples, "wrong_examples"),
        (loader, "pinned"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, broken)
            found = load_rules(path, origin="user", roots=(world.root,), env_path=str(world.bin))
        assert [(rule.tool, rule.verdict) for rule in found.rules] == [("*", "ask")]
        assert "cannot be understood (Broken)" in str(found.problems[0])


def test_the_reader_of_commands_may_fail_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (strict_parser, "read_command"),
        (mentions, "mentioned"),
        (wrappers, "is_wrapper"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, broken)
            situation = world.situation(world.allow("ls"))
            assert not isinstance(decide(world.command("ls"), situation), Allow)
