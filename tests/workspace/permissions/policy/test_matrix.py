"""What each mode does with each kind of target, trusted or not, contained or not."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from agent_core.workspace.permissions.call_permission import PolicyMode, SandboxLevel
from agent_core.workspace.permissions.policy import Allow, Ask, Deny, Subject, decide
from tests.workspace.permissions.policy.world import Word, World, other, verdict

MODES: tuple[PolicyMode, ...] = get_args(PolicyMode)
Make = Callable[[World], Subject]

SUBJECTS: dict[str, Make] = {
    "read inside": lambda w: w.file("a", "read"),
    "read a secret": lambda w: w.file(".env", "read", protected=True),
    "read outside": lambda w: w.file("/etc/hosts", "read"),
    "edit inside": lambda w: w.file("a"),
    "delete inside": lambda w: w.file("a", "delete"),
    "edit protected": lambda w: w.file(".git/config", protected=True),
    "delete protected": lambda w: w.file(".envrc", "delete", protected=True),
    "edit outside": lambda w: w.file("/etc/hosts"),
    "edit protected outside": lambda w: w.file("/etc/.envrc", protected=True),
    "command": lambda w: w.command("ls"),
    "command that is not plain": lambda w: w.command("ls > x; $y"),
    "command with network": lambda w: w.command("ls", "network"),
    "command with sockets": lambda w: w.command("ls", "sockets"),
    "command with network and sockets": lambda w: w.command("ls", "network", "sockets"),
    "command outside with sockets": lambda w: w.command("ls", "sockets", cwd=Path("/etc")),
    "command with git's configuration": lambda w: w.command("git init", "gitConfig"),
    "command with both": lambda w: w.command("ls", "gitConfig", "network"),
    "command outside": lambda w: w.command("ls", cwd=Path("/etc")),
    "command outside with network": lambda w: w.command("ls", "network", cwd=Path("/etc")),
    "another reading tool": lambda w: other("look", "read"),
    "another tool": lambda w: other("mine"),
    "another editing tool": lambda w: other("mine", "edit"),
    "another executing tool": lambda w: other("mine", "execute"),
    "a fetching tool": lambda w: other("fetch", "read", host="example.org"),
    "a tool of another server": lambda w: other("mcp", mcp="s/t"),
    "a reading tool of another server": lambda w: other("mcp", "read", mcp="s/t"),
}

# By subject: plan, ask, auto, yolo.
TABLE: dict[str, tuple[Word, Word, Word, Word]] = {
    "read inside": ("run", "run", "run", "run"),
    "read a secret": ("ask", "ask", "ask", "ask"),
    "read outside": ("refuse", "ask", "ask", "run"),
    "edit inside": ("refuse", "run", "run", "run"),
    "delete inside": ("refuse", "run", "run", "run"),
    "edit protected": ("refuse", "ask", "ask", "ask"),
    "delete protected": ("refuse", "ask", "ask", "ask"),
    "edit outside": ("refuse", "ask", "ask", "run"),
    "edit protected outside": ("refuse", "ask", "ask", "ask"),
    "command": ("refuse", "ask", "ask", "run"),
    "command that is not plain": ("refuse", "ask", "ask", "run"),
    "command with network": ("refuse", "ask", "ask", "run"),
    "command with sockets": ("refuse", "ask", "ask", "run"),
    "command with network and sockets": ("refuse", "ask", "ask", "run"),
    "command outside with sockets": ("refuse", "ask", "ask", "run"),
    "command with git's configuration": ("refuse", "ask", "ask", "ask"),
    "command with both": ("refuse", "ask", "ask", "ask"),
    "command outside": ("refuse", "ask", "ask", "run"),
    "command outside with network": ("refuse", "ask", "ask", "run"),
    "another reading tool": ("run", "run", "run", "run"),
    "another tool": ("refuse", "ask", "ask", "run"),
    "another editing tool": ("refuse", "ask", "ask", "run"),
    "another executing tool": ("refuse", "ask", "ask", "run"),
    "a fetching tool": ("ask", "ask", "ask", "run"),
    "a tool of another server": ("refuse", "ask", "ask", "run"),
    "a reading tool of another server": ("ask", "run", "run", "run"),
}
CONTAINED: dict[str, tuple[Word, Word, Word, Word]] = {
    "command": ("refuse", "run", "run", "run"),
    "command that is not plain": ("refuse", "run", "run", "run"),
}
"""What full containment changes; partial changes nothing."""


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("containment", get_args(SandboxLevel))
def test_a_mode_does_with_a_subject_what_the_table_says(
    lasting: World, name: str, containment: SandboxLevel
) -> None:
    row = CONTAINED.get(name, TABLE[name]) if containment == "full" else TABLE[name]
    subject = SUBJECTS[name](lasting)
    found = tuple(
        verdict(subject, lasting.situation(mode=mode, containment=containment)) for mode in MODES
    )
    assert found == row


@pytest.mark.parametrize("name", TABLE)
def test_an_untrusted_workspace_is_as_in_plan_mode_whatever_the_mode(
    lasting: World, name: str
) -> None:
    subject = SUBJECTS[name](lasting)
    for mode, containment in product(MODES, get_args(SandboxLevel)):
        untrusted = lasting.situation(mode=mode, containment=containment, trusted=False)
        assert verdict(subject, untrusted) == TABLE[name][0]


def test_the_reasons_say_what_it_was_and_what_to_do(world: World) -> None:
    def why(subject: Subject, **kinds: Any) -> str:
        return decide(subject, world.situation(**kinds)).reason

    ls = world.command("ls")
    assert (
        why(ls, mode="plan")
        == "bash is refused in plan mode: nothing may be changed. Describe the change instead."
    )
    assert why(ls, trusted=False) == (
        "bash is refused: this workspace is not trusted yet, so it may only be read. "
        "The user can trust it with `tiller trust add`, or `--trust`."
    )
    untrusted = decide(ls, world.situation(trusted=False))
    assert isinstance(untrusted, Deny)
    assert untrusted.happened == (
        "bash is refused: this workspace is not trusted yet, so it may only be read. Trust the folder to allow it."
    )
    assert why(other("mine"), mode="plan").startswith("the tool 'mine' is refused in plan mode")
    assert why(world.file("a", "delete"), mode="plan").startswith(
        f"to delete {str(world.root / 'a')!r} is refused"
    )
    assert why(ls) == "commands are not contained here, and no rule allows this one"
    assert (
        why(ls, containment="partial")
        == "commands are only partly contained here, and no rule allows this one"
    )
    assert (
        why(ls, containment="full")
        == "it is contained: it reaches nothing outside of the workspace"
    )
    assert why(ls, mode="yolo") == "command not contained runs in yolo mode"
    network = "it wants the network: the internet and every service that listens on this machine"
    sockets = (
        "unix sockets: programs of yours that listen on them, such as the display, D-Bus, docker"
    )
    always = "; that is always asked"
    assert why(world.command("ls", "network")) == network
    assert why(world.command("ls", "sockets")) == f"it wants {sockets}{always}"
    both = why(world.command("ls", "sockets", "network"))
    assert both == f"{network}, and {sockets}{always}"
    assert (
        why(world.command("ls", "network", cwd=Path("/")))
        == f"it leads outside of the workspace; {network}"
    )
    assert why(world.command("ls", cwd=Path("/"))) == "it leads outside of the workspace"
    assert why(other("mine")) == "no rule allows it"
    protected = "it would change what steers the agent or runs code; that is always asked"
    assert why(world.file(".envrc", protected=True)) == protected
    assert why(world.command("ls", "gitConfig")).startswith(f"{protected}; it wants git's conf")
    assert (
        why(world.file(".env", "read", protected=True))
        == "it would read a file of secrets; that is always asked"
    )


RISKS: dict[str, tuple[Make, str]] = {
    'command("ls -l src")': (lambda w: w.command("ls -l src"), "low"),
    'command("cat a && ls")': (lambda w: w.command("cat a && ls"), "low"),
    'command("cat /etc/passwd")': (lambda w: w.command("cat /etc/passwd"), "medium"),
    'command("cat ~/x")': (lambda w: w.command("cat ~/x"), "high"),
    'command("cat ../x")': (lambda w: w.command("cat ../x"), "medium"),
    'command("npm test")': (lambda w: w.command("npm test"), "medium"),
    'command("ls && npm test")': (lambda w: w.command("ls && npm test"), "medium"),
    'command("ls && rm x")': (lambda w: w.command("ls && rm x"), "high"),
    'command("/bin/rm x")': (lambda w: w.command("/bin/rm x"), "high"),
    'command("sudo ls")': (lambda w: w.command("sudo ls"), "high"),
    'command("ls $x")': (lambda w: w.command("ls $x"), "high"),
    'command("ls", cwd=Path("/"))': (lambda w: w.command("ls", cwd=Path("/")), "high"),
    'command("ls", "sockets")': (lambda w: w.command("ls", "sockets"), "high"),
    'command("ls", "gitConfig")': (lambda w: w.command("ls", "gitConfig"), "high"),
    'file("/etc/x", "read")': (lambda w: w.file("/etc/x", "read"), "medium"),
    'file("/etc/x")': (lambda w: w.file("/etc/x"), "high"),
    'file("/etc/x", "delete")': (lambda w: w.file("/etc/x", "delete"), "high"),
    'file(".env", "read", protected=True)': (lambda w: w.file(".env", "read", protected=True), "high"),
    'file(".envrc", protected=True)': (lambda w: w.file(".envrc", protected=True), "high"),
    'other("mine")': (lambda w: other("mine"), "medium"),
    'other("fetch", "read", host="a.org")': (lambda w: other("fetch", "read", host="a.org"), "medium"),
}  # fmt: skip


@pytest.mark.parametrize("name", RISKS)
def test_a_question_says_how_much_is_at_stake(lasting: World, name: str) -> None:
    make, risk = RISKS[name]
    asked = decide(make(lasting), lasting.situation())
    assert isinstance(asked, Ask)
    assert asked.risk == risk


def test_only_a_refusal_stands_when_nobody_answers(lasting: World) -> None:
    for name, make in SUBJECTS.items():
        asked = decide(make(lasting), lasting.situation())
        if isinstance(asked, Allow | Deny):
            continue
        kinds = {option.id: option.kind for option in asked.options}
        assert kinds[asked.default] == "rejectOnce", name
