"""Models are found, chosen and opened as models.json, the environment and the user's wishes say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel.errors import ModelUnknown, ProviderError
from agent_core.providers import Model, ModelInfo, Prices, WireApi
from agent_core.providers.auth.credentials import Authenticator
from agent_core.providers.catalog.catalogue import ProviderInfo
from agent_core.providers.catalog.models_file import load_models_file, read_models_file
from agent_core.providers.model import PriceTier
from agent_core.providers.registry import ChosenModel, ModelRegistry
from tests.support.session.scripted_model import ScriptedModel

PATH = Path("/home/u/models.json")
LAB = {
    "baseUrl": "http://127.0.0.1:1/v1",
    "api": "openai-completions",
    "apiKey": "x",
    "models": [{"id": "m", "contextWindow": 32000, "maxTokens": 4096}],
}


class Opened(ScriptedModel):
    """A model that remembers how it was opened."""

    def __init__(self, facts: ModelInfo, access: Authenticator) -> None:
        super().__init__(facts=facts)
        self.access = access


def opener(facts: ModelInfo, access: Authenticator) -> Model:
    return Opened(facts, access)


APIS: tuple[WireApi, ...] = (
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
    "bedrock-converse-stream",
    "azure-openai-responses",
    "embedded",
)


def registry(
    providers: Any = None,
    *,
    environment: dict[str, str] | None = None,
    text: str | None = None,
    extra: tuple[ProviderInfo, ...] = (),
) -> ModelRegistry:
    written = json.dumps({"providers": providers or {}}) if text is None else text
    return ModelRegistry(
        openers=dict.fromkeys(APIS, opener),
        environment=environment or {},
        file=read_models_file(written, path=PATH),
        extra=extra,
    )


async def granted(made: ModelRegistry, ref: str) -> tuple[str | None, bool, dict[str, str]]:
    model = made.open(ref)
    assert isinstance(model, Opened)
    grant = await model.access.credentials()
    return grant.key, grant.bearer, dict(grant.headers)


def test_a_model_of_the_file_has_what_the_file_says_and_the_defaults():
    made = registry({"lab": LAB | {"models": [{"id": "a/b:c"}]}})
    assert made.problems == ()
    assert made.find("lab/a/b:c") == ModelInfo(
        provider="lab",
        id="a/b:c",
        api="openai-completions",
        name="a/b:c",
        context_window=128_000,
        max_tokens=16_384,
        base_url="http://127.0.0.1:1/v1",
    )
    assert made.find("a/b:c").ref == "lab/a/b:c"


def test_everything_that_may_be_said_of_a_model_is_read():
    model = {
        "id": "m",
        "name": "Em",
        "reasoning": True,
        "input": ["text", "image"],
        "cost": {
            "input": 1,
            "output": 2,
            "cacheRead": 0.1,
            "tiers": [{"inputTokensAbove": 1000, "input": 3, "output": 4}],
        },
        "contextWindow": 10,
        "maxTokens": 5,
        "compat": {"maxTokensField": "max_tokens"},
        "thinkingLevelMap": {"max": "ultra", "off": None},
        "unknown": 1,
    }
    made = registry({"lab": LAB | {"models": [model], "compat": {"supportsStore": True}}})
    assert made.find("lab/m") == ModelInfo(
        provider="lab",
        id="m",
        api="openai-completions",
        name="Em",
        context_window=10,
        max_tokens=5,
        prices=Prices(
            input=1,
            output=2,
            cache_read=0.1,
            tiers=(PriceTier(input_above=1000, prices=Prices(input=3, output=4)),),
        ),
        reasoning=True,
        images=True,
        base_url="http://127.0.0.1:1/v1",
        compat={
            "supportsStore": True,
            "maxTokensField": "max_tokens",
            "thinkingLevelMap": {"max": "ultra", "off": None},
        },
    )


def test_a_known_provider_keeps_its_models_when_only_its_address_changes():
    plain, moved = registry(), registry({"anthropic": {"baseUrl": "https://proxy"}})
    names = [model.ref for model in plain.models()]
    assert [model.ref for model in moved.models()] == names
    assert {model.base_url for model in moved.models() if model.provider == "anthropic"} == {
        "https://proxy"
    }


def test_models_are_added_to_a_known_provider_and_overrides_change_single_fields():
    made = registry(
        {
            "openai": {
                "models": [{"id": "new", "contextWindow": 5}],
                "modelOverrides": {"gpt-5": {"maxTokens": 99}, "nobody": {"maxTokens": 1}},
            }
        }
    )
    before, after = registry().find("openai/gpt-5"), made.find("openai/gpt-5")
    assert (after.max_tokens, after.context_window) == (99, before.context_window)
    assert made.find("openai/new").base_url == before.base_url


def test_an_unknown_name_is_answered_with_the_nearest():
    made = registry({"lab": LAB})
    with pytest.raises(
        ModelUnknown, match=r"no model is called 'openai/gpt5'; did you mean openai/gpt-5 "
    ):
        made.find("openai/gpt5")
    with pytest.raises(ModelUnknown, match=r"add it to models\.json"):
        made.find("zzzzzzzzzz")


def test_a_missing_key_says_which_variable_to_set():
    made = registry({"lab": LAB | {"apiKey": "$LAB_KEY"}})
    with pytest.raises(ModelUnknown, match="set the environment variable LAB_KEY") as caught:
        made.open("lab/m")
    assert caught.value.kind == "AuthRequired"
    with pytest.raises(ModelUnknown, match="ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"):
        made.open("anthropic/claude-haiku-4-5")


def test_the_choice_goes_from_the_request_over_session_and_settings_to_what_has_a_key():
    made = registry({"lab": LAB}, environment={"OPENAI_API_KEY": "k"})
    lab, first = made.find("lab/m"), made.find("openai/gpt-6.1-sol")
    gpt = made.find("openai/gpt-5")
    assert made.choose(request="lab/m", session="openai/gpt-5") == ChosenModel(model=lab)
    assert made.choose(session="openai/gpt-5", settings="lab/m") == ChosenModel(model=gpt)
    assert made.choose(settings="lab/m") == ChosenModel(model=lab)
    assert made.choose() == ChosenModel(model=first)


def test_a_wish_that_cannot_be_met_falls_back_and_says_so():
    made = registry({"lab": LAB})
    choice = made.choose(session="anthropic/claude-haiku-4-5", settings="lab/m")
    assert choice.model == made.find("lab/m")
    assert choice.fallback_message is not None
    assert choice.fallback_message.startswith(
        "the session's model cannot be used: anthropic/claude-haiku-4-5 has no key; set the environment variable "
    )
    assert choice.fallback_message.endswith("; using lab/m")


def test_when_neither_wish_can_be_met_both_are_told_and_what_has_a_key_is_used():
    made = registry(environment={"OPENAI_API_KEY": "k"})
    choice = made.choose(session="lab/gone", settings="anthropic/claude-haiku-4-5")
    assert choice.model == made.find("openai/gpt-6.1-sol")
    assert choice.fallback_message is not None
    assert re.fullmatch(
        r"the session's model cannot be used: no model is called 'lab/gone'; [^;]+; "
        r"the default model cannot be used: anthropic/claude-haiku-4-5 has no key; [^;]+; "
        r"using openai/gpt-6\.1-sol",
        choice.fallback_message,
    )


def test_a_default_provider_alone_stands_for_its_first_model():
    made = registry({"lab": LAB}, environment={"OPENAI_API_KEY": "k"})
    assert made.choose(provider="lab") == ChosenModel(model=made.find("lab/m"))
    gpt = made.find("openai/gpt-5")
    assert made.choose(settings="openai/gpt-5", provider="lab") == ChosenModel(model=gpt)
    assert made.choose(session="openai/gpt-5", provider="lab") == ChosenModel(model=gpt)
    # A model that was named and is wrong is no provider alone.
    assert made.choose(settings="lab/gone", provider="lab").model != made.find("lab/m")


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        ("opnai", "no provider is called 'opnai'; did you mean openai"),
        ("zzzzzz", "no provider is called 'zzzzzz'; using "),
        ("ollama", "it is not known which models 'ollama' has; name one as defaultModel; using "),
        ("vertexed", "it is not known which models 'vertexed' has; name one"),
        ("anthropic", "anthropic/claude-opus-5-5 has no key; set "),
    ],
)
def test_a_default_provider_that_cannot_be_used_gives_way_and_says_so(provider: str, why: str):
    unspoken = LAB | {"api": "google-vertex"}
    made = registry({"vertexed": unspoken}, environment={"OPENAI_API_KEY": "k"})
    choice = made.choose(provider=provider)
    assert choice.model == made.find("openai/gpt-6.1-sol")
    assert choice.fallback_message is not None
    assert choice.fallback_message.startswith(f"the default model cannot be used: {why}")
    assert choice.fallback_message.endswith("; using openai/gpt-6.1-sol")


def test_a_request_is_never_answered_with_another_model():
    made = registry({"lab": LAB})
    with pytest.raises(ModelUnknown):
        made.choose(request="lab/other", settings="lab/m")


def test_without_any_key_there_is_no_model_and_the_embedded_one_is_not_chosen():
    repair = ModelInfo(
        provider="embedded",
        id="repair",
        api="embedded",
        name="Repair",
        context_window=0,
        max_tokens=1,
    )
    embedded = ProviderInfo(
        id="embedded", name="Embedded", api="embedded", base_url="", keyless=True, models=(repair,)
    )
    keyless = {key: value for key, value in LAB.items() if key != "apiKey"}
    made = registry({"lab": keyless}, extra=(embedded,))
    choice = made.choose()
    assert choice.model is None
    assert choice.fallback_message is not None
    assert "ANTHROPIC_API_KEY" in choice.fallback_message
    assert made.choose(settings="embedded/repair").model == repair
    assert made.open("lab/m").facts.id == "m"


def test_an_api_that_nobody_can_open_is_told():
    made = registry({"lab": LAB | {"api": "google-vertex"}})
    with pytest.raises(ModelUnknown, match="'google-vertex', which is not supported yet"):
        made.open("lab/m")


async def test_values_are_literal_variables_or_a_commands_output():
    provider = LAB | {
        "apiKey": "!printf 'sk-%s\\n' \"$WHO\"",
        "headers": {"X-A": "pre-${A}-$$-$!x", "x-b": "plain"},
        "models": [{"id": "m", "headers": {"X-B": "$A"}}],
    }
    made = registry({"lab": provider}, environment={"A": "1", "WHO": "me", "PATH": "/usr/bin:/bin"})
    assert await granted(made, "lab/m") == ("sk-me", False, {"x-a": "pre-1-$-!x", "x-b": "1"})


async def test_a_token_of_the_environment_goes_as_a_bearer():
    made = registry(environment={"ANTHROPIC_AUTH_TOKEN": " t "})
    assert await granted(made, "anthropic/claude-haiku-4-5") == ("t", True, {})


async def test_a_provider_may_ask_for_the_key_as_a_bearer_and_a_local_server_for_none():
    keyless = {key: value for key, value in LAB.items() if key != "apiKey"}
    made = registry({"a": LAB | {"authHeader": True}, "b": keyless})
    assert await granted(made, "a/m") == ("x", True, {})
    assert await granted(made, "b/m") == (None, False, {})


@pytest.mark.parametrize(
    ("written", "environment", "source"),
    [
        ({"apiKey": "$LAB_KEY"}, {"LAB_KEY": "sk-secret"}, "models.json"),
        ({}, {"OPENAI_API_KEY": "sk-secret"}, "environment (OPENAI_API_KEY)"),
    ],
    ids=["the file", "the provider's variable"],
)
async def test_a_grant_says_where_its_key_comes_from_and_not_which(
    written: dict[str, str], environment: dict[str, str], source: str
):
    made = registry({"openai": written}, environment=environment)
    model = made.open("openai/gpt-5")
    assert isinstance(model, Opened)
    grant = await model.access.credentials()
    assert (grant.key, grant.source) == ("sk-secret", source)
    assert "sk-secret" not in repr(grant)


@pytest.mark.parametrize("key", ["!exit 3", "!true", "!nonsense-command", "a\nb", "schlüssel"])
async def test_a_key_that_cannot_be_had_is_an_error_of_auth_that_shows_nothing(key: str):
    made = registry({"lab": LAB | {"apiKey": key}}, environment={"PATH": "/usr/bin:/bin"})
    with pytest.raises(ProviderError) as caught:
        await granted(made, "lab/m")
    assert (caught.value.reason, caught.value.before_first_byte) == ("auth", True)
    assert key.removeprefix("!") not in str(caught.value)


def test_no_key_shows_in_any_repr():
    text = json.dumps(
        {"providers": {"lab": LAB | {"apiKey": "sk-secret", "headers": {"h": "sk-secret"}}}}
    )
    file = read_models_file(text, path=PATH)
    made = registry(text=text)
    model = made.open("lab/m")
    assert isinstance(model, Opened)
    shown = [repr(each) for each in (file, made, made.providers(), made.models(), model.access)]
    assert not any("sk-secret" in each for each in shown)


def test_an_unknown_key_is_told_with_its_place_and_the_rest_is_used():
    model = '{"id": "m", "contextwindow": 9, "_note": 1, "cost": {"inputs": 1, "output": 2}}'
    text = (
        '{"provider": {}, "$schema": "x",\n "providers": {"lab": {"baseUrl": "http://h/v1",\n'
        f'  "api": "openai-completions", "apikey": "k", "models": [{model}]}}}}}}'
    )
    file = read_models_file(text, path=PATH)
    assert file.providers["lab"].models[0].id == "m"
    ignored = "is no key of models.json, so it has no effect; did you mean"
    assert [str(problem).split(": ", 1)[1] for problem in file.problems] == [
        f'provider: {ignored} "providers"?',
        f'providers.lab.apikey: {ignored} "apiKey"?',
        f'providers.lab.models.0.contextwindow: {ignored} "contextWindow"?',
        f'providers.lab.models.0.cost.inputs: {ignored} "input"?',
    ]
    assert [problem.line for problem in file.problems] == [1, 3, 3, 3]


BROKEN = """{
  "providers": {
    "good": {"baseUrl": "http://h/v1", "api": "openai-completions", "models": [{"id": "m"}]},
    "bad": {
      "baseUrl": "http://h/v1",
      "models": [
        {"id": "a"},
        {"id": "b", "contextWindow": "sk-secret"}
      ]
    }
  }
}"""


def test_a_provider_that_is_wrong_is_told_with_its_place_and_the_others_stay():
    made = registry(text=BROKEN)
    (problem,) = made.problems
    assert (problem.path, problem.line, problem.column) == (PATH, 8, 38)
    assert str(problem).startswith(
        f"{PATH}:8:38: providers.bad.models.1.contextWindow: Input should be"
    )
    assert "sk-secret" not in str(problem)
    assert made.find("good/m")
    with pytest.raises(ModelUnknown):
        made.find("bad/a")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ('{\n  "providers": {,}\n}', 2, 17),
        ("[]", 1, 1),
        ('{"providers": []}', 1, 15),
        ('{"providers": {"a": 3}}', 1, 21),
        ('{"providers": {"a": {"models": [{}]}}}', 1, 33),
    ],
)
def test_a_file_that_is_wrong_is_told_with_its_place_and_the_known_models_stay(
    text: str, line: int, column: int
):
    made = registry(text=text, environment={"OPENAI_API_KEY": "k"})
    (problem,) = made.problems
    assert (problem.line, problem.column) == (line, column)
    assert made.choose().model is not None


def test_a_model_that_lacks_its_api_or_address_is_told():
    made = registry(
        {
            "a": {"models": [{"id": "m"}]},
            "b": {"api": "openai-completions", "models": [{"id": "m"}]},
        }
    )
    assert [str(problem) for problem in made.problems] == [
        f"{PATH}: provider 'a': model 'm' has no api; say which it speaks",
        f"{PATH}: provider 'b': model 'm' has no baseUrl; say where it is",
    ]


async def test_a_file_is_read_from_the_disk_and_may_be_absent(tmp_path: Path):
    path = tmp_path / "models.json"
    assert (await load_models_file(path)).problems == ()
    path.write_bytes(b"\xff\xfe")
    assert len((await load_models_file(path)).problems) == 1
    path.write_text(json.dumps({"providers": {"lab": LAB}}), encoding="utf-8-sig")
    assert set((await load_models_file(path)).providers) == {"lab"}


async def test_a_file_is_decoded_again_only_when_its_text_is_another(tmp_path: Path):
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"providers": {"lab": LAB}}), encoding="utf-8")
    models = ModelRegistry(
        openers=dict.fromkeys(APIS, opener),
        environment={},
        file=await load_models_file(path),
        models_path=path,
    )
    before = models.find("lab/m")
    assert not await models.refresh()
    assert models.find("lab/m") is before, "nothing was built again"
    path.write_text(json.dumps({"providers": {"other": LAB}}), encoding="utf-8")
    assert await models.refresh()
    assert {one.provider for one in models.models()} >= {"other"}
    assert "lab" not in {one.provider for one in models.models()}
    path.unlink()
    assert await models.refresh()
    assert "other" not in {one.provider for one in models.models()}
