"""The models of a session: names with levels, and cycling through models and levels."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from typing_extensions import override

from agent_core.events import Event, ModelChanged, SessionConfigured, ThinkingLevel
from agent_core.kernel.errors import ModelUnknown
from agent_core.providers import ModelInfo
from agent_core.session.model_selection import CycleDirection
from agent_core.transcript.entries import ModelChange, ThinkingChange
from tests.support.session.scripted_model import SCRIPTED_FACTS, Gate, ScriptedModel, call, say
from tests.support.session.sessions import Bench, OneModel, bench
from tests.support.workspace.tools import echo

ONE = SCRIPTED_FACTS
TWO = replace(ONE, id="model-2", reasoning=True)
THREE = replace(ONE, id="model-3")


def source(*all_facts: ModelInfo) -> OneModel:
    return OneModel(*(ScriptedModel(facts=facts) for facts in all_facts))


def told(b: Bench) -> list[tuple[str, ThinkingLevel, str]]:
    """Give what was said of models; each time the configuration that follows must say the same."""
    events = b.seen()
    pairs: Sequence[tuple[Event, Event]] = list(zip(events[::2], events[1::2], strict=True))
    found: list[tuple[str, ThinkingLevel, str]] = []
    for changed, configured in pairs:
        assert isinstance(changed, ModelChanged)
        assert isinstance(configured, SessionConfigured)
        config = configured.config
        assert (config.model, config.thinking) == (changed.model, changed.thinking)
        found.append((changed.model, changed.thinking, changed.source))
    return found


def kept(b: Bench) -> list[str]:
    """Give the choices in the file."""
    texts: list[str] = []
    for entry in b.session.info.entries:
        if isinstance(entry, ModelChange):
            texts.append(f"{entry.provider}/{entry.model}")
        if isinstance(entry, ThinkingChange):
            texts.append(f":{entry.level}")
    return texts


# Names with levels.


async def test_a_level_in_the_name_is_chosen_with_the_model_and_told_once() -> None:
    async with bench(ScriptedModel(), source=source(ONE, TWO)) as b:
        assert await b.session.models.choose("scripted/model-2:high") == TWO
        assert (b.session.models.current, b.session.models.thinking) == (TWO, "high")
        assert told(b) == [("scripted/model-2", "high", "set")]
        assert kept(b) == ["scripted/model-2", ":high"]


async def test_a_level_that_is_in_force_already_is_not_written_again() -> None:
    async with bench(ScriptedModel(), source=source(ONE, TWO)) as b:
        await b.session.models.choose("scripted/model-2:medium")
        assert told(b) == [("scripted/model-2", "medium", "set")]
        assert kept(b) == ["scripted/model-2"]


async def test_a_name_without_a_level_leaves_the_level() -> None:
    async with bench(ScriptedModel(), source=source(ONE, TWO), thinking="low") as b:
        await b.session.models.choose("scripted/model-2")
        assert told(b) == [("scripted/model-2", "low", "set")]


async def test_a_level_of_an_unknown_model_changes_nothing() -> None:
    async with bench(ScriptedModel()) as b:
        with pytest.raises(ModelUnknown, match="no model 'scripted/nope'"):
            await b.session.models.choose("scripted/nope:high")
        assert (b.session.models.current, b.session.models.thinking) == (ONE, "medium")
        assert (told(b), kept(b)) == ([], [])


async def test_a_level_that_the_model_has_not_stays_the_wish() -> None:
    """The model after it may have it; adapters take the nearest that theirs has."""
    async with bench(ScriptedModel(), source=source(ONE, TWO)) as b:
        await b.session.models.choose("scripted/model-1:max")
        await b.session.models.choose("scripted/model-2")
        assert told(b)[-1] == ("scripted/model-2", "max", "set")


async def test_a_model_chosen_during_a_run_answers_the_next_request() -> None:
    gate = Gate()
    first = ScriptedModel([(gate, *call("t", {"text": "x"}))])
    second = ScriptedModel([say("done")], facts=TWO)
    async with bench(first, source=OneModel(first, second), tools=[echo("t")]) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        await b.session.models.choose("scripted/model-2:xhigh")
        gate.release()
        await b.idle()
        assert [one.thinking for one in first.requests] == ["medium"]
        assert [one.thinking for one in second.requests] == ["xhigh"]


# Cycling through models.


@pytest.mark.parametrize(
    ("direction", "visited"),
    [
        ("forward", ["model-2", "model-3", "model-1", "model-2"]),
        ("backward", ["model-3", "model-2", "model-1", "model-3"]),
    ],
)
async def test_without_a_scope_all_that_can_be_asked_follow_one_another(
    direction: CycleDirection, visited: list[str]
) -> None:
    async with bench(ScriptedModel(), source=source(ONE, TWO, THREE)) as b:
        chosen = [await b.session.models.cycle(direction) for _ in visited]
        assert [one.id for one in chosen if one] == visited
        assert told(b) == [(f"scripted/{one}", "medium", "cycle") for one in visited]
        assert kept(b) == [f"scripted/{one}" for one in visited]


async def test_a_scope_is_all_there_is_to_cycle_through_and_its_levels_go_along() -> None:
    scoped = ("scripted/model-3:low", "scripted/model-2:high")
    async with bench(ScriptedModel(), source=source(ONE, TWO, THREE), scoped_models=scoped) as b:
        assert tuple(one.ref for one in b.session.models.scoped()) == scoped
        assert b.session.models.available() == (ONE, TWO, THREE)
        for _ in range(3):
            await b.session.models.cycle()
        assert told(b) == [
            ("scripted/model-3", "low", "cycle"),
            ("scripted/model-2", "high", "cycle"),
            ("scripted/model-3", "low", "cycle"),
        ]
        assert kept(b) == [
            "scripted/model-3",
            ":low",
            "scripted/model-2",
            ":high",
            "scripted/model-3",
            ":low",
        ]


async def test_a_scoped_name_without_a_level_leaves_the_level() -> None:
    scoped = ("scripted/model-1:low", "scripted/model-2")
    async with bench(ScriptedModel(), source=source(ONE, TWO), scoped_models=scoped) as b:
        await b.session.models.cycle()
        assert told(b) == [("scripted/model-2", "medium", "cycle")]
        await b.session.models.cycle()
        await b.session.models.cycle()
        assert told(b)[-1] == ("scripted/model-2", "low", "cycle")


@pytest.mark.parametrize("direction", ["forward", "backward"])
async def test_where_there_is_no_other_model_nothing_changes(direction: CycleDirection) -> None:
    async with bench(ScriptedModel()) as b:
        assert await b.session.models.cycle(direction) is None
        assert b.session.models.current == ONE
        assert (told(b), kept(b)) == ([], [])


@pytest.mark.parametrize(("direction", "first"), [("forward", ONE), ("backward", TWO)])
async def test_where_no_model_is_chosen_cycling_chooses_one(
    direction: CycleDirection, first: ModelInfo
) -> None:
    async with bench(ScriptedModel(), source=source(ONE, TWO), usable=False) as b:
        assert await b.session.models.cycle(direction) == first
        assert b.session.models.current == first


class Expired(OneModel):
    """Models that all lost their keys since they were listed."""

    @override
    def open(self, facts: ModelInfo) -> ScriptedModel:
        raise ModelUnknown(f"{facts.ref} has no key")


async def test_a_model_that_cannot_be_asked_any_more_leaves_the_choice_as_it_is() -> None:
    expired = Expired(*(ScriptedModel(facts=facts) for facts in (ONE, TWO)))
    scoped = ("scripted/model-1", "scripted/model-2:high")
    async with bench(ScriptedModel(), source=expired, scoped_models=scoped) as b:
        with pytest.raises(ModelUnknown, match="scripted/model-2 has no key"):
            await b.session.models.cycle()
        assert (b.session.models.current, b.session.models.thinking) == (ONE, "medium")
        assert (told(b), kept(b)) == ([], [])


# Cycling through thinking levels.


async def test_levels_that_the_model_has_follow_one_another() -> None:
    async with bench(ScriptedModel(), source=source(ONE, TWO)) as b:
        await b.session.models.choose("scripted/model-2")
        chosen = [await b.session.models.cycle_thinking() for _ in range(5)]
        assert chosen == ["high", "off", "minimal", "low", "medium"]
        assert told(b)[1:] == [("scripted/model-2", level, "cycle") for level in chosen]
        assert kept(b)[1:] == [f":{level}" for level in chosen]


async def test_levels_follow_the_one_that_requests_take_in_the_place_of_the_wish() -> None:
    spare = replace(TWO, compat={"thinkingLevelMap": {"off": None, "minimal": None, "max": "m"}})
    async with bench(ScriptedModel(), source=source(ONE, spare), thinking="xhigh") as b:
        await b.session.models.choose("scripted/model-2")
        # `xhigh` is sent as `max`, the strongest: the weakest follows.
        assert await b.session.models.cycle_thinking() == "low"


@pytest.mark.parametrize("usable", [True, False], ids=["does not think", "no model"])
async def test_where_there_is_no_other_level_nothing_changes(*, usable: bool) -> None:
    async with bench(ScriptedModel(), usable=usable) as b:
        assert await b.session.models.cycle_thinking() is None
        assert b.session.models.thinking == "medium"
        assert (told(b), kept(b)) == ([], [])
