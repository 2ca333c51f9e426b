"""What is read while editors are attached: unsaved text first, and nothing from outside the workspace."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import (
    EditRefused,
    FileMissing,
    PathRefused,
)
from agent_core.workspace import FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.clients.editors import OLD, Place, Window, hash_of, settled
from tests.support.lsp.lsp_profiles import NEOVIM_0_11
from tiller_server.lsp.edits.document_writer import NEW, NEWER_ON_DISK


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


async def test_the_editor_with_unsaved_text_counts(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    other = Window()
    other.desk.open_file(place.path)
    place.files.attach(other.editor)
    await settled(other)
    assert (await place.read()).text == "typed\n"
    _ = await place.write("edited\n")
    assert (place.text, other.edits_asked()) == ("edited\n", [])


async def test_two_editors_with_different_unsaved_text_are_left_alone(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    other = Window(NEOVIM_0_11)
    other.desk.open(place.uri, "typed elsewhere\n")
    place.files.attach(other.editor)
    await settled(other)
    told = await place.refusal(EditRefused)
    assert "DocumentContention" in told
    assert "Neovim" in told
    assert "Visual Studio Code" in told


async def test_an_editor_that_left_does_not_count(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    await settled(place.window)
    place.files.detach(place.window.editor)
    place.files.detach(place.window.editor)
    assert (await place.files.read(place.path)) == replace(
        await DiskFiles((place.root,), place.root).read(place.path)
    )
