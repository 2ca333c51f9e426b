"""The way to the chat file: an edit is for the document that was looked at, and for no other."""

from pathlib import Path

import pytest

from tests.support.clients.editors import Window, settled
from tests.support.lsp.lsp_profiles import NEOVIM_0_11
from tiller_server.lsp.overlay.scratch_file import Reopened, ScratchFile

DISK = "## You\n\ntell me\n"
ANSWERED = "## You\n\ntell me\n\n## Tiller\n\none\n"


async def test_an_edit_of_what_was_unsaved_is_not_merged_into_what_is_opened_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "chat.md"
    path.write_text(DISK)
    window = Window(NEOVIM_0_11)
    place = ScratchFile(path, root=tmp_path)
    place.files.attach(window.editor)
    document = window.desk.open(path.as_uri(), ANSWERED)
    await settled(window)
    seen = await place.read()
    assert seen.base is not None
    assert seen.base.text == ANSWERED
    window.desk.close(document.uri)
    document = window.desk.open_file(path, language="markdown")
    await settled(window)
    with pytest.raises(Reopened, match="meanwhile"):
        await place.write(f"{ANSWERED}two\n", seen=seen)
    assert window.edits_asked() == []
    assert path.read_text() == DISK
    seen = await place.read()
    await place.write(f"{DISK}\n## Tiller\n\none\ntwo\n", seen=seen)
    await settled(window)
    assert window.desk.documents[path.as_uri()].text.endswith("one\ntwo\n")
