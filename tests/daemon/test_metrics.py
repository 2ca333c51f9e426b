"""`tiller daemon metrics` prints what the daemon counts, in the text format of Prometheus."""

import asyncio
import re
from collections.abc import Mapping

import pytest

from tests.daemon.test_cli_daemon import tiller
from tests.support.clients.daemons import editor
from tests.support.clients.server import Ground, prompt, says
from tests.support.provider.collector import Collector
from tiller_server.daemon.admission.handshake import ASKS
from tiller_server.daemon.control_replies import METRICS, DaemonState, metrics

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

LINE = re.compile(
    r"# HELP tiller_\w+ .+|# TYPE tiller_\w+ (gauge|counter)|tiller_\w+(\{version=\".+\"\})? [-+.e\d]+"
)


def values(text: str) -> Mapping[str, float]:
    """Return the values of a page, each line of which is checked."""
    assert text.endswith("\n")
    lines = text.splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    pairs = (line.split(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_every_figure_has_a_help_and_a_type() -> None:
    state = DaemonState(pid=1, version="1", since_ms=1500, connections=2, sessions=3, working=1)
    text = metrics(state, {"outgoing_bytes": 12_345_678, "cost_usd_total": 0.25})
    found = values(text)
    assert len(found) == len(METRICS) + 1
    assert found["tiller_start_time_seconds"] == 1.5
    assert found["tiller_outgoing_bytes"] == 12_345_678
    assert found["tiller_cost_usd_total"] == 0.25
    assert "# TYPE tiller_cost_usd_total counter" in text
    assert "metrics" in ASKS


async def test_a_collector_that_hangs_is_counted_and_logged_once(ground: Ground) -> None:
    # The exporter gives a request up after this time; it is 10 s otherwise.
    env = {**ground.env, "OTEL_EXPORTER_OTLP_TIMEOUT": "0.1"}
    with Collector(hangs=True) as collector:
        ground.configure(telemetry={"enabled": True, "endpoint": collector.url})
        ground.provider.script([says("Hello there"), says("Hello again")])
        assert (await tiller(env, "daemon", "start"))[0] == 0
        try:
            async with await editor(env, ground.root) as client:
                for text, lost in (("hi", 2), ("hi again", 4)):
                    await client.request("agent/prompt", prompt(text), timeout_s=30)
                    async with asyncio.timeout(40):
                        while (
                            values((await tiller(env, "daemon", "metrics"))[1])[
                                "tiller_telemetry_dropped_total"
                            ]
                            < lost
                        ):
                            pass
            _, log, _ = await tiller(env, "daemon", "logs")
            assert log.count("telemetry is lost") == 1
            assert f"{collector.url}: " in log
            assert "opentelemetry.exporter" not in log
            assert "urllib3" not in log
        finally:
            await tiller(env, "daemon", "stop", "--force")


async def test_a_daemon_tells_its_figures(ground: Ground) -> None:
    env = dict(ground.env)
    code, out, err = await tiller(env, "daemon", "metrics")
    assert (code, out, err) == (1, "", "tiller daemon: no daemon runs\n")
    with Collector() as collector:
        ground.configure(telemetry={"enabled": True, "endpoint": collector.url})
        ground.provider.script([says("Hello there")])
        assert (await tiller(env, "daemon", "start"))[0] == 0
        try:
            async with await editor(env, ground.root) as client:
                await client.request("agent/prompt", prompt("hi"), timeout_s=30)
                async with asyncio.timeout(30):
                    while not (now := values((await tiller(env, "daemon", "metrics"))[1]))[
                        "tiller_telemetry_spans_sent_total"
                    ]:
                        pass
            assert now["tiller_sessions"] == now["tiller_clients"] == 1
            assert now["tiller_sessions_working"] == now["tiller_queued_messages"] == 0
            assert now["tiller_input_tokens_total"] > 0 < now["tiller_output_tokens_total"]
            assert now["tiller_resident_memory_bytes"] > 10_000_000
            assert now["tiller_telemetry_dropped_total"] == 0
        finally:
            await tiller(env, "daemon", "stop", "--force")
        assert [one.name for one in collector.spans if one.parent == ""][:1] == [
            "invoke_agent tiller"
        ]
