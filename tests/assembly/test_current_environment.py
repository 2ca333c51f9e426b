"""What a session looks up in its environment it looks up anew, for it may be another one by now."""

import json

import pytest

from agent_core.assembly import SessionRequest, open_session
from agent_core.kernel.environment import CurrentEnvironment
from agent_core.kernel.errors import ModelUnknown
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder, ask


async def test_a_key_that_comes_later_is_found(folder: Folder, lab: LoopbackProvider) -> None:
    write_config(folder.dirs.config, lab)
    path = folder.dirs.config / "models.json"
    models = json.loads(path.read_text("utf-8"))
    models["providers"]["lab"]["apiKey"] = "${LAB_KEY}"
    folder.write("models.json", json.dumps(models))
    lab.script([{"text": "one"}, {"text": "two"}])
    before = len(lab.requests)
    environment = CurrentEnvironment(folder.env)
    request = SessionRequest(workspace=folder.root, env=environment, store="memory", trusted=True)
    async with open_session(request) as session:
        with pytest.raises(ModelUnknown):
            await session.prompt("hi")
        environment.use({**folder.env, "LAB_KEY": "first-key"})
        await ask(session)
        environment.use({**folder.env, "LAB_KEY": "second-key"})
        await ask(session)
    headers = [one["headers"] for one in lab.requests[before:]]
    assert [one["authorization"] for one in headers] == ["<16 characters>", "<17 characters>"]
