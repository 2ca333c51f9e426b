"""Models are named in full, by id, by part, by pattern, with a level; and one cycles through some of them."""

import pytest

from agent_core.kernel.errors import ModelUnknown
from agent_core.providers import ModelInfo
from agent_core.providers.catalog.catalogue import Named, matching, next_of, without_level
from tests.providers.test_registry import LAB, registry

KEYS = {"ANTHROPIC_API_KEY": "k", "OPENROUTER_API_KEY": "k"}
VERSIONED = ("smol2-135m", "big-4-5", "big-4-20250514", "tiny-4o", "new-7-8b", "new-7.1")
MODELS = [{"id": "a/b:c"}, {"id": "a/b"}, {"id": "odd:high"}, {"id": "Mixed-Case"}]


def lab(**environment: str):
    return registry({"lab": LAB | {"models": MODELS}}, environment=environment)


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("lab/a/b:c", ("lab/a/b:c", None)),
        ("a/b:c", ("lab/a/b:c", None)),
        ("lab/a/b", ("lab/a/b", None)),
        ("lab/a/b:high", ("lab/a/b", "high")),
        ("lab/a/b:c:max", ("lab/a/b:c", "max")),
        ("odd:high", ("lab/odd:high", None)),
        ("odd:high:low", ("lab/odd:high", "low")),
        ("LAB/mixed-case", ("lab/Mixed-Case", None)),
        ("mixed", ("lab/Mixed-Case", None)),
        ("mixed:off", ("lab/Mixed-Case", "off")),
        ("lab/mixed", ("lab/Mixed-Case", None)),
        ("anthropic/*sonnet*", ("anthropic/claude-sonnet-5-5", None)),
        ("*haiku*:minimal", ("anthropic/claude-haiku-5-5", "minimal")),
        ("anthropic/fable", ("anthropic/claude-fable-5-2", None)),
        ("claude-opus-4-6", ("anthropic/claude-opus-4-6", None)),
        ("anthropic/claude-opus-4-5-20251101", ("anthropic/claude-opus-4-5-20251101", None)),
        ("ollama/qwen3:8b", ("ollama/qwen3:8b", None)),
        ("ollama/qwen3:8b:low", ("ollama/qwen3:8b", "low")),
        ("amazon-bedrock/arn:aws:x/y", ("amazon-bedrock/arn:aws:x/y", None)),
    ],
)
def test_a_name_finds_its_model(ref: str, found: tuple[str, str | None]):
    named = lab(**KEYS).resolve(ref)
    assert (named.model.ref, named.thinking) == found


@pytest.mark.parametrize(
    "ref",
    [
        "lab/other",
        "a/b:d",
        "gpt-5.9",
        "openai/gpt-5.9",
        "openai/zzz",
        "",
        "*zzz*",
        "lab/",
        "nolab/a/b",
        ":max",
    ],
)
def test_another_version_is_never_an_answer(ref: str):
    with pytest.raises(ModelUnknown):
        _ = lab(**KEYS).resolve(ref)


def versioned():
    models = [{"id": one} for one in VERSIONED]
    return registry({"own": LAB | {"models": models}}, environment=KEYS)


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("smol2", ("own/smol2-135m", None)),
        ("own/smol2", ("own/smol2-135m", None)),
        ("l2-135m:low", ("own/smol2-135m", "low")),
        ("big-4", ("own/big-4-20250514", None)),
        ("big-4-", ("own/big-4-20250514", None)),
        ("big-4-5", ("own/big-4-5", None)),
        ("ny-4o", ("own/tiny-4o", None)),
        ("new-7", ("own/new-7-8b", None)),
        ("own", ("own/smol2-135m", None)),
    ],
)
def test_a_part_with_a_version_finds_that_version(ref: str, found: tuple[str, str | None]):
    named = versioned().resolve(ref)
    assert (named.model.ref, named.thinking) == found


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        ("smol3", "no model is called 'smol3'; "),
        ("big-2", "no model is called 'big-2'; "),
        ("smol2-135", r"did you mean own/smol2-135m\?"),
        ("tiny-4", r"did you mean own/tiny-4o\?"),
        ("20250514", "no model is called '20250514'"),
        ("own/big-4:huge", "'huge' is no thinking level; there are off, minimal, low"),
        ("big-4-5:huge", "'huge' is no thinking level"),
    ],
)
def test_what_finds_nothing_is_answered_with_what_is_near(ref: str, hint: str):
    with pytest.raises(ModelUnknown, match=hint):
        _ = versioned().resolve(ref)


def test_a_model_of_a_provider_that_could_not_be_read_is_not_found_for_that_reason():
    odd = {"lab": LAB | {"api": "smoke-signals"}}
    with pytest.raises(
        ModelUnknown, match=r"no model is called 'lab/m'.*models.json:1:\d+: providers.lab.api"
    ):
        _ = registry(odd).resolve("lab/m")


