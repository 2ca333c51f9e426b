"""`tiller review` is a workflow below the span of its caller; its runs are below it."""

import pytest

from tests.support.clients.server import Ground, says
from tests.support.programs.terminal import tiller
from tests.support.provider.collector import Collector
from tests.support.review.reviewing import a_report, reports
from tests.support.workspace.repositories import Repository

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_review_is_a_workflow_below_its_caller(ground: Ground) -> None:
    repository = Repository(ground.root)
    repository.commit("Begin", {"sums.py": "def sub(a, b):\n    return a - b\n"})
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.replace("sums.py", "return a - b", "return b - a")
    repository.commit("Subtract")
    ground.provider.script([reports(a_report("sums.py", 2, "return b - a")), says("One thing.")])
    with Collector() as collector:
        ground.configure(telemetry={"enabled": True, "endpoint": collector.url})
        ran = tiller(ground, "review", env={"TRACEPARENT": CALLER})
        assert (ran.code, ran.err) == (3, ""), ran
        workflow = collector.named("invoke_workflow review")
        run = collector.named("invoke_agent tiller")
    assert workflow.parent == CALLER.split("-")[2]
    assert (run.parent, run.trace) == (workflow.id, CALLER.split("-")[1])
    assert workflow.start_ns <= run.start_ns <= run.end_ns <= workflow.end_ns
    assert workflow.attributes["gen_ai.workflow.name"] == "review"
    assert "gen_ai.invoke_workflow.duration" in collector.got.metrics
