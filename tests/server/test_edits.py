"""Edits of open documents: what the model is told is what the editor has, however the editor behaves."""

import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import anyio
import pytest
from hypothesis import given, strategies as st

from agent_core.kernel.errors import (
    EditRefused,
    EditUnverified,
    FileMissing,
    PathRefused,
    StaleText,
)
from agent_core.workspace import FileText, Written
from agent_core.workspace.adapters.disk import DiskFiles
from agent_core.workspace.adapters.memory import MemoryFiles
from server.lsp.edits import DIRTY, NEW, NEWER_ON_DISK, OWN_ENDS, TYPED, UNSAVED, EditorFiles
from server.lsp.positions import Encoding
from tests.support.editors import FAST, Window, settled
from tests.support.lsp_behaviours import (
    AppliesOther,
    EditBehaviour,
    Held,
    Honest,
    NeverAnswers,
    PartlyApplies,
    Refuses,
    SaysAppliedButDidNothing,
)
from tests.support.lsp_connection import Reply
from tests.support.lsp_editor import Editor as Desk, Json, operations
from tests.support.lsp_profiles import EGLOT, HELIX, MINIMAL, NEOVIM_0_11, PANEL, VSCODE, Profile

OLD = "one\ntwo\nthree\nfour\nfive\n"
NEW_TEXT = "one\n2\nthree\nfour\n5\n"


def hash_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


class Place:
    """A workspace on the disk with one editor, and a document of it."""

    def __init__(self, root: Path, window: Window) -> None:
        self.root = root
        self.path = root / "a.py"
        self.uri = self.path.as_uri()
        self.window = window
        self.files = EditorFiles(DiskFiles((root,), root.parent))
        self.files.attach(window.editor)

    @classmethod
    def make(cls, tmp_path: Path, window: Window, *, text: str = OLD, typed: str = "") -> "Place":
        """Make one with the document open; what is typed is not saved."""
        root = Path(os.path.realpath(tmp_path)) / "ws"
        root.mkdir()
        place = cls(root, window)
        place.path.write_bytes(text.encode())
        window.desk.open_file(place.path)
        if typed:
            window.desk.change(place.uri, typed)
        return place

    @property
    def text(self) -> str:
        """What the user sees."""
        return self.window.desk.documents[self.uri].text

    @property
    def disk(self) -> str:
        return self.path.read_bytes().decode()

    async def read(self) -> FileText:
        await settled(self.window)
        read = await self.files.read(self.path)
        assert isinstance(read, FileText)
        return read

    async def write(self, text: str = NEW_TEXT, *, base: FileText | None = None) -> Written:
        return await self.files.write(self.path, text, base=base or await self.read())


# ---------------------------------------------------------------------- reading


