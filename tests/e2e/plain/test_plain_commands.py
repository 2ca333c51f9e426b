"""Commands of editors without an extension: with and without arguments, answered at once, shown where answers are not."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.clients.office import soon
from tests.support.clients.plain_windows import actions, command, messages, refusal
from tests.support.clients.server import Ground, calls, says
from tests.support.clients.windows import opened, serving
from tests.support.harness.sizes import paired
from tests.support.lsp.lsp_answers import Chooses, LeavesOpen
from tests.support.lsp.lsp_client import ClientError, RawClient
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import path_of
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, VSCODE, Profile
from tiller_server.lsp.methods import COMMANDS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
SHOW = "window/showMessageRequest"
TEXT = "one\ntwo\nthree\n"
WRONG: list[tuple[str, list[Any], str]] = [
    ("send", [{"words": "x"}], "tiller.send knows no 'words'; it takes `text`"),
    ("send", [[1]], "tiller.send takes words, or {'text': …}, got [[1]]"),
    ("new", ["x"], "tiller.new takes nothing behind it, got ['x']"),
    ("trust", ["x"], "tiller.trust takes nothing behind it, got ['x']"),
    ("status", [{}, {}], "tiller.status takes nothing behind it, got [{}, {}]"),
    ("chat", ["now"], "tiller.chat takes nothing behind it, got ['now']"),
    ("accept", ["x"], "the argument 'x' is no object"),
    (
        "reject",
        [{"hunk": 3}],
        "tiller.reject takes one object with `hunk`, `file` or `changeSet`, got {'hunk': 3}",
    ),
    ("rules", [{"remove": "no"}], "tiller.rules: no rule has the id 'no'"),
    ("model", [7, {}], "tiller.model takes words, or {'model': …}, got [7, {}]"),
    ("explain", ["a.py", "x"], "tiller.explain takes a path and lines from 1, got ['a.py', 'x']"),
    ("review", [{"uri": "untitled:1"}], "tiller.review: 'untitled:1' is no file"),
    ("fix", [{"line": 0}], "tiller.fix: lines 0 to 0 make no sense; they count from 1"),
]  # fmt: skip


def last_words(ground: Ground) -> str:
    """Give what the user said last, as the model was asked."""
    users = [
        one for one in ground.provider.requests[-1]["body"]["messages"] if one["role"] == "user"
    ]
    return str(users[-1]["content"])


def write_settings(ground: Ground, settings: Json) -> None:
    """Replace what the user has set."""
    chosen = {"titles": "off", **settings}
    (ground.dirs.config / "settings.json").write_text(json.dumps(chosen), encoding="utf-8")


def configure_models(ground: Ground, *names: str) -> None:
    """Let the provider have these models besides its own."""
    path = ground.dirs.config / "models.json"
    told = json.loads(path.read_text("utf-8"))
    lab = told["providers"]["lab"]
    lab["models"] += [{**lab["models"][0], "id": name} for name in names]
    path.write_text(json.dumps(told), encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
async def test_every_command_is_answered_without_arguments(ground: Ground, name: str) -> None:
    ground.provider.script([says("well")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(ground.file("a.py", TEXT).as_uri(), TEXT)
        sentence = ""
        try:
            await command(client, name.removeprefix("tiller."))
        except ClientError as refused:
            sentence = refused.message
            assert f"Tiller: {sentence}" in messages(client)
        needs_more = {"tiller.steer", "tiller.comment"}
        assert bool(sentence) == (name in needs_more), sentence
        assert client.undeclared == []
        assert client.complaints == []


@pytest.mark.parametrize(
    ("wrong", "profile"),
    paired(WRONG, (HELIX, NEOVIM_0_11)),
    ids=lambda one: getattr(one, "name", None) or one[0],
)
async def test_wrong_arguments_are_one_sentence_that_the_user_sees(
    ground: Ground, profile: Profile, wrong: tuple[str, list[Any], str]
) -> None:
    name, arguments, sentence = wrong
    async with serving(ground) as windows, windows.window(profile) as client:
        assert await refusal(client, name, *arguments) == sentence
        # Neovim shows the error of an answer; Helix writes it to its log.
        shown = [f"Tiller: {sentence}"] if profile is HELIX else []
        assert messages(client) == shown
        assert len(ground.provider.requests) == 0


async def test_an_unknown_model_or_provider_is_said(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(HELIX) as client:
        assert "nothing-like-it" in await refusal(client, "model", "nothing-like-it")
        assert "no provider is called 'nobody'" in await refusal(client, "signIn", "nobody")


async def test_arguments_that_are_no_list_are_refused(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(HELIX) as client:
        for params, sentence in (
            (
                {"command": "tiller.send", "arguments": "hello"},
                "tiller.send: the arguments must be a list, got 'hello'",
            ),
            (
                {"command": "tiller.dance"},
                "there is no command 'tiller.dance'; there are tiller.send",
            ),
            ({}, "there is no command None"),
        ):
            with pytest.raises(ClientError) as refused:
                await client.request("workspace/executeCommand", params)
            assert refused.value.code == -32602
            assert refused.value.message.startswith(sentence)
            assert messages(client)[-1].startswith(f"Tiller: {sentence}")
        assert (await command(client, "status"))["status"].startswith("idle")


async def test_the_status_is_a_line_that_says_it_all(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(HELIX) as client:
        ground.file("a.txt", TEXT)
        ground.provider.script(
            [calls(("write", {"path": "b.txt", "content": "new\n"})), says("done")]
        )
        await command(client, "send", "write", "a file")
        await soon(lambda: ended(client))
        told = (await command(client, "status"))["status"]
        assert told.startswith("idle · model lab/m · mode yolo")
        assert "1 change waits" in told
        assert messages(client)[-1] == f"Tiller: {told}"
        assert await command(client, "accept") == {"results": ["done"]}
        assert messages(client)[-1] == "Tiller: 1 kept."
        await command(client, "reject")
        assert messages(client)[-1] == "Tiller: nothing waits for your word."


def ended(client: RawClient) -> list[str]:
    """Give what the ends of progress lines said."""
    values = [one for told in client.progress.values() for one in told]
    return [one.get("message", "") for one in values if one["kind"] == "end"]


async def test_an_editor_without_progress_is_told_the_end_of_a_run(ground: Ground) -> None:
    quiet = replace(EGLOT, answers_anyway=frozenset())
    ground.provider.script([says("done"), says("done")])
    async with serving(ground) as windows, windows.window(quiet) as client:
        await command(client, "send", "go")
        await soon(lambda: messages(client))
        assert messages(client)[0].startswith("Tiller: done · ")
        assert client.undeclared == []


async def test_stop_and_steer_need_no_names(ground: Ground) -> None:
    wait = calls(("bash", {"command": "sleep 30"}))
    ground.provider.script([wait, says("done")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        await command(client, "stop")
        assert messages(client) == ["Tiller: nothing is running."]
        begun = await command(client, "send", "go")
        assert begun["accepted"] == "started"
        await soon(lambda: ground.provider.requests)
        steered = await command(client, "steer", "faster,", "please")
        assert (steered["accepted"], steered["run"]) == ("steered", begun["run"])
        assert (await command(client, "stop"))["status"] == "cancelled"


async def test_a_new_session_leaves_the_old_one_as_it_is(ground: Ground) -> None:
    ground.provider.script([says("first"), says("second")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        await command(client, "send", "first words")
        await soon(lambda: ended(client))
        old = (await opened(client))["session"]
        new = (await command(client, "new"))["session"]
        assert new != old
        await command(client, "send", "two")
        await soon(lambda: len(ended(client)) == 2)
        assert "first words" not in str(ground.provider.requests[-1]["body"]["messages"])
        assert set(await windows.sessions()) == {old, new}


async def test_the_chat_file_goes_on_with_the_new_session(ground: Ground) -> None:
    ground.provider.script([says("answer one"), says("answer two")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        chat = path_of((await command(client, "chat"))["uri"])
        await command(client, "send", "question one")
        await soon(lambda: "answer one" in chat.read_text("utf-8"))
        await command(client, "new")
        await command(client, "chat")
        await command(client, "send", "question two")
        await soon(lambda: "answer two" in chat.read_text("utf-8"))


async def test_what_is_asked_without_a_place_is_about_the_document_touched_last(
    ground: Ground,
) -> None:
    one, other = ground.file("src/one.py", TEXT), ground.file("other.py", TEXT)
    ground.provider.script([says("well")] * 8)
    async with serving(ground) as windows, windows.window(HELIX) as client:
        assert "needs a file" in await refusal(client, "explain")
        client.open(one.as_uri(), TEXT)
        client.open(other.as_uri(), TEXT)
        await command(client, "implement")
        await soon(lambda: len(ended(client)) == 1)
        assert "Implement `other.py`" in last_words(ground)
        client.change(one.as_uri(), "# tiller: say hello\n" + TEXT)
        await command(client, "fix")
        await soon(lambda: len(ended(client)) == 2)
        assert "Fix the problems in `src/one.py`" in last_words(ground)
        await command(client, "comment")
        await soon(lambda: len(ended(client)) == 3)
        assert "A comment in line 1 of `src/one.py` asks you: say hello" in last_words(ground)
        await command(client, "fix", "other.py", 2, 3)
        await soon(lambda: len(ended(client)) == 4)
        assert "lines 2 to 3 of `other.py`" in last_words(ground)


async def test_free_words_carry_the_place_of_the_user(ground: Ground) -> None:
    path = ground.file("src/one.py", TEXT)
    ground.provider.script([says("well")] * 3)
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(path.as_uri(), TEXT)
        await actions(client, path.as_uri(), 1, last0=2)
        await command(client, "send", "what is this?")
        await soon(lambda: len(ended(client)) == 1)
        assert "focus: src/one.py (selected: lines 2 to 3)" in last_words(ground)
        await command(client, "send", "and why?")
        await soon(lambda: len(ended(client)) == 2)
        assert last_words(ground) == "and why?"
        chat = (await command(client, "chat"))["uri"]
        text = path_of(chat).read_text("utf-8")
        assert "what is this?" in text
        assert "focus:" not in text


async def test_a_comment_that_is_not_there_is_said(ground: Ground) -> None:
    path = ground.file("a.py", TEXT)
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(path.as_uri(), TEXT)
        assert "no comment of 'a.py' asks for anything" in await refusal(client, "comment")


# ---------------------------------------------------------------------- models and logins


async def test_a_model_is_chosen_from_pages(ground: Ground) -> None:
    configure_models(ground, "m2", "m3", "m4", "m5", "m6")
    async with serving(ground) as windows, windows.window(HELIX) as client:
        asked = client.handlers[SHOW] = Chooses("More …", "lab/m5")
        assert await command(client, "model") == {"model": "lab/m"}
        await soon(lambda: "Tiller: the model is lab/m5 now." in messages(client))
        first, second = asked.asked
        # A local model may be installed as well, and stands behind these.
        assert first["message"].startswith("Tiller: which model (now lab/m)? (1 of ")
        assert [one["title"] for one in first["actions"]] == [
            "lab/m", "lab/m2", "lab/m3", "More …",
        ]  # fmt: skip
        assert "(2 of " in second["message"]
        assert (await opened(client))["config"]["model"] == "lab/m5"
        assert await command(client, "model", "lab/m2") == {"model": "lab/m2"}
        assert (await opened(client))["config"]["model"] == "lab/m2"


async def test_a_list_gives_way_to_a_question_of_the_session(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("done")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        shown = client.handlers[SHOW] = LeavesOpen()
        await command(client, "model")
        await soon(lambda: shown.asked)
        await command(client, "send", "go")
        await soon(lambda: len(shown.asked) == 2)
        assert "which model" in shown.asked[0]["message"]
        assert "wants to run a command" in shown.asked[1]["message"]
        cancelled = [one for one in client.received if one.get("method") == "$/cancelRequest"]
        assert len(cancelled) == 1
        shown.replies[1](shown.asked[1]["actions"][0])
        await soon(lambda: ended(client))
        assert (ground.root / "made").exists()


async def test_who_logged_in_meanwhile_needs_no_restart(ground: Ground) -> None:
    (ground.dirs.config / "models.json").unlink()
    write_settings(ground, {"defaultProjectTrust": "always"})
    async with serving(ground) as windows, windows.window(HELIX) as client:
        assert "no model" in (await command(client, "status"))["status"]
        await command(client, "model")
        assert messages(client)[-1] == (
            "Tiller: no provider can be asked yet; sign in with tiller.signIn."
        )
        auth = ground.dirs.config / "auth.json"
        auth.write_text(json.dumps({"openai": {"type": "api_key", "key": "sk-x"}}), "utf-8")
        asked = client.handlers[SHOW] = Chooses()
        await command(client, "model")
        await soon(lambda: asked.asked)
        assert any("openai/" in one["title"] for one in asked.asked[0]["actions"])


async def test_a_key_is_never_asked_for_in_an_editor(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(HELIX) as client:
        await command(client, "signIn", "openai")
        await soon(lambda: messages(client))
        (told,) = messages(client)
        assert "run `tiller auth login openai` in a terminal" in told
        assert "OPENAI_API_KEY" in told


async def test_a_plan_is_made_and_carried_out_by_commands(ground: Ground) -> None:
    plan = calls(("plan", {"markdown": "# Write the note"}))
    work = calls(("write", {"path": "note.txt", "content": "done\n"}))
    ground.provider.script([plan, says("Here."), work, says("Written.")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        assert await command(client, "plan") == {"plan": None}
        assert "no plan waits for an answer" in messages(client)[-1]
        assert "'fast' is no mode; there are plan, ask, auto, yolo" in await refusal(
            client, "mode", "fast"
        )
        assert await command(client, "mode", "plan") == {"mode": "plan"}
        await command(client, "send", "plan it")
        await soon(lambda: len(ground.provider.requests) == 2)
        while not (await command(client, "status"))["status"].startswith("idle"):
            pass
        asked = client.handlers[SHOW] = Chooses("Yes, and ask before risky steps")
        assert (await command(client, "plan"))["plan"] is not None
        await soon((ground.root / "note.txt").exists)
        assert asked.missing == []
        assert (await command(client, "mode"))["mode"] == "ask"


async def test_a_client_without_lists_is_told_the_names(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(VSCODE) as client:

        def refuses(_params: Json, reply: Reply) -> None:
            reply.error(-32601, "no")

        client.handlers[SHOW] = refuses
        configure_models(ground, "m2")
        await command(client, "model")
        await soon(lambda: messages(client))
        assert "tiller.model" in messages(client)[-1]
        assert "lab/m" in messages(client)[-1]


async def test_a_question_whose_dialog_is_gone_is_shown_again(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("done")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        await command(client, "answer")
        assert messages(client) == ["Tiller: nothing is asked."]
        shown = client.handlers[SHOW] = LeavesOpen()
        await command(client, "send", "go")
        await soon(lambda: shown.asked)
        # Another dialog has taken its place, and nobody will ever answer it.
        await command(client, "model")
        await soon(lambda: len(messages(client)) == 2)
        assert "tiller.answer shows what it asks" in messages(client)[-1]
        await command(client, "answer")
        await soon(lambda: len(shown.asked) == 2)
        assert shown.asked[1] == shown.asked[0]
        shown.replies[1](None)
        (waiting,) = (await opened(client))["pending"]
        await command(client, "answer")
        await soon(lambda: len(shown.asked) == 3)
        shown.replies[2](shown.asked[2]["actions"][0])
        await soon(lambda: ended(client))
        assert waiting["request"]
        assert (ground.root / "made").exists()


async def test_questions_are_answered_by_name(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("done")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        shown = client.handlers[SHOW] = LeavesOpen()
        await command(client, "send", "go")
        await soon(lambda: shown.asked)
        (waiting,) = (await opened(client))["pending"]
        allow = waiting["options"][0]["id"]
        answer = {"request": waiting["request"], "option": allow}
        assert (await command(client, "answer", answer))["status"] == "recorded"
        await soon(lambda: ended(client))
        assert (ground.root / "made").exists()


async def test_an_observer_decides_nothing(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(HELIX, client={"role": "observer"}) as client:  # fmt: skip
        for name in ("trust", "accept", "reject", "restore"):
            assert "observer" in await refusal(client, name)


async def test_a_command_before_anything_else_opens_the_session(ground: Ground) -> None:
    ground.provider.script([says("done")])
    async with serving(ground) as windows, windows.window(NEOVIM_0_11) as client:
        await command(client, "send", "hello")
        await soon(lambda: ended(client))
        assert last_words(ground) == "hello"
        assert client.undeclared == []
