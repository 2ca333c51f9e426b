"""Several documents in one edit, where the editor applies it whole or not at all; elsewhere one after the other."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest
from typing_extensions import override

from agent_core.kernel.errors import (
    EditConflicted,
    EditRefused,
    EditUnverified,
    StaleText,
    WorkspaceError,
)
from agent_core.workspace import FileText, FileWrite, WriteResult
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.clients.editors import Window, settled
from tests.support.lsp.lsp_behaviours import (
    EditBehaviour,
    Held,
    Honest,
    NeverAnswers,
    PartlyApplies,
    Refuses,
    RefusesStaleVersions,
)
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor as Desk, Json, operations
from tests.support.lsp.lsp_profiles import HELIX, MINIMAL, NEOVIM_0_11, PANEL, VSCODE, Profile
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

NAMES = ("a.py", "b.py", "c.py")
OLD = "one\ntwo\nthree\n"
NEW = "one\n2\nthree\n"


class Desks:
    """Three open files in one editor."""

    def __init__(self, root: Path, window: Window) -> None:
        self.root = root
        self.window = window
        self.files = OverlayFiles(DiskFiles((root,), root.parent))
        self.files.attach(window.editor)
        self.ends: dict[str, WriteResult | WorkspaceError] = {}

    @classmethod
    def make(cls, tmp_path: Path, window: Window, *, open_: Sequence[str] = NAMES) -> "Desks":
        root = Path(os.path.realpath(tmp_path)) / "ws"
        root.mkdir()
        for name in NAMES:
            (root / name).write_bytes(OLD.encode())
            if name in open_:
                window.desk.open_file(root / name)
        return cls(root, window)

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def text(self, name: str) -> str:
        document = self.window.desk.documents.get(self.uri(name))
        return (self.root / name).read_text() if document is None else document.text

    @property
    def texts(self) -> list[str]:
        return [self.text(name) for name in NAMES]

    @property
    def asked(self) -> list[list[str]]:
        """The documents of each edit that was asked for."""
        return [
            [Path(step.uri).name for step in operations(one["edit"])]
            for one in self.window.edits_asked()
        ]

    @property
    def told(self) -> list[str]:
        """What became of each, in the order of the names."""
        return [type(self.ends[name]).__name__ for name in NAMES if name in self.ends]

    async def read(self, name: str) -> FileText:
        await settled(self.window)
        read = await self.files.read(self.root / name)
        assert isinstance(read, FileText)
        return read

    async def writes(self, text: str = NEW) -> list[FileWrite]:
        return [
            FileWrite(path=self.root / name, text=text, base=await self.read(name))
            for name in NAMES
        ]

    async def write(self, writes: Sequence[FileWrite] | None = None) -> None:
        await self.files.write_all(writes or await self.writes(), on_result=self.hear)

    async def hear(self, one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
        assert one.path.name not in self.ends
        self.ends[one.path.name] = outcome
        await anyio.lowlevel.checkpoint()


class Once:
    """Something that the user does when the first edit arrives; then the editor is as it is."""

    def __init__(self, do: Callable[[], object], then: EditBehaviour) -> None:
        self._todo = [do]
        self._then = then

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        while self._todo:
            _ = self._todo.pop()()
        self._then(editor, params, reply)


async def test_three_documents_are_one_edit_in_vs_code(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE))
    await desks.write()
    assert desks.texts == [NEW] * 3
    assert desks.told == ["WriteResult"] * 3
    (one,) = desks.window.edits_asked()
    assert (one["label"], one["metadata"]) == ("Tiller: edit 3 files", {"isRefactoring": True})
    steps = operations(one["edit"])
    assert sorted((Path(step.uri).name, step.version) for step in steps) == [
        ("a.py", 1), ("b.py", 1), ("c.py", 1),
    ]  # fmt: skip
    ends = [desks.ends[name] for name in NAMES]
    assert [one.source for one in ends if isinstance(one, WriteResult)] == ["buffer"] * 3


async def test_an_edit_is_called_a_refactoring_only_if_nothing_was_unsaved(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE))
    desks.window.desk.change(desks.uri("b.py"), f"mine\n{OLD}")
    await desks.write()
    (one,) = desks.window.edits_asked()
    assert "metadata" not in one
    assert desks.told == ["WriteResult"] * 3


class Saves(RefusesStaleVersions):
    """Saves what calls itself a refactoring, before it answers."""

    @override
    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        def answer(message: Json) -> None:
            if params.get("metadata") == {"isRefactoring": True}:
                for step in operations(params["edit"]):
                    editor.save(step.uri)
            reply._send(message)

        super().__call__(editor, params, Reply(reply.request, answer))


async def test_what_the_editor_saves_with_the_edit_is_told_as_saved(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE, edits=Saves(reason=None)))
    await desks.write()
    ends = [desks.ends[name] for name in NAMES]
    assert [(one.saved, one.note) for one in ends if isinstance(one, WriteResult)] == [
        (True, None)
    ] * 3
    assert [(desks.root / name).read_text() for name in NAMES] == [NEW] * 3


async def test_of_a_stale_document_the_others_land_together_and_it_is_rebased(
    tmp_path: Path,
) -> None:
    def types() -> None:
        desks.window.desk.change(desks.uri("b.py"), f"mine\n{OLD}")

    edits = Once(types, RefusesStaleVersions(reason=None))
    desks = Desks.make(tmp_path, Window(VSCODE, edits=edits))
    await desks.write()
    assert desks.texts == [NEW, f"mine\n{NEW}", NEW]
    assert desks.told == ["WriteResult"] * 3
    end = desks.ends["b.py"]
    assert isinstance(end, WriteResult)
    assert end.changed_by_user
    first, second, third = desks.asked
    assert (sorted(first), sorted(second), third) == ([*NAMES], ["a.py", "c.py"], ["b.py"])


async def test_the_user_changed_the_same_lines_of_one_and_the_others_land(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE))
    writes = await desks.writes()
    desks.window.desk.change(desks.uri("b.py"), OLD.replace("two", "zwei"))
    await desks.write(writes)
    assert desks.texts == [NEW, OLD.replace("two", "zwei"), NEW]
    assert isinstance(desks.ends["b.py"], EditConflicted)
    assert [sorted(one) for one in desks.asked] == [["a.py", "c.py"]]


@pytest.mark.parametrize("profile", [NEOVIM_0_11, HELIX], ids=lambda one: one.name)
async def test_elsewhere_each_document_is_an_edit_of_its_own(
    tmp_path: Path, profile: Profile
) -> None:
    desks = Desks.make(tmp_path, Window(profile))
    await desks.write()
    assert desks.asked == [["a.py"], ["b.py"], ["c.py"]]
    assert all("metadata" not in one for one in desks.window.edits_asked())
    assert desks.texts == [NEW] * 3


async def test_a_user_may_say_that_vs_code_does_not_keep_edits_whole(tmp_path: Path) -> None:
    options = {"quirks": {"multiDocEdit": False}}
    desks = Desks.make(tmp_path, Window(VSCODE, options=options))
    await desks.write()
    assert desks.asked == [["a.py"], ["b.py"], ["c.py"]]


async def test_an_editor_that_tells_of_each_document_is_believed_of_each(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(PANEL))
    todo = [f"mine\n{OLD}"]

    def types() -> None:
        if todo:
            _ = desks.window.desk.change(desks.uri("b.py"), todo.pop())

    desks.window.when_asked = types
    await desks.write()
    asked = [one for one in desks.window.asked if one[0] == "agent/edit/apply"]
    assert [len(params["pre"]) for _, params in asked] == [3, 1]
    assert desks.texts == [NEW, f"mine\n{NEW}", NEW]
    assert desks.told == ["WriteResult"] * 3


async def test_a_refusal_with_a_reason_is_one_for_all_and_nothing_is_asked_again(
    tmp_path: Path,
) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE, edits=Refuses()))
    await desks.write()
    assert desks.told == ["EditRefused"] * 3
    assert "the user said no" in str(desks.ends["a.py"])
    assert (len(desks.asked), desks.texts) == (1, [OLD] * 3)


class RefusesOne:
    """Refuses every edit with a certain document, for no reason that it tells."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        if any(step.uri.endswith(self._name) for step in operations(params["edit"])):
            reply({"applied": False})
        else:
            Honest()(editor, params, reply)


