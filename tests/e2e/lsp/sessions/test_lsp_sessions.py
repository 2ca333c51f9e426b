"""Stored sessions over the wire: listed, read, branched, copied, removed."""

import json
from pathlib import Path
from typing import Any

import pytest
from anyio import Path as AsyncPath, to_thread

from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.programs.terminal import tiller

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


async def say(client: RawClient, words: str) -> Any:
    return await client.request("agent/prompt", prompt(words, wait=True))


async def tree_of(client: RawClient) -> dict[str, Any]:
    """Give the tree as kind and preview, by entry."""
    tree = await client.request("agent/session/tree", {})
    return {node["entry"]: node for node in tree["nodes"]} | {"leaf": tree["leaf"]}


def entry_of(tree: dict[str, Any], preview: str) -> str:
    (entry,) = [
        key for key, node in tree.items() if key != "leaf" and node["preview"].startswith(preview)
    ]
    return entry


async def test_what_was_said_is_read_page_by_page(ground: Ground) -> None:
    ground.file("a.txt", "content of a\n")
    ground.provider.script(
        [calls(("read", {"path": "a.txt"}), text="I look."), says("done"), says("second answer")]
    )
    async with ground.client() as client:
        first = await say(client, "look at a.txt")
        await say(client, "and now?")
        whole = await client.request("agent/session/read", {})
        shown = [(one["kind"], one.get("role") or one.get("name")) for one in whole["items"]]
        assert shown == [
            ("message", "user"),
            ("message", "assistant"),
            ("tool", "read"),
            ("message", "assistant"),
            ("message", "user"),
            ("message", "assistant"),
        ]
        tool = whole["items"][2]
        assert (tool["status"], tool["input"]) == ("ok", {"path": "a.txt"})
        assert "content of a" in tool["content"][0]["text"]
        newest = await client.request("agent/session/read", {"limit": 2})
        assert newest["items"] == whole["items"][-2:]
        assert "next" not in newest
        older = await client.request("agent/session/read", {"limit": 3, "before": newest["prev"]})
        assert older["items"] == whole["items"][1:4]
        newer = await client.request("agent/session/read", {"after": older["next"]})
        assert newer["items"] == whole["items"][4:]
        run = await client.request("agent/session/read", {"run": first["run"]})
        assert run["items"] == whole["items"][:4]
        part = {"item": tool["item"], "range": {"start": 0, "end": 7}}
        one = await client.request("agent/session/read", part)
        assert one["items"][0]["content"] == [{"type": "text", "text": "content"}]
        bare = await client.request("agent/session/read", {"part": "meta"})
        assert all("content" not in one for one in bare["items"])
        with pytest.raises(ClientError, match="no item 'x'"):
            await client.request("agent/session/read", {"before": "x"})


async def test_the_past_of_a_snapshot_ends_where_its_run_begins(ground: Ground) -> None:
    ground.provider.script([says("first answer"), calls(("bash", {"command": "sleep 30"}))])
    async with ground.client(PANEL) as client:
        await say(client, "first words")
        idle = await client.request("agent/session/open", {})
        past = {"session": idle["session"], "before": idle["history"]["cursor"]}
        whole = await client.request("agent/session/read", past)
        assert [one["content"][0]["text"] for one in whole["items"]] == [
            "first words",
            "first answer",
        ]
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("second words"))
        await stream.wait(type="tool.running")
        running = await client.request("agent/session/open", {})
        own = [one["content"] for one in running["run"]["items"] if one.get("role") == "user"]
        assert own[0][0]["text"].startswith("second words")
        past["before"] = running["history"]["cursor"]
        assert (await client.request("agent/session/read", past))["items"] == whole["items"]
        await client.request("agent/run/cancel", {})


