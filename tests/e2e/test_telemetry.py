"""`tiller run` sends its trace before it ends, belongs to its caller's trace, and does not suffer from a collector."""

import socket
import time
from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.programs.daemon_runs import BOTH_WAYS
from tests.support.programs.terminal import Ran, tiller
from tests.support.provider.collector import Collector

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]
RUN_WAYS = BOTH_WAYS

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = CALLER.removesuffix("01") + "00"


def run(ground: Ground, url: str | None, *, env: dict[str, str] | None = None) -> Ran:
    told: dict[str, Any] = {"enabled": True} if url is None else {"enabled": True, "endpoint": url}
    ground.configure(telemetry=told)
    ground.file("a.txt", "hello\n")
    ground.provider.script([calls(("read", {"path": "a.txt"})), says("It says hello.")])
    return tiller(ground, "run", "go", env=env)


def check_undisturbed(ran: Ran) -> None:
    assert (ran.code, ran.out) == (0, "It says hello.\n"), ran
    first, tool, last, session = ran.err.splitlines()
    assert first.startswith("lab/m in ")
    assert tool.endswith("read a.txt")
    assert last.startswith("done · ")
    assert session.startswith("session: ")


def test_a_run_sends_its_trace_and_belongs_to_the_trace_of_its_caller(ground: Ground) -> None:
    with Collector() as collector:
        variables = {"TRACEPARENT": CALLER, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        ran = run(ground, None, env={**variables, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=abc"})
        check_undisturbed(ran)
        top = collector.named("invoke_agent tiller")
        assert len(collector.spans) == 4
        assert {one.trace for one in collector.spans} == {CALLER.split("-")[1]}
        assert top.parent == CALLER.split("-")[2]
        assert {one.get("x-key") for one in collector.got.requests} == {"abc"}
        assert "gen_ai.client.token.usage" in collector.got.metrics


def test_spans_of_a_trace_that_its_caller_does_not_sample_are_not_sent(ground: Ground) -> None:
    with Collector() as collector:
        ran = run(ground, collector.url, env={"TRACEPARENT": UNSAMPLED})
        assert ran.code == 0
        assert collector.spans == []
        assert "gen_ai.client.operation.duration" in collector.got.metrics


@pytest.mark.parametrize("fault", ["refused", "500", "hangs"])
def test_a_collector_with_a_fault_changes_nothing(ground: Ground, fault: str) -> None:
    with Collector(status=500, hangs=fault == "hangs") as collector, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        begun_s = time.monotonic()
        ran = run(ground, nobody if fault == "refused" else collector.url)
        took_s = time.monotonic() - begun_s
        check_undisturbed(ran)
        assert took_s < 15
        assert bool(collector.got.requests) is (fault != "refused")


def test_variables_alone_switch_nothing_on(ground: Ground) -> None:
    with Collector() as collector:
        ground.provider.script([says("Hello there")])
        ran = tiller(ground, "run", "go", env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
        assert (ran.code, ran.out) == (0, "Hello there\n"), ran
        assert collector.got.requests == []


def test_a_project_cannot_switch_it_on(ground: Ground) -> None:
    with Collector() as collector:
        ground.file(
            ".tiller/settings.json",
            f'{{"telemetry": {{"enabled": true, "endpoint": "{collector.url}"}}}}',
        )
        ground.provider.script([says("Hello there")])
        ran = tiller(ground, "run", "go")
        assert (ran.code, ran.out) == (0, "Hello there\n"), ran
        assert "telemetry.enabled" in ran.err
        assert collector.got.requests == []
