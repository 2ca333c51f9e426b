"""The table of points: complete, true, and composed as users are told."""

import ast
from dataclasses import fields

import pytest

from agent_core.hooks import (
    POINTS,
    Chain,
    Collect,
    GoOn,
    HookInput,
    HookOutcome,
    catalogue,
    points,
)
from tests.hooks.hook_table import PAGE, ROOT, asked_in, page, shown_by
from tests.support.hooks.hook_samples import SAMPLES

COMPOSITION = {
    "resources_discover": ("collect",),
    "session_before_switch": ("gate",),
    "session_before_fork": ("gate",),
    "session_before_compact": ("gate", "last override"),
    "session_before_tree": ("gate", "last override"),
    "input": ("chain", "gate"),
    "before_agent_start": ("chain", "collect"),
    "context": ("chain",),
    "context_with_system": ("chain",),
    "before_provider_request": ("chain",),
    "before_provider_headers": ("chain",),
    "message_end": ("chain",),
    "tool_call": ("gate", "chain"),
    "tool_result": ("chain",),
    "user_bash": ("gate", "first wins"),
}
"""All others only tell."""
REFERENCE = [
    "resources_discover",
    "session_start",
    "session_before_switch",
    "session_switch",
    "session_before_fork",
    "session_fork",
    "session_before_compact",
    "session_compact",
    "session_shutdown",
    "session_before_tree",
    "session_tree",
    "context",
    "before_agent_start",
    "agent_start",
    "agent_end",
    "turn_start",
    "turn_end",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "model_select",
    "tool_call",
    "tool_result",
    "user_bash",
    "input",
]


def test_all_that_other_agents_extensions_know_is_there() -> None:
    assert len(REFERENCE) == 28
    assert set(REFERENCE) - {one.name for one in POINTS.values()} == set()


def test_the_answers_of_several_become_one_as_users_are_told() -> None:
    told = {one.name: one.composition for one in POINTS.values()}
    assert told == {name: COMPOSITION.get(name, ("notify",)) for name in told}


def test_a_failure_means_no_where_something_is_run() -> None:
    closed = {one.name for one in POINTS.values() if one.on_failure == "closed"}
    assert closed == {"tool_call", "user_bash"}


def test_hooks_around_summaries_and_providers_have_time_to_ask_a_model() -> None:
    assert {one.name for one in POINTS.values() if one.limit == "long"} == {
        "session_before_compact",
        "session_compact",
        "session_compact_failed",
        "session_before_tree",
        "before_provider_request",
        "before_provider_headers",
        "after_provider_response",
    }


def test_every_input_class_is_a_point() -> None:
    classes = {
        one
        for module in (catalogue, points)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, HookInput) and one is not HookInput
    }
    assert classes == set(POINTS) == set(SAMPLES)


def test_every_outcome_class_is_an_answer_somewhere() -> None:
    bases = {Chain, Collect, GoOn, HookOutcome, *HookOutcome.__subclasses__()}
    classes = {
        one
        for module in (catalogue, points)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, HookOutcome)
    } - bases
    assert classes == {one for point in POINTS.values() for one in point.outcomes} - {GoOn}


def test_what_is_put_together_is_a_field() -> None:
    for point in POINTS.values():
        for outcome in point.outcomes:
            assert set(outcome.collected) <= {one.name for one in fields(outcome)}


def test_of_one_point_only_one_class_of_answers_is_put_together() -> None:
    for point in POINTS.values():
        merged = [one for one in point.outcomes if issubclass(one, Chain | Collect)]
        assert len(merged) <= 1, point.name


def test_every_point_is_asked_somewhere() -> None:
    assert {one.__name__ for one in POINTS} - set(asked_in()) == set()


@pytest.mark.parametrize("point", sorted(one.name for one in POINTS.values()))
def test_every_point_is_shown_by_a_test(point: str) -> None:
    for node_id in shown_by()[point]:
        file, _, name = node_id.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {getattr(one, "name", "") for one in tree.body}, node_id


def test_no_test_is_listed_for_a_point_that_is_not_there() -> None:
    assert set(shown_by()) == {one.name for one in POINTS.values()}


def test_the_page_for_users_is_as_the_code_is() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.hooks.hook_table"