def test_of_several_the_one_with_a_key_is_meant():
    assert lab(OPENROUTER_API_KEY="k").resolve("*opus*").model.provider == "openrouter"
    both = {"a": LAB, "b": LAB | {"apiKey": "$NONE"}}
    assert registry(both).find("m").ref == "a/m"
    with pytest.raises(
        ModelUnknown, match=r"more than one provider has 'm'; did you mean a/m or b/m\?"
    ):
        _ = registry({"a": LAB, "b": LAB}).find("m")


def test_a_dated_snapshot_is_its_model_under_another_name():
    made = lab()
    dated, plain = made.find("anthropic/claude-opus-4-5-20251101"), made.find("claude-opus-4-5")
    assert (dated.id, dated.prices) == ("claude-opus-4-5-20251101", plain.prices)


def test_a_local_servers_model_has_no_price_and_no_window_but_the_one_asked_of_ollama():
    model, other = lab().find("ollama/qwen3:8b"), lab().find("lmstudio/qwen3-8b")
    assert (model.context_window, model.prices) == (32_768, None)
    assert (other.context_window, other.prices) == (0, None)
    assert (model.api, model.base_url) == ("ollama-chat", "http://127.0.0.1:11434")


def test_a_local_server_whose_api_the_user_has_chosen_keeps_it():
    chosen = {"api": "openai-completions", "baseUrl": "http://127.0.0.1:11434/v1"}
    model = registry({"ollama": chosen}).find("ollama/qwen3:8b")
    assert (model.api, model.base_url) == (chosen["api"], chosen["baseUrl"])
    assert model.context_window == 0


def test_the_request_may_use_a_pattern_but_session_and_settings_may_not():
    made = lab(**KEYS)
    choice = made.choose(request="*sonnet-5-5*:xhigh")
    assert choice.model is not None
    assert (choice.model.ref, choice.thinking) == ("anthropic/claude-sonnet-5-5", "xhigh")
    fallen = made.choose(session="anthropic/claude-opus-9", settings="sonnet")
    assert fallen.model == made.find("anthropic/claude-opus-5-5")
    assert fallen.fallback_message is not None
    assert "the session's model cannot be used: no model is called" in fallen.fallback_message
    assert (
        "the default model cannot be used: no model is called 'sonnet'" in fallen.fallback_message
    )


def test_what_an_account_for_other_things_would_pay_is_used_only_when_named():
    made = registry(environment={"AWS_PROFILE": "work", "GOOGLE_CLOUD_PROJECT": "p"})
    assert made.choose().model is None
    named = made.choose(settings="amazon-bedrock/global.anthropic.claude-opus-5-5").model
    assert named is not None


def test_the_scope_is_what_the_patterns_stand_for_in_their_order():
    made = lab(ANTHROPIC_API_KEY="k")
    scope = made.scope(
        ["lab/a/b:low", "anthropic/claude-haiku-*", "lab/*", "openai/gpt-5", "no*thing"]
    )
    assert [one.ref for one in scope.models] == [
        "lab/a/b:low",
        "anthropic/claude-haiku-5-5",
        "anthropic/claude-haiku-4-5",
        "lab/a/b:c",
        "lab/odd:high",
        "lab/Mixed-Case",
    ]
    assert scope.problems == (
        "scopedModels: 'openai/gpt-5' stands for no model that can be used",
        "scopedModels: 'no*thing' stands for no model that can be used",
    )
    everything = made.scope([])
    assert {one.model.provider for one in everything.models} == {"anthropic", "lab"}


def test_cycling_goes_round_both_ways_and_ends_nowhere():
    one, two, three = (Named(model=model) for model in facts("a", "b", "c"))
    choices = (one, two, three)
    assert next_of(choices, current="p/a", direction=1) == two
    assert next_of(choices, current="p/c", direction=1) == one
    assert next_of(choices, current="p/a", direction=-1) == three
    assert next_of(choices, current=None, direction=1) == one
    assert next_of(choices, current="p/z", direction=-1) == three
    assert next_of((one,), current="p/a", direction=1) is None
    assert next_of((one,), current="p/z", direction=1) == one
    assert next_of((), current=None, direction=1) is None


def test_levels_are_only_the_known_words():
    assert without_level("a:high") == ("a", "high")
    assert without_level("a:b") == ("a:b", None)
    assert without_level(":high") == (":high", None)


def test_patterns_are_of_the_whole_name_and_parts_of_the_id_or_the_provider():
    models = facts("one", "gone", "two")
    assert [model.id for model in matching("p/*one", models)] == ["one", "gone"]
    assert [model.id for model in matching("t?o", models)] == ["two"]
    assert [model.id for model in matching("ON", models)] == ["one", "gone"]
    assert [model.id for model in matching("p", models)] == ["one", "gone", "two"]
    assert matching("q", models) == ()
    assert matching("q/one", models) == ()


def facts(*ids: str) -> list[ModelInfo]:
    return [
        ModelInfo(
            provider="p", id=one, api="openai-completions", name=one, context_window=1, max_tokens=1
        )
        for one in ids
    ]