async def test_unsaved_text_is_what_is_read(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    assert await place.read() == FileText(
        path=place.path,
        text="typed\n",
        source="buffer",
        sha256=hash_of("typed\n"),
        version=2,
        dirty=True,
    )


async def test_a_document_like_the_disk_is_not_dirty(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    read = await place.read()
    assert (read.text, read.source, read.version, read.dirty) == (OLD, "buffer", 1, False)
    place.window.desk.change(place.uri, "typed\n")
    place.window.desk.save(place.uri)
    assert (await place.read()).dirty is False


async def test_a_closed_document_is_read_from_the_disk(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    await settled(place.window)
    place.window.desk.close(place.uri)
    with anyio.fail_after(5):
        while place.window.mirror.documents():
            await anyio.lowlevel.checkpoint()
    read = await place.files.read(place.path)
    assert isinstance(read, FileText)
    assert (read.text, read.source, read.version) == (OLD, "disk", None)


async def test_a_document_opened_through_a_link_is_the_same_file(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    place.window.desk.close(place.uri)
    link = place.root / "link.py"
    link.symlink_to(place.path)
    place.window.desk.open(link.as_uri(), "typed through the link\n")
    await settled(place.window)
    read = await place.files.read(place.path)
    assert isinstance(read, FileText)
    assert (read.text, read.source) == ("typed through the link\n", "buffer")
    _ = await place.files.write(place.path, "edited\n", base=read)
    assert place.window.desk.documents[link.as_uri()].text == "edited\n"


async def test_a_file_that_is_only_in_the_editor_can_be_read_and_edited(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    path = place.root / "new.py"
    place.window.desk.open(path.as_uri(), "héllo\n")
    await settled(place.window)
    read = await place.files.read(path)
    assert isinstance(read, FileText)
    assert (read.text, read.dirty) == ("héllo\n", True)
    stat = await place.files.stat(path)
    assert (stat.kind, stat.size) == ("file", 7)
    written = await place.files.write(path, "bye\n", base=read)
    assert (written.saved, written.note, path.exists()) == (False, NEW, False)
    with pytest.raises(FileMissing):
        await place.files.stat(place.root / "none.py")


async def test_a_document_outside_of_the_workspace_stays_out_of_reach(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    outside = place.root.parent / "secret.py"
    place.window.desk.open(outside.as_uri(), "secret\n")
    await settled(place.window)
    base = FileText(path=outside, text="secret\n", source="buffer", sha256=hash_of("secret\n"))
    for ask in (
        place.files.read(outside),
        place.files.stat(outside),
        place.files.write(outside, "x", base=base),
    ):
        with pytest.raises(PathRefused):
            _ = await ask
    assert place.window.edits_asked() == []


async def test_what_changed_on_the_disk_below_a_saved_document_is_seen(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(NEOVIM_0_11))
    _ = await place.read()
    place.path.write_text("formatted\n")
    read = await place.read()
    assert (read.text, read.source) == ("formatted\n", "disk")
    written = await place.write("edited\n", base=read)
    assert (written.source, written.saved, written.note) == ("disk", True, NEWER_ON_DISK)
    assert (place.disk, place.text) == ("edited\n", OLD)
    place.window.desk.change(place.uri, "typed\n")
    assert (await place.read()).text == "typed\n"


# ---------------------------------------------------------------------- an edit that lands


@pytest.mark.parametrize("first", ["changes", "response"])
async def test_an_edit_is_verified_whichever_comes_first(tmp_path: Path, first) -> None:
    place = Place.make(tmp_path, Window(edits=Honest(first=first)))
    written = await place.write()
    assert written == Written(
        path=place.path,
        sha256=hash_of(NEW_TEXT),
        source="buffer",
        saved=False,
        created=False,
        version=2,
        note=UNSAVED,
    )
    assert (place.text, place.disk) == (NEW_TEXT, OLD)


@pytest.mark.parametrize(
    "profile", [VSCODE, NEOVIM_0_11, HELIX, EGLOT, PANEL], ids=lambda one: one.name
)
async def test_an_edit_is_small_and_names_the_exact_version(
    tmp_path: Path, profile: Profile
) -> None:
    place = Place.make(tmp_path, Window(profile))
    _ = await place.write()
    (params,) = place.window.edits_asked()
    assert params["label"] == "Tiller: edit a.py"
    (step,) = operations(params["edit"])
    assert (step.uri, step.version) == (place.uri, 1)
    assert [one["newText"] for one in step.edits] == ["2", "5"]
    assert place.text == NEW_TEXT


async def test_an_editor_without_versions_gets_the_plain_form(tmp_path: Path) -> None:
    bare = replace(MINIMAL, capabilities={"workspace": {"applyEdit": True}})
    place = Place.make(tmp_path, Window(bare))
    _ = await place.write()
    (params,) = place.window.edits_asked()
    assert list(params["edit"]) == ["changes"]
    assert place.text == NEW_TEXT


async def test_text_that_is_there_already_needs_no_edit(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    written = await place.write(OLD)
    assert (written.saved, written.note, place.window.asked) == (True, None, [])


async def test_edits_follow_one_another(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(NEOVIM_0_11))
    for count in range(3):
        written = await place.write(f"{OLD}{count}\n")
        assert (written.version, written.note) == (2 + count, UNSAVED)
    assert place.text == f"{OLD}2\n"


async def test_crlf_stays_crlf(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), text="one\r\ntwo\r\n")
    _ = await place.write("one\r\nnew\r\ntwo\r\n")
    assert place.text == "one\r\nnew\r\ntwo\r\n"


async def test_what_the_user_typed_meanwhile_is_kept_and_told(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(edits=AppliesOther()))
    written = await place.write()
    assert place.text == f"# typed by the user\n{NEW_TEXT}"
    assert (written.changed_by_user, written.note) == (True, f"{UNSAVED} {TYPED}")
    assert written.sha256 == hash_of(place.text)


async def test_an_answer_that_never_comes_does_not_hide_what_landed(tmp_path: Path) -> None:
    def silent(editor: Desk, params: Json, reply: Reply) -> None:
        Honest()(editor, params, Reply(reply.request, lambda _: None))

    place = Place.make(tmp_path, Window(edits=silent))
    assert (await place.write()).sha256 == hash_of(NEW_TEXT)
    assert place.window.withdrawn == ["workspace/applyEdit"]


async def test_an_editor_that_keeps_its_final_newline_has_applied_the_edit(tmp_path: Path) -> None:
    def adds_newline(editor: Desk, params: Json, reply: Reply) -> None:
        (step,) = operations(params["edit"])
        editor.stage(step.uri, step.edits)
        text = f"{editor.documents[step.uri].text}\n"
        editor.publish(step.uri, editor.stage(step.uri, text))
        reply({"applied": True})

    place = Place.make(tmp_path, Window(edits=adds_newline))
    written = await place.write("one\ntwo")
    assert written.sha256 == hash_of("one\ntwo\n")
    assert (written.changed_by_user, written.note) == (False, f"{UNSAVED} {OWN_ENDS}")


# ---------------------------------------------------------------------- an edit that does not land


class Says:
    """Does nothing and gives this answer."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        reply(self._answer)


async def refusal(place: Place, kind: type[Exception], text: str = NEW_TEXT) -> str:
    with pytest.raises(kind) as caught:
        _ = await place.write(text)
    return str(caught.value)


async def test_applied_without_a_change_is_not_believed(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(edits=SaysAppliedButDidNothing()))
    told = await refusal(place, StaleText)
    assert "said it applied the edit" in told
    assert "did not change" in told
    assert place.text == OLD


@pytest.mark.parametrize("reason", ["the user said no", None])
async def test_a_refusal_is_told_with_its_reason(tmp_path: Path, reason: str | None) -> None:
    place = Place.make(tmp_path, Window(edits=Refuses(reason=reason)))
    told = await refusal(place, EditRefused)
    assert (reason or "it gave no reason") in told
    assert place.text == OLD


@pytest.mark.parametrize("profile", [VSCODE, HELIX, EGLOT, NEOVIM_0_11], ids=lambda one: one.name)
async def test_user_text_that_came_first_is_never_lost(tmp_path: Path, profile: Profile) -> None:
    held = Held(profile.edits())
    place = Place.make(tmp_path, Window(profile, edits=held))
    base = await place.read()
    told: list[str] = []

    async def write() -> None:
        with pytest.raises(StaleText) as caught:
            _ = await place.write(base=base)
        told.append(str(caught.value))

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        with anyio.fail_after(5):
            while not held.waiting:
                await anyio.lowlevel.checkpoint()
        place.window.desk.change(place.uri, f"typed\n{OLD}")
        held.release()
    assert place.text == f"typed\n{OLD}"
    assert "nothing of the edit is in it" in told[0]


@pytest.mark.parametrize("claims", ["applied", "failed"])
async def test_a_part_that_landed_is_named(tmp_path: Path, claims) -> None:
    place = Place.make(tmp_path, Window(edits=PartlyApplies(edits=1, claims=claims)))
    told = await refusal(place, EditUnverified)
    assert "there: line 2; missing: line 5" in told
    assert place.text == "one\n2\nthree\nfour\nfive\n"


async def test_an_edit_that_got_lost_freezes_the_document_until_it_is_read(tmp_path: Path) -> None:
    silent = NeverAnswers()
    place = Place.make(tmp_path, Window(edits=silent))
    base = await place.read()
    with pytest.raises(EditUnverified, match=r"did not answer within 0\.3 s"):
        _ = await place.write(base=base)
    place.window.edits = Honest()
    with pytest.raises(EditUnverified, match="not verified and may still come"):
        _ = await place.write(base=base)
    assert len(place.window.edits_asked()) == 1
    assert (await place.write(base=await place.read())).sha256 == hash_of(NEW_TEXT)


async def test_a_change_of_the_user_also_ends_the_freeze(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(edits=NeverAnswers()))
    base = await place.read()
    with pytest.raises(EditUnverified):
        _ = await place.write(base=base)
    place.window.desk.change(place.uri, "typed\n")
    await settled(place.window)
    with pytest.raises(StaleText):
        _ = await place.write(base=base)


async def test_a_document_that_is_closed_meanwhile_is_unverified(tmp_path: Path) -> None:
    def closes(editor: Desk, params: Json, reply: Reply) -> None:
        assert params
        editor.close(place.uri)
        reply({"applied": True})

    place = Place.make(tmp_path, Window(edits=closes))
    assert "was closed in the editor" in await refusal(place, EditUnverified)


async def test_garbage_for_an_answer_is_no_success(tmp_path: Path) -> None:
    for answer in (None, [], "yes", {"applied": "true"}, {"applied": 1, "failureReason": 7}):
        (tmp_path / str(answer)).mkdir()
        window = Window(edits=Says(answer))
        place = Place.make(tmp_path / str(answer), window)
        assert "refused the edit" in await refusal(place, EditRefused)


async def test_a_cancelled_write_still_learns_what_came_of_it(tmp_path: Path) -> None:
    held = Held()
    place = Place.make(tmp_path, Window(edits=held))
    base = await place.read()
    got: list[Written] = []

    async def write() -> None:
        got.append(await place.files.write(place.path, NEW_TEXT, base=base))

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        with anyio.fail_after(5):
            while not held.waiting:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
        held.release()
    assert [one.sha256 for one in got] == [hash_of(NEW_TEXT)]
    assert place.text == NEW_TEXT


# ---------------------------------------------------------------------- what an edit was made for


async def test_a_text_that_changed_since_it_was_read_is_kept(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    place.window.desk.change(place.uri, "typed\n")
    await settled(place.window)
    with pytest.raises(StaleText, match="changed in the editor since it was read"):
        _ = await place.write(base=base)
    assert (place.text, place.window.asked) == ("typed\n", [])


async def test_what_was_read_from_the_disk_is_good_for_the_same_text_in_an_editor(
    tmp_path: Path,
) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    from_disk = replace(base, source="disk", version=None)
    assert (await place.write(base=from_disk)).source == "buffer"


async def test_what_was_read_from_an_editor_is_good_for_the_same_text_on_the_disk(
    tmp_path: Path,
) -> None:
    place = Place.make(tmp_path, Window(), text="\ufeffone\n")
    base = replace(await place.read(), text="one\n", sha256=hash_of("one\n"))
    place.files.detach(place.window.editor)
    assert (await place.write("two\n", base=base)).source == "disk"
    assert place.disk == "\ufefftwo\n"
    with pytest.raises(StaleText):
        _ = await place.write("three\n", base=base)


async def test_a_new_file_cannot_replace_an_open_document(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    await settled(place.window)
    with pytest.raises(StaleText, match="open in the editor"):
        _ = await place.files.write(place.path, "x", base=None)


async def test_of_two_writers_with_one_base_one_wins(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    ended: list[str] = []

    async def write(text: str) -> None:
        try:
            _ = await place.write(text, base=base)
        except StaleText:
            ended.append("stale")
        else:
            ended.append(text)

    async with anyio.create_task_group() as group:
        for text in ("a\n", "b\n", "c\n"):
            group.start_soon(write, text)
    assert sorted(ended)[1:] == ["stale", "stale"]
    assert place.text == min(ended)
    assert len(place.window.edits_asked()) == 1


async def test_the_edit_waits_for_a_pause_in_the_typing_but_not_for_ever(tmp_path: Path) -> None:
    patient = replace(FAST, pause_s=30.0, patience_s=0.2)
    place = Place.make(tmp_path, Window(timing=patient), typed="typed\n")
    base = await place.read()
    started = anyio.current_time()
    _ = await place.write(base=base)
    assert 0.1 < anyio.current_time() - started < 5
    # Our own edit is no typing.
    with anyio.fail_after(0.15):
        _ = await place.write("again\n")


# ---------------------------------------------------------------------- disk and editor


async def test_what_a_formatter_does_on_saving_is_told(tmp_path: Path) -> None:
    window = Window(PANEL)
    place = Place.make(tmp_path, window)
    save = window.handlers["agent/documents/save"]

    def formats(params, reply) -> None:
        window.desk.change(place.uri, f"# formatted\n{place.text}")
        params = {"items": [{"uri": place.uri}]}
        save(params, reply)

    window.handlers["agent/documents/save"] = formats
    written = await place.write()
    assert (written.saved, written.changed_by_user, written.note) == (True, True, TYPED)
    assert written.sha256 == hash_of(place.disk) == hash_of(f"# formatted\n{NEW_TEXT}")


async def test_an_edit_is_saved_where_the_editor_can(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(PANEL))
    written = await place.write()
    assert (written.saved, written.note, written.source) == (True, None, "buffer")
    assert place.disk == NEW_TEXT
    assert (await place.write("again\n")).saved is True


async def test_what_the_user_has_not_saved_is_not_saved_for_them(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(PANEL), typed=f"typed\n{OLD}")
    written = await place.write(f"typed\n{NEW_TEXT}")
    assert (written.saved, written.note) == (False, DIRTY)
    assert [method for method, _ in place.window.asked] == ["workspace/applyEdit"]
    assert place.disk == OLD


async def test_a_save_that_did_not_happen_is_told(tmp_path: Path) -> None:
    window = Window(PANEL)
    place = Place.make(tmp_path, window)
    uri = place.uri
    window.handlers["agent/documents/save"] = lambda _, reply: reply(
        {"results": [{"uri": uri, "saved": False, "why": "read-only"}]}
    )
    written = await place.write()
    assert (written.saved, written.note) == (False, f"{UNSAVED} It could not be saved: read-only.")
    window.handlers["agent/documents/save"] = lambda _, reply: reply(
        {"results": [{"uri": uri, "saved": True}]}
    )
    assert (await place.write("again\n")).saved is False


async def test_an_editor_that_takes_no_edits_has_them_on_the_disk_when_nothing_is_unsaved(
    tmp_path: Path,
) -> None:
    place = Place.make(tmp_path, Window(MINIMAL))
    written = await place.write()
    assert (written.source, written.saved, written.note) == ("disk", True, NEWER_ON_DISK)
    assert (place.disk, place.text) == (NEW_TEXT, OLD)
    again = await place.read()
    assert (again.text, again.source) == (NEW_TEXT, "disk")


async def test_unsaved_text_of_an_editor_that_takes_no_edits_is_left_alone(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(MINIMAL), typed="typed\n")
    assert "unsaved edits" in await refusal(place, EditRefused)
    assert (place.disk, place.text) == (OLD, "typed\n")


async def test_a_user_may_prefer_the_disk_for_what_is_saved(tmp_path: Path) -> None:
    window = Window(NEOVIM_0_11, options={"edit": {"openClean": "disk"}})
    place = Place.make(tmp_path, window)
    assert (await place.write()).source == "disk"
    assert place.window.asked == []


# ---------------------------------------------------------------------- several editors


async def test_the_editor_with_unsaved_text_counts(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    other = Window()
    other.desk.open_file(place.path)
    place.files.attach(other.editor)
    await settled(other)
    assert (await place.read()).text == "typed\n"
    assert await place.files.editor_of(place.path) is place.window.editor


async def test_two_editors_with_different_unsaved_text_are_left_alone(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    other = Window(NEOVIM_0_11)
    other.desk.open(place.uri, "typed elsewhere\n")
    place.files.attach(other.editor)
    await settled(other)
    told = await refusal(place, EditRefused)
    assert "DocumentContention" in told
    assert "Neovim" in told
    assert "Visual Studio Code" in told


async def test_an_editor_that_left_does_not_count(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    await settled(place.window)
    place.files.detach(place.window.editor)
    place.files.detach(place.window.editor)
    assert await place.files.editor_of(place.path) is None
    assert (await place.files.read(place.path)) == replace(
        await DiskFiles((place.root,), place.root).read(place.path)
    )


# ---------------------------------------------------------------------- any text

TEXTS = st.text(alphabet=st.sampled_from("ab \n\r\u00e9\u20ac\U0001f600\u2028"), max_size=40)


@given(
    old=TEXTS,
    new=TEXTS,
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-32"]),
    behaviour=st.sampled_from([Honest(), Honest(first="response")]),
)
async def test_any_text_becomes_any_other_on_the_editors_side(
    old: str, new: str, encoding: Encoding, behaviour: EditBehaviour
) -> None:
    root = Path("/no/such/ws")
    files = EditorFiles(MemoryFiles((root,), Path("/no/such"), files={root / "a.py": b""}))
    window = Window(edits=behaviour, encoding=encoding)
    files.attach(window.editor)
    uri = (root / "a.py").as_uri()
    window.desk.open(uri, old)
    await settled(window)
    base = await files.read(root / "a.py")
    assert isinstance(base, FileText)
    written = await files.write(root / "a.py", new, base=base)
    assert window.desk.documents[uri].text == new
    assert written.sha256 == hash_of(new)
    assert window.desk.complaints == []
