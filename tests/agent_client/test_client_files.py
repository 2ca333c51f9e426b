"""Files of a client without document sync: its unsaved text is what the agent reads, and edits go through it."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object
from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tiller_server.agent_client.connection import AgentClient, AgentRefused, RequestHandler
from tiller_server.agent_client.in_process import attached
from tiller_server.lsp.app import App
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

SAVED: Final = "one\ntwo\nthree\n"
UNSAVED: Final = "one\ntwo\nthree, unsaved\n"
EDIT: Final = ("edit", {"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]})
READ: Final = ("read", {"path": "a.txt"})
EDITED: Final = "one\n2\nthree\n"
REFUSED: Final = AgentRefused("the user said no", code=-32000)
GIVEN_UP: Final = 3


class FileEditor:
    """A client that has files: texts that are not saved, over the disk."""

    def __init__(self, *, saves: bool = True) -> None:
        self.unsaved: dict[Path, str] = {}
        self.saves = saves
        self.asked: list[str] = []
        self.on_read: Callable[[Path], Awaitable[JsonObject]] = self.read
        self.on_write: Callable[[Path, str], Awaitable[JsonObject]] = self.write

    @property
    def handlers(self) -> Mapping[str, RequestHandler]:
        """Answers of the requests of the server."""
        return {"agent/file/read": self._read, "agent/file/write": self._write}

    def count(self, what: str) -> int:
        """Count the requests of a kind."""
        return self.asked.count(what)

    async def read(self, path: Path) -> JsonObject:
        """Answer truly."""
        if path in self.unsaved:
            return {"text": self.unsaved[path]}
        data = _bytes(path)
        return {"missing": True} if data is None else {"text": data.decode()}

    async def write(self, path: Path, text: str) -> JsonObject:
        """Do what is asked."""
        if self.saves:
            _write(path, text)
            _ = self.unsaved.pop(path, None)
        else:
            self.unsaved[path] = text
        return {}

    async def _read(self, params: JsonObject) -> JsonObject:
        self.asked.append("read")
        return await self.on_read(_path(params))

    async def _write(self, params: JsonObject) -> JsonObject:
        self.asked.append("write")
        return await self.on_write(_path(params), str(params["text"]))


def _path(params: JsonObject) -> Path:
    path = path_of(str(params["uri"]))
    assert path is not None
    return path


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _write(path: Path, text: str) -> None:
    _ = path.write_bytes(text.encode())


class Served:
    """A session in this process."""

    def __init__(self, ground: Ground, runtime: Runtime, stack: AsyncExitStack) -> None:
        self._ground = ground
        self._runtime = runtime
        self._stack = stack
        self._session: str | None = None
        self.apps: list[App] = []
        """The server's halves of the connections."""

    async def client(
        self, editor: FileEditor | None, *, files: JsonObject | None = None, name: str = "test"
    ) -> AgentClient:
        """Attach a client to the session; without an editor it declares no files."""
        handlers = {} if editor is None else editor.handlers
        app = App(self._runtime)
        self.apps.append(app)
        client = await self._stack.enter_async_context(attached(app, handlers=handlers))
        declared: JsonObject = {"read": {}, "write": {}} if files is None else files
        capabilities: JsonObject = {"v": 1} if editor is None else {"v": 1, "files": declared}
        agent: JsonObject = {"client": {"name": name}, "capabilities": capabilities}
        params: JsonObject = {
            "processId": None,
            "clientInfo": {"name": name},
            "rootUri": self._ground.root.as_uri(),
            "capabilities": {},
            "initializationOptions": {"agent": agent},
        }
        _ = await client.request("initialize", params)
        client.notify("initialized", {})
        asked: JsonObject = {} if self._session is None else {"session": self._session}
        opened = as_object(await client.request("agent/session/open", asked))
        self._session = str(opened["session"])
        return client

    async def run(self, client: AgentClient, *turns: tuple[str, Any]) -> Sequence[str]:
        """Have the model make one call per turn, and return what each was told."""
        made = len(self._ground.provider.requests)
        self._ground.provider.script([*(calls(turn) for turn in turns), says("done")])
        result = as_object(await client.request("agent/prompt", prompt("go", wait=True)))
        assert result["status"] == "completed"
        told = tool_texts(self._ground.provider.requests[-1])
        assert len(self._ground.provider.requests) == made + len(turns) + 1
        return told[-len(turns) :]