async def test_whose_fault_a_refusal_is_is_found_by_asking_for_each(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE, edits=RefusesOne("b.py")))
    await desks.write()
    assert desks.told == ["WriteResult", "EditRefused", "WriteResult"]
    assert desks.texts == [NEW, OLD, NEW]
    assert [len(one) for one in desks.asked] == [3, 1, 1, 1]


async def test_silence_is_unverified_for_each_and_nothing_is_sent_again(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE, edits=NeverAnswers()))
    await desks.write()
    assert desks.told == ["EditUnverified"] * 3
    assert len(desks.asked) == 1
    writes = [FileWrite(path=desks.root / name, text=NEW, base=None) for name in NAMES]
    desks.ends.clear()
    await desks.write(writes)
    assert all(isinstance(one, StaleText | EditUnverified) for one in desks.ends.values())
    assert len(desks.asked) == 1


@pytest.mark.parametrize("claims", ["failed", "applied"])
async def test_what_landed_of_a_broken_promise_is_not_sent_twice(
    tmp_path: Path, claims: str
) -> None:
    edits = PartlyApplies(claims="applied" if claims == "applied" else "failed")
    desks = Desks.make(tmp_path, Window(VSCODE, edits=edits))
    await desks.write(await desks.writes("one\ntwo\nthree\nfour\n"))
    landed = [name for name in NAMES if desks.text(name) != OLD]
    assert landed
    for name in NAMES:
        assert desks.text(name) in {OLD, "one\ntwo\nthree\nfour\n"}
        assert isinstance(desks.ends[name], WriteResult) == (name in landed)


