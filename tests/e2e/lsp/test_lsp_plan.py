"""A plan over the wire: shown in the details of its call, answered by its hash, the same for every client."""

import pytest

from tests.e2e.lsp.test_lsp_results import check
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

TEXT = "# Write the note"
PLAN = calls(("plan", {"markdown": TEXT}))
WORK = calls(("write", {"path": "note.txt", "content": "done\n"}))


async def test_a_plan_is_approved_by_its_hash_and_an_old_answer_is_refused(ground: Ground) -> None:
    ground.provider.script([PLAN, says("Here."), WORK, says("Written.")])
    async with ground.client(PANEL) as client:
        await client.request("agent/session/open", {})
        await client.request("agent/session/configure", {"set": {"mode": "plan"}})
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("Plan it", wait=True))
        shown = (await stream.wait(type="tool.ended"))["details"]["plan"]
        assert shown["markdown"] == TEXT
        respond = "agent/plan/respond"
        wrong = {"revision": 2, "sha256": shown["sha256"], "answer": "approve"}
        with pytest.raises(ClientError, match="revision 1 with the hash") as refused:
            await client.request(respond, wrong)
        assert refused.value.code == -32602
        result = await client.request(respond, {**wrong, "revision": 1})
        check(respond, result)
        assert (await stream.wait(type="run.ended", run=result["run"]))["status"] == "completed"
        with pytest.raises(ClientError, match="no plan waits for an answer"):
            await client.request(respond, {"sha256": shown["sha256"], "answer": "reject"})
        config = (await client.request("agent/session/open", {}))["config"]
        assert config["mode"] == "ask"
    assert (ground.root / "note.txt").read_text("utf-8") == "done\n"
