"""The diff of what waits, as a file that follows and gives way, or as a document that is no file."""

import subprocess
from dataclasses import replace
from typing import Any

import pytest

from tests.support.clients.office import soon
from tests.support.clients.plain_windows import command, ends, refusal, write
from tests.support.clients.server import Ground, says
from tests.support.clients.windows import serving
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, VSCODE, Profile

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
PLAIN = [NEOVIM_0_11, HELIX, EGLOT]
DIFF = ".tiller/changes.diff"
HEAD = "# Tiller: what waits for your word. This document is made anew whenever that changes.\n"


async def changed(ground: Ground, client: RawClient, name: str, content: str) -> None:
    before = len(ends(client))
    ground.provider.script([write(name, content), says("done")])
    await command(client, "send", "go")
    await soon(lambda: len(ends(client)) > before)


def git(ground: Ground, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=ground.root, check=True, capture_output=True)
    return ran.stdout.decode()


async def test_the_diff_holds_what_waits_and_follows_it(ground: Ground) -> None:
    git(ground, "init", "-q")
    path = ground.root / DIFF
    async with serving(ground) as windows, windows.window(HELIX) as client:
        await changed(ground, client, "b.txt", "one\ntwo\n")
        assert not path.exists()
        shown: list[Json] = []
        client.handlers["window/showDocument"] = lambda params, reply: (
            shown.append(params), reply({"success": True}),
        )[0]  # fmt: skip
        assert await command(client, "changes") == {"uri": path.as_uri()}
        assert [one["uri"] for one in shown] == [path.as_uri()]
        assert path.read_text("utf-8") == (
            HEAD + "--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
        )
        assert git(ground, "status", "--porcelain") == "?? b.txt\n"
        await changed(ground, client, "c.txt", "three\n")
        await soon(lambda: "+three" in path.read_text("utf-8"))
        await command(client, "accept")
        await soon(lambda: path.read_text("utf-8") == HEAD + "# Nothing waits.\n")
        assert client.undeclared == []


@pytest.mark.parametrize("profile", PLAIN, ids=lambda one: one.name)
async def test_an_open_diff_follows_until_its_user_writes_in_it(
    ground: Ground, profile: Profile
) -> None:
    path = ground.root / DIFF
    async with serving(ground) as windows, windows.window(profile) as client:
        await command(client, "changes")
        document = client.open(path.as_uri(), path.read_text("utf-8"), language="diff")
        await changed(ground, client, "b.txt", "one\n")
        await soon(lambda: "+one" in document.text)
        client.change(path.as_uri(), document.text + "my note\n")
        mine = document.text
        await changed(ground, client, "c.txt", "two\n")
        assert await refusal(client, "changes") == f"{DIFF} was not written: somebody works in it"
        assert document.text == mine
        client.close_document(path.as_uri())
        await command(client, "changes")
        assert "+two" in path.read_text("utf-8")


async def test_what_somebody_else_wrote_is_left(ground: Ground) -> None:
    ground.file(DIFF, "mine\n")
    async with serving(ground) as windows, windows.window(HELIX) as client:
        assert await refusal(client, "changes") == f"{DIFF} was not written: somebody else wrote it"
        assert (ground.root / DIFF).read_text("utf-8") == "mine\n"


async def test_the_diff_does_not_follow_links(ground: Ground) -> None:
    elsewhere = ground.file("precious.txt", HEAD)
    (ground.root / ".tiller").mkdir()
    (ground.root / DIFF).symlink_to(elsewhere)
    async with serving(ground) as windows, windows.window(HELIX) as client:
        await changed(ground, client, "b.txt", "one\n")
        assert (
            await refusal(client, "changes") == f"{DIFF} was not written: it leads somewhere else"
        )
        assert elsewhere.read_text("utf-8") == HEAD


async def test_a_folder_that_cannot_be_written_to_is_said(ground: Ground) -> None:
    ground.file(".tiller", "a file in the place of the folder")
    async with serving(ground) as windows, windows.window(HELIX) as client:
        assert (await refusal(client, "changes")).startswith(f"{DIFF} was not written: ")


async def test_who_shows_documents_that_are_no_files_gets_no_file(ground: Ground) -> None:
    asked: list[Json] = []
    async with serving(ground) as windows, windows.window(VSCODE) as client:
        provider = client.result["capabilities"]["workspace"]["textDocumentContent"]
        assert provider == {"schemes": ["tiller-diff"]}
        client.handlers["workspace/textDocumentContent/refresh"] = lambda params, reply: (
            asked.append(params), reply(None),
        )[0]  # fmt: skip
        assert await command(client, "changes") == {"uri": "tiller-diff:/changes.diff"}
        await changed(ground, client, "b.txt", "one\n")
        await soon(lambda: asked)
        told = await client.request("workspace/textDocumentContent", {"uri": asked[-1]["uri"]})
        assert "+one" in told["text"]
        assert not (ground.root / DIFF).exists()


async def test_secrets_stay_out_of_the_diff(ground: Ground) -> None:
    env = {**ground.env, "LAB_API_KEY": "sk-0123456789abcdefghijklmnop"}
    async with serving(replace(ground, env=env)) as windows, windows.window(HELIX) as client:
        await changed(ground, client, "b.txt", "key = sk-0123456789abcdefghijklmnop\n")
        await command(client, "changes")
        text = (ground.root / DIFF).read_text("utf-8")
        assert "+key = " in text
        assert "sk-0123456789abcdefghijklmnop" not in text