async def test_closed_new_and_repeated_files_go_their_own_way(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE), open_=["a.py", "b.py"])
    new = FileWrite(path=desks.root / "new.py", text="new\n", base=None)
    writes = await desks.writes()
    await desks.write([*writes, new])
    assert [sorted(one) for one in desks.asked] == [["a.py", "b.py"]]
    assert desks.texts == [NEW] * 3
    assert (desks.root / "c.py").read_text() == NEW
    assert (desks.root / "new.py").read_text() == "new\n"
    assert len(desks.ends) == 4


async def test_a_document_that_is_closed_on_the_way_goes_to_the_disk(tmp_path: Path) -> None:
    edits = Held(RefusesStaleVersions(reason=None))
    desks = Desks.make(tmp_path, Window(VSCODE, edits=edits))
    async with anyio.create_task_group() as group:
        group.start_soon(desks.write)
        with anyio.fail_after(5):
            while not edits.waiting:
                await anyio.lowlevel.checkpoint()
        desks.window.desk.close(desks.uri("c.py"))
        edits.release()
    assert desks.text("a.py") == desks.text("b.py") == NEW
    assert isinstance(desks.ends["c.py"], WriteResult | EditUnverified)


async def test_whoever_cancels_hears_of_what_was_sent(tmp_path: Path) -> None:
    edits = Held(RefusesStaleVersions(reason=None))
    desks = Desks.make(tmp_path, Window(VSCODE, edits=edits))
    writes = await desks.writes()
    heard: list[str] = []

    async def hear(one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
        assert isinstance(outcome, WriteResult)
        heard.append(one.path.name)

    async with anyio.create_task_group() as group:

        async def work() -> None:
            await desks.files.write_all(writes, on_result=hear)

        group.start_soon(work)
        with anyio.fail_after(5):
            while not edits.waiting:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
        edits.release()
    assert sorted(heard) == [*NAMES]
    assert desks.texts == [NEW] * 3


async def test_two_that_write_the_same_documents_do_not_wait_for_one_another(
    tmp_path: Path,
) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE))
    first = await desks.writes()
    second = [
        FileWrite(path=one.path, text=f"{OLD}end\n", base=one.base) for one in reversed(first)
    ]
    ends: list[WriteResult | WorkspaceError] = []

    async def hear(one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
        ends.append(outcome)

    async def work(writes: Sequence[FileWrite]) -> None:
        await desks.files.write_all(writes, on_result=hear)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(work, first)
            group.start_soon(work, second)
    assert all(isinstance(one, WriteResult) for one in ends)
    assert desks.texts == [f"{NEW}end\n"] * 3
    assert [len(one) for one in desks.asked] == [3, 3]


async def test_without_an_editor_that_edits_they_are_written_to_the_disk(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(MINIMAL))
    await desks.write()
    assert [(desks.root / name).read_text() for name in NAMES] == [NEW] * 3
    assert (desks.asked, desks.told) == ([], ["WriteResult"] * 3)


async def test_a_fault_of_whoever_hears_is_seen_as_it_is(tmp_path: Path) -> None:
    desks = Desks.make(tmp_path, Window(VSCODE))

    async def hear(one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
        raise EditRefused("full")

    with pytest.raises(EditRefused, match="full"):
        await desks.files.write_all(await desks.writes(), on_result=hear)
