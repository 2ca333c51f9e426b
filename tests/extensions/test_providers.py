"""Models that extensions bring: in the words of models.json, or answered by the extension itself."""

from typing import Any

import pytest

from agent_core.extensions.registry import Provider, extension_models
from agent_core.kernel import JsonObject, SystemClock
from agent_core.messages import AssistantMessage, ToolResultMessage, text_of
from agent_core.providers.auth.oauth import (
    DeviceFacts,
    LoginFailed,
    LoginFunctions,
    StoredTokens,
    log_in_by_functions,
)
from agent_core.providers.auth.store import AuthStore
from agent_core.providers.registry import ExtensionModels, ModelRegistry
from tests.support.clients.server import says
from tests.support.hooks.extensions import Home
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder, ask
from tests.support.session.scripted_model import ScriptedModel
from tiller_server.cli.sign_in import log_in

LAB: JsonObject = {
    "baseUrl": "http://127.0.0.1:1/v1",
    "api": "openai-completions",
    "apiKey": "x",
    "models": [{"id": "m", "contextWindow": 32000, "maxTokens": 4096}],
}


def provider(config: JsonObject, **more: Any) -> Provider:
    given: dict[str, Any] = {"name": "lab", "extension": "x", "config": config, **more}
    return Provider(**given)


def registry(*providers: Provider) -> ModelRegistry:
    brought, _ = extension_models(providers)
    opener = lambda facts, access: ScriptedModel([], facts=facts)  # noqa: E731
    return ModelRegistry(openers={"openai-completions": opener}, environment={}, brought=brought)


def test_a_provider_is_there_and_goes_again() -> None:
    known = registry(provider(LAB))
    assert known.find("lab/m").context_window == 32_000
    assert known.auth("lab") == "ok"
    known.set_extension_models(ExtensionModels())
    assert known.auth("lab") == "missing"


def test_ways_to_log_in_are_brought_too() -> None:
    way = DeviceFacts(device_url="https://x/d", token_url="https://x/t", client_id="c")
    known = registry(provider(LAB, oauth=way))
    assert next(one for one in known.providers() if one.id == "lab").oauth == way


def test_an_adapter_answers_in_the_place_of_a_wire_format() -> None:
    model = ScriptedModel([])
    known = registry(
        provider({"apiKey": "x", "models": [{"id": "m"}]}, adapter=lambda facts, access: model)
    )
    assert known.open("lab/m") is model


@pytest.mark.parametrize(
    ("config", "why"),
    [
        pytest.param({"models": [{}]}, "models.0.id", id="shape"),
        pytest.param({"models": object()}, "is no JSON", id="no-json"),
        pytest.param([1], "providers.lab", id="no-object"),
    ],
)
def test_one_that_is_wrong_is_told_and_the_others_are_there(config: JsonObject, why: str) -> None:
    brought, problems = extension_models([provider(config), provider(LAB, name="good")])
    assert list(brought.shapes) == ["good"]
    assert why in str(problems[0])
    assert "of extension 'x'" in str(problems[0])


async def test_a_session_speaks_with_a_model_that_an_extension_brings(home: Home) -> None:
    with LoopbackProvider() as lab:
        lab.script([says("hello")])
        home.write(
            "lab.py",
            f"""
            def extension(api):
                api.provider("lab", {{"baseUrl": "{lab.base_url}", "api": "openai-completions", "apiKey": "x",
                    "models": [{{"id": "m", "contextWindow": 32000, "maxTokens": 4096}}]}})
            """,
        )
        folder = Folder(home.root, home.dirs)
        async with folder.open(model="lab/m") as session:
            assert session.models.current is not None
            assert session.models.current.ref == "lab/m"
            await ask(session, "hello")
            assert session.info.last_answer() == "hello"
            (home.user / "lab.py").unlink()
            await session.resources.reload()
            assert "lab/m" not in [one.ref for one in session.models.available()]


