"""pi and Tiller driven with the same commands: their records have the same shapes, but for the table of docs/rpc.md."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.clients.rpc import Json, RpcPeer, rpc_client, rpc_process
from tests.support.clients.server import Ground, calls, says
from tests.support.programs.record_shapes import differences, shapes
from tests.support.programs.reference_agent import (
    NEWEST_VERSION,
    VERSION,
    reference_environment,
    rpc_command,
)
from tests.support.provider import LoopbackProvider, write_config

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
PAGE = Path(__file__).parents[2] / "docs/rpc.md"
ROW = re.compile(r"^\| ([\d., ]+) \| `([^`]+)` \| ([^|]*) \| ([^|]*) \| [^|]+ \|$", re.MULTILINE)
COMPACTION = {"keepRecentTokens": 1, "reserveTokens": 1000}
TOOLS = calls(("bash", {"command": "echo hi"}), ("read", {"path": "nope.txt"}), text="Look:")
RUN = [{**TOOLS, "thinking": "Hm."}, says("Done.")]
SUMMARY = [{"text": "A summary.", "repeat": -1}]
ENDLESS = [{"text": "I ", "deltas": 4, "stall_forever_after_deltas": 3}]
TEMPLATE = "---\ndescription: Repair it.\n---\nRepair $1\n"
NEW = ("get_entries", "get_tree", "get_available_thinking_levels", "clear_queue")
"""Commands that 0.73.1 lacks."""


async def converse(peer: RpcPeer, provider: LoopbackProvider, release: str) -> None:
    """Send every command, in an order in which each has something to do."""
    reading = ["get_state", "get_messages", "get_session_stats", "get_fork_messages"]
    reading += ["get_last_assistant_text", "get_commands"]
    reading += NEW if release == NEWEST_VERSION else ()
    await configure(peer, reading)
    if release == NEWEST_VERSION:  # the older release asks its model about nothing
        await peer.ask("compact")
    await mistake(peer)
    provider.script(RUN)
    await peer.data("prompt", message="go")
    await peer.event("agent_settled" if release == NEWEST_VERSION else "agent_end")
    await peer.ask("set_session_name", name="Totals")
    await peer.ask("bash", command="echo out; exit 3")
    for command in (*reading, "export_html"):
        await peer.ask(command)
    provider.script(SUMMARY)
    await peer.ask("compact")
    for command in ("steer", "follow_up"):
        await peer.ask(command, message="later")
    await peer.ask("get_messages")
    if release == NEWEST_VERSION:
        await peer.ask("clear_queue")
    provider.script(ENDLESS)
    await peer.data("prompt", message="again")
    await peer.until(lambda one: "text_delta" in str(one.get("assistantMessageEvent")))
    await peer.ask("prompt", message="no")
    await peer.ask("prompt", message="more", streamingBehavior="followUp")
    await peer.ask("abort")
    await switch(peer)


async def configure(peer: RpcPeer, reading: Sequence[str]) -> None:
    """Read a new session and configure it."""
    for command in (*reading, "get_available_models", "cycle_model", "cycle_thinking_level"):
        await peer.ask(command)
    await peer.ask("set_model", provider="lab", modelId="m")
    await peer.ask("set_thinking_level", level="off")
    for command in ("set_steering_mode", "set_follow_up_mode"):
        await peer.ask(command, mode="one-at-a-time")
    await peer.ask("set_auto_compaction", enabled=False)
    await peer.ask("set_auto_retry", enabled=True)
    for command in ("abort_retry", "abort", "abort_bash"):
        await peer.ask(command)


async def mistake(peer: RpcPeer) -> None:
    """Send what cannot be done."""
    await peer.ask("export_html")
    await peer.ask("set_model", provider="lab", modelId="nope")
    await peer.ask("set_session_name", name=" ")
    await peer.ask("fork", entryId="nope")
    peer.write(b"nonsense\n")
    await peer.until(lambda one: one.get("command") == "parse")
    peer.write(b'{"id": "x", "type": "nope"}\n')
    await peer.until(lambda one: one.get("command") == "nope")


async def switch(peer: RpcPeer) -> None:
    """Put other sessions in front."""
    state = await peer.data("get_state")
    (first, *_) = (await peer.data("get_fork_messages"))["messages"]
    await peer.ask("fork", entryId=first["entryId"])
    await peer.ask("new_session")
    await peer.ask("switch_session", sessionPath=state["sessionFile"])
    await peer.ask("clone")


def steps(records: Sequence[Json]) -> Sequence[str]:
    """Return the events of the first run, without updates, and without system messages, which Tiller has none of.

    Calls run side by side: their starts and ends are put in one order.
    """
    kinds = ("agent", "turn", "message", "tool_execution")
    found: list[str] = []
    calls: list[str] = []
    for record in records:
        kind, role = record["type"], record.get("message", {}).get("role", "")
        if "update" in kind or role == "system" or not kind.startswith(kinds):
            continue
        if kind.startswith("tool_execution"):
            calls.append(kind)
            continue
        found += [*sorted(calls), f"{kind} {role}".strip()]
        calls = []
        if kind == "agent_end":
            break
    return found


@pytest.mark.parametrize("release", [VERSION, NEWEST_VERSION])
async def test_records_have_the_shapes_of_pi_but_for_the_table(
    ground: Ground, tmp_path: Path, release: str
) -> None:
    command, home = rpc_command(release), tmp_path / "pi"
    write_config(home / "agent", ground.provider, settings={"compaction": COMPACTION})
    (home / "agent/prompts").mkdir()
    (home / "agent/prompts/fix.md").write_text(TEMPLATE, "utf-8")
    env = reference_environment(home)
    async with rpc_process(command, cwd=ground.root, env=env) as (theirs, _):
        await converse(theirs, ground.provider, release)
    ground.configure(compaction=COMPACTION)
    (ground.dirs.config / "prompts").mkdir()
    (ground.dirs.config / "prompts/fix.md").write_text(TEMPLATE, "utf-8")
    compat = "1.5" if release == NEWEST_VERSION else "0.73"
    async with rpc_client(ground, compat=compat, config={"thinking": "off"}) as ours:
        await converse(ours, ground.provider, release)
    found = differences(shapes(theirs.records), shapes(ours.records))
    assert found == listed(release)
    assert steps(ours.records) == steps(theirs.records)


def listed(release: str) -> Mapping[str, tuple[str, str]]:
    """Return the differences of a release in the table of the page."""
    return {
        kind: (left.replace("`", "").strip(), right.replace("`", "").strip())
        for releases, kind, left, right in ROW.findall(PAGE.read_text("utf-8"))
        if release in releases
    }