async def test_the_conversation_goes_on_from_an_earlier_entry(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two"), says("other two")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        await say(client, "first question")
        await say(client, "second question")
        tree = await tree_of(client)
        second = entry_of(tree, "second question")
        moved = await client.request(
            "agent/session/navigate", {"target": second, "label": "a fork in the road"}
        )
        assert moved["editorText"] == "second question"
        event = await stream.wait(type="leaf.moved")
        assert event["leaf"] == moved["leaf"]
        label = await stream.wait(type="entry.labelled")
        assert (label["entry"], label["label"]) == (second, "a fork in the road")
        await say(client, "another question")
        asked = ground.provider.requests[-1]["body"]["messages"]
        assert [one["content"] for one in asked if one["role"] == "user"] == [
            "first question",
            "another question",
        ]
        tree = await tree_of(client)
        assert tree[second]["label"] == "a fork in the road"
        await client.request("agent/session/label", {"entry": second, "label": None})
        label = await stream.wait(type="entry.labelled", label=None)
        assert label["entry"] == second
        assert tree[second]["parent"] == tree[entry_of(tree, "another question")]["parent"]
        items = (await client.request("agent/session/read", {}))["items"]
        assert [one["content"][0]["text"] for one in items] == [
            "first question",
            "one",
            "another question",
            "other two",
        ]


async def test_a_branch_that_is_left_is_summarised(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two"), says("## Goal\nIt went nowhere.")])
    async with ground.client() as client:
        await say(client, "first question")
        await say(client, "second question")
        target = entry_of(await tree_of(client), "second question")
        moved = await client.request(
            "agent/session/navigate", {"target": target, "summarize": True}
        )
        assert "It went nowhere." in moved["summary"]
        items = (await client.request("agent/session/read", {}))["items"]
        assert items[-1]["kind"] == "summary"


async def test_a_fork_is_another_session(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two"), says("three")])
    async with ground.client() as client:
        await say(client, "first question")
        await say(client, "second question")
        entry = entry_of(await tree_of(client), "second question")
        answer = entry_of(await tree_of(client), "two")
        made = await client.request("agent/session/fork", {"atEntry": entry})
        assert (made["preview"], made["messages"]) == ("first question", 2)
        with pytest.raises(ClientError, match="message of the user"):
            await client.request("agent/session/fork", {"atEntry": answer})
        with pytest.raises(ClientError, match="no-such-entry"):
            await client.request("agent/session/navigate", {"target": "no-such-entry"})
        await client.request("agent/session/open", {"session": made["session"]})
        await say(client, "question of the fork")
        listed = (await client.request("agent/session/list", {}))["sessions"]
        assert {one["session"] for one in listed} >= {made["session"]}
        assert len(listed) == 2
        found = await client.request("agent/session/list", {"query": "question of the fork"})
        assert [one["session"] for one in found["sessions"]] == [made["session"]]


async def test_two_characters_of_chinese_find_a_session(ground: Ground) -> None:
    ground.provider.script([says("好的")])
    async with ground.client() as client:
        await say(client, "请修复测试")
        found = await client.request("agent/session/list", {"query": "修复"})
        assert [one["preview"] for one in found["sessions"]] == ["请修复测试"]
        none = await client.request("agent/session/list", {"query": "测修"})
        assert none["sessions"] == []


async def test_a_session_is_written_out_and_removed(ground: Ground) -> None:
    ground.provider.script([says("**one** <b>x</b>")])
    async with ground.client() as client:
        await say(client, "first question")
        opened = await client.request("agent/session/open", {})
        lines = (await client.request("agent/session/export", {}))["content"].splitlines()
        assert json.loads(lines[0])["id"] == opened["session"]
        page = await client.request("agent/session/export", {"format": "html"})
        assert "<b>x</b>" not in page["content"]
        text = await client.request("agent/session/export", {"format": "markdown"})
        assert "first question" in text["content"]
        with pytest.raises(ClientError, match="format must be one of"):
            await client.request("agent/session/export", {"format": "_pdf"})
        (path,) = ground.sessions()
        assert await client.request("agent/session/delete", {}) == {}
        assert not path.exists()
        fresh = await client.request("agent/session/open", {})
        assert fresh["session"] != opened["session"]


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("agent/session/open", {}),
        ("agent/session/read", {}),
        ("agent/session/export", {"format": "markdown"}),
        ("agent/session/fork", {}),
        ("agent/session/delete", {}),
    ],
)
async def test_a_session_that_cannot_be_read_is_told_from_a_missing_one(
    ground: Ground, method: str, more: dict[str, Any]
) -> None:
    folder = ground.dirs.data / "sessions" / "--w--"
    folder.mkdir(parents=True)
    file = folder / "2026-01-01_s1.jsonl"
    file.write_text("overwritten", encoding="utf-8")
    async with ground.client(PANEL) as client:
        with pytest.raises(ClientError) as told:
            await client.request(method, {"session": "s1", **more})
        assert told.value.data["kind"] != "SessionNotFound"
        assert (
            f"{str(file)!r} has the name of a session and is no session file" in told.value.message
        )
    assert file.read_text("utf-8") == "overwritten"


async def test_a_session_has_its_tools_again(ground: Ground) -> None:
    ground.configure(branchSummary={"skipPrompt": True})
    ground.provider.script([says("one")])
    async with ground.client(PANEL) as client:
        await say(client, "hi")
        set_ = {"tools": ["read", "ls"]}
        answer = await client.request("agent/session/configure", {"set": set_})
        assert answer["config"]["tools"] == ["read", "ls"]
        session = (await client.request("agent/session/open", {}))["session"]
    async with ground.client(PANEL) as client:
        config = (await client.request("agent/session/open", {"session": session}))["config"]
        assert config["tools"] == ["read", "ls"]
        assert config["offerBranchSummary"] is False


async def test_a_whole_output_goes_with_its_session(ground: Ground) -> None:
    ground.provider.script([says("seen")])
    async with ground.client(PANEL) as client:
        await say(client, "hi")
        ran = await client.request("agent/bash", {"command": "seq 1 20000"})
        whole = AsyncPath(ran["fullOutput"])
        assert (await whole.read_text("utf-8")).endswith("\n20000\n")
        assert await client.request("agent/session/delete", {}) == {}
        assert not await whole.parent.exists()


async def test_a_command_of_the_user_is_shown_and_kept(ground: Ground) -> None:
    ground.provider.script([says("seen")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        ran = await client.request("agent/bash", {"command": "echo to be seen; exit 3"})
        assert (ran["exitCode"], ran["output"].strip()) == (3, "to be seen")
        ended = await stream.wait(type="bash.ended")
        assert (ended["exitCode"], ended["cancelled"]) == (3, False)
        secret = {"command": "echo not to be seen", "excludeFromContext": True}
        await client.request("agent/bash", secret)
        await say(client, "what did it print?")
        sent = str(ground.provider.requests[-1]["body"]["messages"])
        assert "to be seen" in sent
        assert "not to be seen" not in sent


async def test_a_session_that_is_not_loaded_is_read_without_attaching(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with ground.client() as client:
        await say(client, "first question")
        old = (await client.request("agent/session/open", {}))["session"]
        await client.request("agent/session/open", {"session": "new"})
        await client.request("agent/session/close", {"session": old})
        items = (await client.request("agent/session/read", {"session": old}))["items"]
        assert items[0]["content"] == [{"type": "text", "text": "first question"}]
        status = await client.request("agent/status", {})
        assert old not in {one["session"] for one in status["sessions"]}


async def test_models_and_levels_are_cycled(ground: Ground) -> None:
    async with ground.client() as client:
        listed = await client.request("agent/model/list", {})
        assert listed["current"] == "lab/m"
        assert "lab/m" in {one["model"] for one in listed["models"]}
        alone = await client.request("agent/model/cycle", {"direction": -1})
        assert alone["model"] is None or "/" in alone["model"]
        every = await client.request("agent/model/list", {"scope": "all"})
        assert len(every["models"]) > len(listed["models"])
        assert {one["auth"] for one in every["models"]} == {"ok", "missing"}


async def test_a_title_is_told_and_listed(ground: Ground) -> None:
    ground.provider.script([says("one")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        early = await client.request("agent/session/rename", {"title": "Too\nearly"})
        assert early["title"] == "Too early"
        await say(client, "first question")
        named = await client.request("agent/session/rename", {"title": "Repairs"})
        assert (named["title"], named["messages"]) == ("Repairs", 2)
        told = await stream.wait(type="session.title", title="Repairs")
        assert told["seq"] > 0
        listed = await client.request("agent/session/list", {"folder": Path(ground.root).as_uri()})
        assert [one["title"] for one in listed["sessions"]] == ["Repairs"]
        elsewhere = {"folder": Path(ground.root).parent.as_uri()}
        assert (await client.request("agent/session/list", elsewhere))["sessions"] == []
        everywhere = await client.request("agent/session/list", {**elsewhere, "scope": "all"})
        assert everywhere["sessions"] == listed["sessions"]


async def test_a_title_of_the_model_is_published_listed_and_kept(ground: Ground) -> None:
    ground.configure(titles="auto")
    ground.provider.script([says("one"), says("Totals of invoices"), says("two")])
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        await say(client, "first question")
        await stream.wait(type="session.title", title="Totals of invoices")
        listed = await client.request("agent/session/list", {"folder": Path(ground.root).as_uri()})
        (session,) = listed["sessions"]
        assert session["title"] == "Totals of invoices"
    async with ground.client(PANEL) as client:
        opened = await client.request("agent/session/open", {"session": session["session"]})
        assert opened["title"] == "Totals of invoices"
        await say(client, "second question")
    asked = [one["body"]["messages"][-1]["content"] for one in ground.provider.requests]
    assert ["<user>" in str(one) for one in asked] == [False, True, False]


async def test_a_fork_before_the_first_words_is_a_new_session(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with ground.client() as client:
        await say(client, "first question")
        entry = entry_of(await tree_of(client), "first question")
        made = await client.request("agent/session/fork", {"atEntry": entry})
        assert (made["editorText"], made["messages"]) == ("first question", 0)
        opened = await client.request("agent/session/open", {"session": made["session"]})
        assert opened["session"] == made["session"]
        await say(client, "a better question")
        items = (await client.request("agent/session/read", {}))["items"]
        assert items[0]["content"] == [{"type": "text", "text": "a better question"}]


async def test_the_terminal_goes_on_in_a_copy_of_what_the_editor_has_open(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two"), says("three")])
    async with ground.client() as client:
        await say(client, "first question")
        ran = await to_thread.run_sync(tiller, ground, "run", "--continue", "and in the terminal?")
        assert (ran.code, ran.out.strip()) == (0, "two")
        assert "goes on in a copy" in ran.err
        asked = ground.provider.requests[-1]["body"]["messages"]
        assert [one["content"] for one in asked if one["role"] == "user"] == [
            "first question",
            "and in the terminal?",
        ]
        here = (await client.request("agent/session/read", {}))["items"]
        assert len(here) == 2
        assert len(ground.sessions()) == 2


async def test_a_request_about_another_session_leaves_the_one_in_front_there(
    ground: Ground,
) -> None:
    ground.provider.script([says("one"), says("two"), says("more")])
    async with ground.client(PANEL) as client:
        first = await client.request("agent/session/open", {})
        await say(client, "first words")
        front = await client.request("agent/session/open", {"session": "new"})
        await say(client, "second words")
        beside = client.subscribe(session=first["session"])
        await beside.ready()
        changes = await client.request("agent/changes/list", {"session": first["session"]})
        assert changes["id"] == first["session"]
        await say(client, "third words")
        assert "second words" in str(ground.provider.requests[-1]["body"]["messages"])
        now = await client.request("agent/session/open", {})
        assert now["session"] == front["session"] != first["session"]


async def test_lists_and_branches_show_the_users_own_words(ground: Ground) -> None:
    ground.provider.script([says("one")])
    path = ground.file("cli.py", "x = 1\n")
    async with ground.client(PANEL) as client:
        client.open(path.as_uri(), "x = 1\n")
        client.notify("agent/editorContext", {"open": [path.as_uri()], "dirty": []})
        content = [
            {"type": "resource", "uri": path.as_uri()},
            {"type": "text", "text": "Parallel two"},
        ]
        asked = {**prompt("", wait=True), "content": content}
        assert (await client.request("agent/prompt", asked))["status"] == "completed"
        assert "editor-context" in str(ground.provider.requests[-1]["body"]["messages"])
        (listed,) = (await client.request("agent/session/list", {}))["sessions"]
        assert listed["preview"] == "Parallel two"
        nodes = (await client.request("agent/session/tree", {}))["nodes"]
        assert "Parallel two" in [one["preview"] for one in nodes]
        assert not [one for one in nodes if "points at" in one["preview"]]


async def test_a_prompt_of_the_past_names_the_run_that_it_began(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with ground.client() as client:
        content = [{"type": "text", "text": "first question"}]
        params = {"messageId": "m1", "content": content, "wait": True}
        ended = await client.request("agent/prompt", params)
        await say(client, "second question")
        items = (await client.request("agent/session/read", {}))["items"]
        asked = [one["run"] for one in items if one["role"] == "user"]
        assert asked[0] == ended["run"] != asked[1]
        assert all("run" not in one for one in items if one["role"] == "assistant")