async def test_an_extension_answers_for_its_own_model(home: Home) -> None:
    home.write(
        "own.py",
        """
        from contextlib import asynccontextmanager
        from agent_core.messages import AssistantMessage, Text
        from agent_core.providers import StreamFinished, TextDelta

        class Parrot:
            def __init__(self, facts):
                self.facts = facts

            @asynccontextmanager
            async def stream(self, request):
                async def parts():
                    yield TextDelta(text="squawk")
                    yield StreamFinished(message=AssistantMessage(
                        content=(Text(text="squawk"),), provider="own", model="parrot",
                        api="embedded", stop_reason="stop", at_ms=1))
                yield parts()

        def extension(api):
            api.provider("own", {"apiKey": "x", "models": [{"id": "parrot"}]},
                         adapter=lambda facts, access: Parrot(facts))
        """,
    )
    async with Folder(home.root, home.dirs).open(model="own/parrot") as session:
        await ask(session, "hello")
        last = session.info.messages[-1]
        assert isinstance(last, AssistantMessage)
        assert last.text == "squawk"


async def test_a_key_that_an_extension_names_later_is_kept_from_commands_too(home: Home) -> None:
    command = {"name": "bash", "arguments": {"command": "env; echo $TEAM_WORD"}}
    with LoopbackProvider() as lab:
        settings = {"permission": {"mode": "yolo"}, "containment": {"passVariables": ["TEAM_WORD"]}}
        write_config(home.dirs.config, lab, settings=settings)
        lab.script(
            [{"tool_calls": [command]}, says("done"), {"tool_calls": [command]}, says("done")]
        )
        folder = Folder(home.root, home.dirs)
        env = folder.env | {"TEAM_WORD": "sesame-seed-bread"}
        async with folder.open(model=None, env=env) as session:
            await ask(session)
            home.write(
                "bakery.py",
                """
                def extension(api):
                    api.provider("bakery", {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions",
                        "apiKey": "$TEAM_WORD", "models": [{"id": "m"}]})
                """,
            )
            await session.resources.reload()
            await ask(session)
            results = [one for one in session.info.messages if isinstance(one, ToolResultMessage)]
    before, after = (text_of(one.content) for one in results)
    assert "TEAM_WORD=sesame-seed-bread" in before
    assert "TEAM_WORD" not in after
    assert "sesame-seed-bread" not in after


LOGIN = """
from agent_core.extensions import LoginFunctions, StoredTokens

asked = []


async def login(show):
    show("http://lab.test/login", "AB-12")
    return StoredTokens(access="first", refresh="again", expires_ms=1)


async def refresh(tokens):
    if tokens.refresh != "again":
        raise ValueError("revoked")
    return StoredTokens(access="second", refresh="last", expires_ms=0)


def extension(api):
    api.provider("lab", {{"baseUrl": "{address}", "api": "openai-completions", "models": [{{"id": "m"}}]}},
                 oauth=LoginFunctions(login=login, refresh=refresh))
"""


async def test_functions_of_an_extension_log_in_and_renew_the_login(home: Home) -> None:
    shown: list[tuple[str, str]] = []
    with LoopbackProvider() as lab:
        lab.script([says("hello")])
        home.write("lab.py", LOGIN.format(address=lab.base_url))
        folder = Folder(home.root, home.dirs)
        async with folder.open(model=None) as session:
            assert "lab/m" not in [one.ref for one in session.models.available()]
            oauth = session.models.providers()["lab"].provider.oauth
            assert oauth is not None
            tokens = await log_in(
                oauth,
                show_url=lambda url: shown.append((url, "")),
                show_code=lambda device: shown.append((device.url, device.code)),
            )
            assert shown == [("http://lab.test/login", "AB-12")]
            store = AuthStore(home.dirs.config / "auth.json", clock=SystemClock())
            await store.put("lab", tokens)
            await session.models.refresh()
            _ = await session.models.choose("lab/m")
            await ask(session, "hi")
            assert session.info.last_answer() == "hello"
        # The log shows the length alone; that of the first token is another.
        sent = lab.requests[-1]["headers"]["authorization"]
        assert sent == f"<{len('Bearer second')} characters>"
        await store.load()
        entry = store.entry("lab")
    assert isinstance(entry, StoredTokens)
    assert (entry.access, entry.refresh) == ("second", "last")


async def test_a_login_that_fails_says_why() -> None:
    async def login(show: object) -> StoredTokens:
        raise ValueError("the account is closed")

    async def nothing(show: object) -> Any:
        return None

    for function, why in ((login, "the account is closed"), (nothing, "must return StoredTokens")):
        with pytest.raises(LoginFailed, match=why):
            _ = await log_in_by_functions(
                LoginFunctions(login=function), show=lambda url, code: None
            )
