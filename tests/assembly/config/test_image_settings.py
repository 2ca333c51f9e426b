"""What the settings of images and the model's eyes let through to the provider: seen on the wire."""

import base64
import json
import random
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pillow

from agent_core import create_session
from agent_core.kernel.errors import ImagesUnsupported
from agent_core.messages import Image, Text, ToolResultMessage
from agent_core.session import AgentSession
from agent_core.storage.adapters.attachments import Attachments
from agent_core.storage.adapters.paths import attachments_folder
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder, ask

BLOCKED = "[Image not shown: the setting images.blockImages keeps images from models.]"
SEES = {"input": ["text", "image"], "contextWindow": 2_000_000}
"""Large: the provider of tests counts a picture as text."""
BLIND = {"input": ["text"]}


def _noise(side: int) -> bytes:
    chance = random.Random(side)  # noqa: S311 - a test, the same each time
    target = BytesIO()
    Pillow.frombytes("RGB", (side, side), chance.randbytes(side * side * 3)).save(target, "PNG")
    return target.getvalue()


class Ground:
    """A workspace with one picture, and a provider that asks for it."""

    def __init__(self, folder: Folder, lab: LoopbackProvider) -> None:
        self.folder = folder
        self.lab = lab

    def configure(self, model: dict[str, Any], **settings: Any) -> None:
        write_config(self.folder.dirs.config, self.lab, model=model, settings=settings)

    async def look(self, session: str = "new") -> tuple[ToolResultMessage, str]:
        """Let a new process's session read the picture; gives the result, and the last request."""
        call = {"name": "read", "arguments": {"path": "a.png"}}
        self.lab.script([{"tool_calls": [call]}, {"text": "seen"}])
        async with create_session(
            trusted=True, workspace=self.folder.root, env=self.folder.env, session=session
        ) as opened:
            await ask(opened)
            return _result(opened), json.dumps(self.lab.requests[-1]["body"])


def _result(session: AgentSession) -> ToolResultMessage:
    return [one for one in session.info.messages if isinstance(one, ToolResultMessage)][-1]


def _picture(result: ToolResultMessage) -> Image | None:
    return next((part for part in result.content if isinstance(part, Image)), None)


@pytest.fixture
def ground(folder: Folder, lab: LoopbackProvider) -> Ground:
    folder.root.joinpath("a.png").write_bytes(_noise(20))
    return Ground(folder, lab)


async def test_a_model_with_eyes_gets_the_picture(ground: Ground) -> None:
    ground.configure(SEES)
    _, asked = await ground.look()
    assert base64.b64encode(_noise(20)).decode() in asked


async def test_blocked_images_are_not_sent_and_the_model_is_told(ground: Ground) -> None:
    ground.configure(SEES, images={"blockImages": True})
    result, asked = await ground.look()
    assert _picture(result) is None
    assert BLOCKED in asked
    assert "base64" not in asked


async def test_the_setting_holds_after_a_restart(ground: Ground) -> None:
    ground.configure(SEES, images={"blockImages": True})
    await ground.look()
    result, asked = await ground.look(session="latest")
    assert _picture(result) is None
    assert asked.count(BLOCKED) == 2


async def test_a_picture_of_an_earlier_run_is_not_sent_once_images_are_blocked(
    ground: Ground,
) -> None:
    ground.configure(SEES)
    await ground.look()
    ground.configure(SEES, images={"blockImages": True})
    _, asked = await ground.look(session="latest")
    assert base64.b64encode(_noise(20)).decode() not in asked
    assert "(tool image omitted: model does not support images)" in asked


async def test_a_model_without_eyes_is_sent_words(ground: Ground) -> None:
    ground.configure(BLIND)
    result, asked = await ground.look()
    assert _picture(result) is not None
    assert "(tool image omitted: model does not support images)" in asked
    assert base64.b64encode(_noise(20)).decode() not in asked


async def test_a_picture_is_made_to_fit_the_size_that_is_set(ground: Ground) -> None:
    large = _noise(830)
    assert len(large) > 2_000_000
    ground.folder.root.joinpath("a.png").write_bytes(large)
    ground.configure(SEES, images={"maxBytes": 1_000_000})
    result, asked = await ground.look()
    shown = _picture(result)
    assert shown is not None
    assert shown.blob is not None
    stored = await Attachments(attachments_folder(ground.folder.dirs.data / "sessions")).read(
        shown.blob
    )
    assert stored is not None
    data = base64.b64encode(stored[1]).decode()
    assert 500_000 < len(data) < 1_000_000
    assert data in asked


@pytest.mark.parametrize("wrong", [0, -1, "big", 1.5])
async def test_a_size_that_is_none_is_told_and_the_usual_one_holds(ground: Ground, wrong) -> None:
    ground.configure(SEES, images={"maxBytes": wrong})
    result, _ = await ground.look()
    assert _picture(result) is not None


@pytest.mark.parametrize(
    ("model", "settings", "why"),
    [
        (BLIND, {}, "it takes text alone"),
        (SEES, {"images": {"blockImages": True}}, "images.blockImages holds them back"),
    ],
    ids=["blind", "blocked"],
)
async def test_a_picture_of_the_user_that_would_not_be_sent_is_refused(
    ground: Ground, model: dict[str, Any], settings: dict[str, Any], why: str
) -> None:
    ground.configure(model, **settings)
    picture = Image(mime="image/png", data=base64.b64encode(_noise(20)).decode())
    asked = len(ground.lab.requests)
    async with create_session(workspace=ground.folder.root, env=ground.folder.env) as opened:
        with pytest.raises(ImagesUnsupported, match=why):
            await opened.prompt([Text(text="what is this?"), picture])
    assert len(ground.lab.requests) == asked
