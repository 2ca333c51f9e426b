"""What a plain editor shows of a question, and what its answer means: nothing hidden, nothing guessed."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.events import (
    CommandSubject,
    PermissionOption,
    PermissionRequest,
    ServerSubject,
    TargetSubject,
)
from agent_core.kernel import ItemId, RunId, SessionId
from tiller_server.lsp.dialogs.permission_dialog import MOST_CHARS, answered, chosen, dialog

KINDS = ("allowOnce", "allowRun", "allowSession", "allowProject", "rejectOnce", "rejectAlways")
ASKED = PermissionRequest(
    request="p",
    session=SessionId("s"),
    run=RunId("r"),
    item=ItemId("i"),
    title="Run make",
    description="no rule allows it",
    risk="medium",
    since_ms=0,
    expires_ms=1000,
    subject=CommandSubject(
        argv=("make",),
        command="make",
        cwd=Path("/w"),
        plain=True,
        sandbox="none",
        parsed=(),
    ),
    options=tuple(PermissionOption(id=kind, kind=kind, label=f"Label {kind}") for kind in KINDS),
    default="rejectOnce",
)


def of(command: str) -> PermissionRequest:
    return replace(ASKED, subject=replace(ASKED.subject, command=command))


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("make all", "make all"),
        ("echo a\nrm -rf b", "echo a⏎ rm -rf b"),
        ("echo \x1b[2Kls", "echo <U+001B>[2Kls"),
        ("echo \u202egnp.exe", "echo <U+202E>gnp.exe"),
        ("ls\r# harmless", "ls<U+000D># harmless"),
        ("cat a\u200bb \U000e0041", "cat a<U+200B>b <U+E0041>"),
        ("echo \u3164\u2800\xa0", "echo <U+3164><U+2800><U+00A0>"),
        ("echo \udcff", "echo <U+DCFF>"),
    ],
)
def test_the_exact_bytes_are_shown_in_one_line(command: str, line: str) -> None:
    shown = dialog(of(command))
    assert shown["message"].split("\n")[1] == line
    assert len(shown["message"].splitlines()) == 3


def test_four_buttons_at_most_in_the_order_of_the_question_each_short_and_with_its_id() -> None:
    long = replace(ASKED, options=tuple(replace(one, label="x" * 200) for one in ASKED.options))
    actions = dialog(long)["actions"]
    assert [one["optionId"] for one in actions] == [
        "allowOnce",
        "allowSession",
        "allowProject",
        "rejectOnce",
    ]
    assert {len(one["title"]) for one in actions} == {60}


def test_what_is_too_long_to_be_read_can_only_be_refused() -> None:
    asked = of("x" * (MOST_CHARS + 1))
    assert {one["optionId"] for one in dialog(asked)["actions"]} == {"rejectOnce", "rejectAlways"}
    assert "too long to be allowed from here" in dialog(asked)["message"]
    assert chosen(asked, {"title": "Label allowOnce", "optionId": "allowOnce"}) == "rejectOnce"


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        ({"title": "Label allowOnce", "optionId": "allowOnce"}, "allowOnce"),
        ({"title": "Label allowProject"}, "allowProject"),
        ({"title": "something else"}, "rejectOnce"),
        ({"title": "Label allowOnce", "optionId": "allowEverything"}, "rejectOnce"),
        ({"title": "Label allowRun", "optionId": "allowRun"}, "rejectOnce"),
        (None, "rejectOnce"),
        ([], "rejectOnce"),
        ("allowOnce", "rejectOnce"),
    ],
)
def test_only_a_button_that_was_shown_counts(answer: object, option: str) -> None:
    assert chosen(ASKED, answer) == option


def test_two_buttons_of_one_title_are_a_no_without_an_id() -> None:
    same = replace(ASKED, options=tuple(replace(one, label="Yes") for one in ASKED.options))
    assert chosen(same, {"title": "Yes"}) == "rejectOnce"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"option": "allowRun", "note": "ok"}, ("allowRun", "ok")),
        ({"option": "allowRun", "note": 5}, ("allowRun", None)),
        ({"option": "root"}, ("rejectOnce", None)),
        ({}, ("rejectOnce", None)),
        (None, ("rejectOnce", None)),
    ],
)
def test_an_answer_with_an_option_that_was_not_offered_is_a_no(
    answer: object, expected: tuple[str, str | None]
) -> None:
    choice = answered(ASKED, answer)
    assert (choice.option, choice.note) == expected


def test_a_file_or_tool_is_named_with_what_it_gets() -> None:
    target = TargetSubject(type="edit", tool="write", sandbox="none", path=Path("/w/AGENTS.md"))
    assert "/w/AGENTS.md" in dialog(replace(ASKED, subject=target))["message"]
    tool = TargetSubject(type="tool", tool="mine", sandbox="none", input={"to": "a\x1bb"})
    assert "to: a<U+001B>b" in dialog(replace(ASKED, subject=tool))["message"]


def test_a_server_is_named_with_its_tools_and_how_it_is_reached() -> None:
    server = ServerSubject(
        server="shop",
        way="npx shop (contained like commands, without the network)",
        source=Path("/c/mcp.json"),
        added=("buy",),
        changed=("look\x1b",),
    )
    asked = replace(ASKED, title="Use the MCP server shop again?", subject=server)
    message = dialog(asked)["message"]
    assert message.startswith("Use the MCP server shop again?")
    assert "look<U+001B>, buy of npx shop (contained like commands" in message
