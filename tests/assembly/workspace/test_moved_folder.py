"""A session whose folder is gone, and one that is opened in a folder that it was not made in."""

import json
import shutil
from pathlib import Path

import pytest

from agent_core.kernel.errors import WorkspaceMissing
from tests.support.session.folders import Folder, ask, handled


async def test_where_its_folder_is_gone_a_session_is_opened_in_another(
    folder: Folder, tmp_path: Path
) -> None:
    async with folder.open(hooks=handled()) as session:
        await ask(session, "remember me")
        made = session.id
    shutil.rmtree(folder.root)
    (path,) = folder.files
    before = path.read_bytes()
    with pytest.raises(WorkspaceMissing, match=repr(str(folder.root))):
        async with folder.open(session=made):
            pytest.fail("opened")
    assert path.read_bytes() == before
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with folder.open(session=made, workspace=elsewhere, hooks=handled()) as session:
        assert session.info.root == str(elsewhere)
        assert [node.preview for node in session.tree.nodes()] == ["remember me"]
        await ask(session, "and go on")
    assert json.loads(path.read_bytes().splitlines()[0])["cwd"] == str(folder.root)
    assert path.read_bytes().startswith(before)