@asynccontextmanager
async def serving(ground: Ground) -> AsyncGenerator[Served]:
    """Serve a session without a daemon."""
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with Runtime(config) as runtime, AsyncExitStack() as stack:
        yield Served(ground, runtime, stack)


async def test_unsaved_text_is_read_and_an_edit_goes_through_the_client(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor()
    editor.unsaved[path] = UNSAVED
    async with serving(ground) as served:
        client = await served.client(editor)
        read, edited = await served.run(client, READ, EDIT)
        listed = as_object(await client.request("agent/changes/list", {}))
        made = as_object(await client.request("agent/checkpoint/list", {}))
        (checkpoint,) = _array(made["checkpoints"])
        asked: JsonObject = {
            "checkpoint": checkpoint["checkpoint"],
            "scope": "files",
            "onConflict": "skip",
        }
        with_edit = path.read_text()
        restored = as_object(await client.request("agent/checkpoint/restore", asked))
    assert "three, unsaved" in read
    assert with_edit == UNSAVED.replace("two", "2")
    assert "Successfully replaced" in edited
    assert [one["uri"] for one in _array(listed["files"])] == [path.as_uri()]
    # The text that the user had not saved comes back, not the disk's.
    assert len(_array(restored["restored"])) == 1
    assert path.read_text() == UNSAVED
    assert editor.count("write") == 2


async def test_an_edit_that_the_client_does_not_save_is_reported_as_unsaved(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor(saves=False)
    async with serving(ground) as served:
        client = await served.client(editor)
        _, edited, found = await served.run(
            client, READ, EDIT, ("grep", {"pattern": "2", "path": "."})
        )
    assert editor.unsaved[path] == EDITED
    assert path.read_text() == SAVED
    assert "unsaved in the editor; programs still read the old file" in edited
    assert "a.txt" in found


async def test_a_new_file_is_written_through_the_client(ground: Ground) -> None:
    editor = FileEditor()
    async with serving(ground) as served:
        client = await served.client(editor)
        _ = await served.run(
            client,
            ("write", {"path": "new.txt", "content": "new\n"}),
            ("write", {"path": "deep/new.txt", "content": "deep\n"}),
        )
    assert (ground.root / "new.txt").read_text() == "new\n"
    # Its folder is not there, and not every client makes folders.
    assert (ground.root / "deep" / "new.txt").read_text() == "deep\n"
    assert editor.count("write") == 1


@pytest.mark.parametrize(
    ("saved", "sent"),
    [
        ("one\r\ntwo\r\nthree\r\n", "one\ntwo\nthree\n"),
        ("one\ntwo\nthree\n", "one\ntwo\nthree"),
    ],
    ids=["line ends", "final newline"],
)
async def test_line_ends_that_a_client_leaves_out_are_kept(
    ground: Ground, saved: str, sent: str
) -> None:
    path = ground.file("a.txt", saved)
    editor = FileEditor()

    async def read(path: Path) -> JsonObject:
        text = (_bytes(path) or b"").decode().replace("\r\n", "\n")
        return {"text": text if sent.endswith("\n") else text.removesuffix("\n")}

    editor.on_read = read
    async with serving(ground) as served:
        client = await served.client(editor)
        _ = await served.run(client, READ, EDIT)
    assert path.read_bytes().decode() == saved.replace("two", "2")
    assert editor.count("write") == 1


async def test_a_client_that_says_yes_and_changes_nothing_is_caught(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor()

    async def lie(path: Path, text: str) -> JsonObject:
        _ = path, text
        return {}

    editor.on_write = lie
    async with serving(ground) as served:
        client = await served.client(editor)
        _, edited, created = await served.run(
            client, READ, EDIT, ("write", {"path": "new.txt", "content": "new\n"})
        )
        changes = as_object(await client.request("agent/changes/list", {}))
    assert "reported success, but the file is not as written" in edited
    assert "was not created, although" in created
    assert path.read_text() == SAVED
    assert _array(changes["files"]) == []


async def test_a_client_that_writes_something_else_is_caught(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor()

    async def garble(path: Path, text: str) -> JsonObject:
        return await editor.write(path, text.replace("2", "two and a half"))

    editor.on_write = garble
    async with serving(ground) as served:
        client = await served.client(editor)
        _, edited = await served.run(client, READ, EDIT)
        changes = as_object(await client.request("agent/changes/list", {}))
    assert "reported success, but the file is not as written" in edited
    assert path.read_text() == "one\ntwo and a half\nthree\n"
    assert editor.count("write") == 1
    assert _array(changes["files"]) == []


async def test_a_client_that_formats_what_it_saves_is_no_liar(ground: Ground) -> None:
    path = ground.file("a.txt", "one  \ntwo\nthree\nfour  \n")
    editor = FileEditor()

    async def trim(path: Path, text: str) -> JsonObject:
        return await editor.write(path, text.replace("  \n", "\n"))

    editor.on_write = trim
    async with serving(ground) as served:
        client = await served.client(editor)
        _, edited = await served.run(client, READ, EDIT)
    assert path.read_text() == "one\n2\nthree\nfour\n"
    assert "changed elsewhere meanwhile" in edited


async def test_a_write_that_the_client_refuses_does_not_go_to_the_disk(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor()

    async def refuse(path: Path, text: str) -> JsonObject:
        raise REFUSED

    editor.on_write = refuse
    async with serving(ground) as served:
        client = await served.client(editor)
        _, edited, created = await served.run(
            client, READ, EDIT, ("write", {"path": "new.txt", "content": "new\n"})
        )
    assert "refused the edit" in edited
    assert "the user said no" in edited
    assert "the user said no" in created
    assert path.read_text() == SAVED
    assert not (ground.root / "new.txt").exists()


async def test_the_users_text_of_meanwhile_is_merged(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor()
    async with serving(ground) as served:
        client = await served.client(editor)
        _ = await served.run(client, READ)
        editor.unsaved[path] = "zero\n" + SAVED
        (edited,) = await served.run(client, EDIT)
    assert path.read_text() == "zero\n" + EDITED
    assert "Successfully replaced" in edited


async def test_a_client_that_cannot_write_keeps_its_unsaved_text(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    other = ground.file("b.txt", SAVED)
    editor = FileEditor()
    editor.unsaved[path] = UNSAVED
    of_b = ("edit", {**EDIT[1], "path": "b.txt"})
    async with serving(ground) as served:
        client = await served.client(editor, files={"read": {}})
        read, edited, _, _ = await served.run(client, READ, EDIT, ("read", {"path": "b.txt"}), of_b)
    assert "three, unsaved" in read
    assert "has unsaved edits" in edited
    assert (path.read_text(), editor.unsaved[path]) == (SAVED, UNSAVED)
    assert other.read_text() == EDITED
    assert editor.count("write") == 0


async def test_a_client_that_only_writes_is_verified_by_the_disk(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor()
    async with serving(ground) as served:
        client = await served.client(editor, files={"write": {}})
        _ = await served.run(client, READ, EDIT)
        editor.saves = False
        _, edited = await served.run(
            client, READ, ("edit", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "1"}]})
        )
    assert path.read_text() == EDITED
    assert "the file is not as written" in edited
    assert (editor.count("read"), editor.count("write")) == (0, 2)


async def test_an_undo_of_the_user_is_noticed_at_the_next_look(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor()
    async with serving(ground) as served:
        client = await served.client(editor)
        undone = anyio.Event()

        def look(_: str, params: JsonObject) -> None:
            if "edit.undone" in str(params):
                undone.set()

        client.on_notification = look
        watch: JsonObject = {"partialResultToken": "t"}
        async with anyio.create_task_group() as group:
            group.start_soon(client.request, "agent/subscribe", watch)
            _ = await served.run(client, READ, EDIT)
            editor.unsaved[path] = SAVED
            _ = await served.run(client, READ, READ)
            with anyio.fail_after(5):
                await undone.wait()
            group.cancel_scope.cancel()


async def test_the_mirror_of_an_lsp_client_wins(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor()
    editor.unsaved[path] = UNSAVED
    async with serving(ground) as served:
        client = await served.client(editor)
        window = await served.client(None)
        document: JsonObject = {
            "uri": path.as_uri(),
            "languageId": "plaintext",
            "version": 1,
            "text": "of the window\n",
        }
        window.notify("textDocument/didOpen", {"textDocument": document})
        _ = await window.request("agent/status", {})
        (read,) = await served.run(client, READ)
        window.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
        _ = await window.request("agent/status", {})
        (later,) = await served.run(client, READ)
    assert "of the window" in read
    assert "three, unsaved" in later
    assert editor.count("read") > 0


async def test_of_two_clients_the_one_with_unsaved_text_has_the_file(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    first, second = FileEditor(), FileEditor()
    second.unsaved[path] = UNSAVED
    async with serving(ground) as served:
        client = await served.client(first, name="one")
        _ = await served.client(second, name="two")
        read, _ = await served.run(client, READ, EDIT)
        assert "three, unsaved" in read
        assert (first.count("write"), second.count("write")) == (0, 1)
        assert path.read_text() == UNSAVED.replace("two", "2")
        first.unsaved[path], second.unsaved[path] = "mine\n", "thine\n"
        again = ("edit", {"path": "a.txt", "edits": [{"oldText": "ine", "newText": "INE"}]})
        _, edited = await served.run(client, READ, again)
    assert "has unsaved text in" in edited
    assert "at once: nothing was written" in edited
    assert (first.unsaved[path], second.unsaved[path]) == ("mine\n", "thine\n")


async def test_a_client_that_fails_thrice_is_not_asked_again(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    _ = ground.file("a.txt", SAVED)
    editor = FileEditor()

    async def refuse(path: Path) -> JsonObject:
        raise REFUSED

    editor.on_read = refuse
    with caplog.at_level(logging.WARNING):
        async with serving(ground) as served:
            client = await served.client(editor)
            texts = await served.run(client, *[READ] * 5, EDIT)
    assert all("three" in one for one in texts[:5])
    assert (ground.root / "a.txt").read_text() == EDITED
    assert (editor.count("read"), editor.count("write")) == (GIVEN_UP, 0)
    assert caplog.text.count("is not asked for files any more") == 1


async def test_a_client_that_never_answers_costs_a_bounded_time(ground: Ground) -> None:
    _ = ground.file("a.txt", SAVED)
    editor = FileEditor()

    async def wait(path: Path) -> JsonObject:
        _ = path
        await anyio.sleep_forever()
        return {}

    editor.on_read = wait
    async with serving(ground) as served:
        client = await served.client(editor)
        with anyio.fail_after(15):
            texts = await served.run(client, *[READ] * 5)
    assert all("three" in one for one in texts)
    assert editor.count("read") == GIVEN_UP


async def test_a_client_that_dies_during_a_write_leaves_a_clear_answer(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    editor = FileEditor()
    async with serving(ground) as served:
        client = await served.client(None)
        _ = await served.client(editor)

        async def die(path: Path, text: str) -> JsonObject:
            _ = path, text
            served.apps[-1].connection.close()
            await anyio.sleep_forever()
            return {}

        editor.on_write = die
        _, edited, read = await served.run(client, READ, EDIT, READ)
    assert "It is not known whether the edit" in edited
    assert "three" in read
    assert path.read_text() == SAVED


@pytest.mark.parametrize("answer", [{}, {"text": 5}, {"missing": "yes"}], ids=str)
async def test_an_answer_that_cannot_be_read_counts_as_none(
    ground: Ground, answer: JsonObject
) -> None:
    _ = ground.file("a.txt", SAVED)
    editor = FileEditor()

    async def odd(path: Path) -> JsonObject:
        _ = path
        return answer

    editor.on_read = odd
    async with serving(ground) as served:
        client = await served.client(editor)
        (text,) = await served.run(client, READ)
    assert "three" in text


async def test_a_file_outside_and_a_binary_file_are_not_asked_for(ground: Ground) -> None:
    _ = (ground.root / "b.bin").write_bytes(b"\0\1\2")
    secret = ground.root.parent / "secret.txt"
    _ = secret.write_text("secret\n")
    editor = FileEditor()
    async with serving(ground) as served:
        client = await served.client(editor)
        _ = await served.run(client, ("read", {"path": "b.bin"}), ("read", {"path": str(secret)}))
    assert editor.asked == []


async def test_a_client_without_files_is_never_asked(ground: Ground) -> None:
    path = ground.file("a.txt", SAVED)
    async with serving(ground) as served:
        client = await served.client(None)
        _ = await served.run(client, READ, EDIT)
    assert path.read_text() == EDITED


def _array(value: object) -> Sequence[Any]:
    assert isinstance(value, list)
    return value
