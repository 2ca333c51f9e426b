"""Planner of the embedded model: its next step as a pure function of the request."""

from collections.abc import Callable, Mapping, Sequence

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import Value
from agent_core.providers.adapters.embedded.calls import repair_call
from agent_core.providers.adapters.embedded.commands import (
    RUN_TESTS,
    RUN_TESTS_IN_FOLDER,
    TEST_COMMANDS,
)
from agent_core.providers.adapters.embedded.decisions import (
    WINDOW,
    Declined,
    ReadLines,
    Repair,
    RepairDecision,
    RepairEvidence,
    RunCommand,
    Site,
    evidence_since_tests,
)
from agent_core.providers.adapters.embedded.members import repair_attribute, repair_import
from agent_core.providers.adapters.embedded.modules import repair_module
from agent_core.providers.adapters.embedded.names import repair_name, repair_unbound
from agent_core.providers.adapters.embedded.output import (
    TestFailure,
    TestRunReport,
    inside,
    read_run,
)
from agent_core.providers.adapters.embedded.replies import (
    NO_LANGUAGE_MODEL,
    NO_SUMMARY,
    gave_up,
    no_tests,
    passed,
    refused,
    short,
    stopped,
    tools_missing,
)
from agent_core.providers.adapters.embedded.steps import ToolStep, task_of
from agent_core.providers.model import ModelRequest

NEEDED_TOOLS = ("bash", "read", "edit")
RULES: Mapping[str, Callable[[Site, RepairEvidence], RepairDecision]] = {
    "NameError": repair_name,
    "UnboundLocalError": repair_unbound,
    "AttributeError": repair_attribute,
    "ImportError": repair_import,
    "ModuleNotFoundError": repair_module,
    "TypeError": repair_call,
}
"""Repair rule by type of error."""
MOST_REPAIRS = 40
MOST_STEPS = 300
MOST_FAILURES = 25
"""Of one run; the others wait for the next."""


class FinalText(Value, frozen=True, kw_only=True):
    """The last words."""

    text: str


class CallTool(Value, frozen=True, kw_only=True):
    """A tool call, with the words that announce it."""

    text: str
    name: str
    arguments: JsonObject


PlannedStep = FinalText | CallTool


def next_step(request: ModelRequest) -> PlannedStep:
    """Decide what to do next from the transcript alone."""
    task = task_of(request.messages, system=request.system, with_tools=bool(request.tools))
    if task.asked == "summary":
        return FinalText(text=NO_SUMMARY)
    if task.asked == "other":
        return FinalText(text=NO_LANGUAGE_MODEL)
    offered = {tool.name for tool in request.tools}
    if missing := [name for name in NEEDED_TOOLS if name not in offered]:
        return FinalText(text=tools_missing(missing))
    tests = [one for one in task.steps if one.argument("command") in TEST_COMMANDS]
    if not tests:
        return _bash(RUN_TESTS, "I run the tests.")
    return _after_tests(task.steps, tests[-1])


def _after_tests(steps: Sequence[ToolStep], last: ToolStep) -> PlannedStep:
    if last.failed and not _ran(last):
        return FinalText(text=refused("run the tests", last.output))
    report = read_run(last.output, failed=last.failed)
    repaired = tuple(one.said.strip() for one in steps if one.name == "edit" and not one.failed)
    match report.outcome:
        case "passed":
            return FinalText(text=passed(report, repaired))
        case "nothing" if last.argument("command") == RUN_TESTS:
            return _bash(RUN_TESTS_IN_FOLDER, "No tests were found; I look in the folder `tests`.")
        case "nothing":
            return FinalText(text=no_tests(repaired))
        case "failed":
            return _after_failure(report, steps, repaired)


def _after_failure(
    report: TestRunReport, steps: Sequence[ToolStep], repaired: tuple[str, ...]
) -> PlannedStep:
    evidence = evidence_since_tests(steps, report.root)
    if any(one.name == "edit" and not one.failed for one in evidence.steps):
        return _bash(evidence.test_command, "I run the tests again.")
    if len(repaired) >= MOST_REPAIRS or len(steps) >= MOST_STEPS:
        return FinalText(text=gave_up([_where(one, report) for one in report.failures], repaired))
    return _mend(report, evidence, steps, repaired)


def _ran(step: ToolStep) -> bool:
    """Return whether a failed call of bash is a command that ran and failed."""
    return "Command exited with code" in step.output


def _mend(
    report: TestRunReport,
    evidence: RepairEvidence,
    steps: Sequence[ToolStep],
    repaired: tuple[str, ...],
) -> PlannedStep:
    declined: list[tuple[str, str]] = []
    for failure in report.failures[:MOST_FAILURES]:
        verdict = _verdict(failure, evidence)
        match verdict:
            case RunCommand(command=command, why=why):
                return _bash(command, why)
            case ReadLines():
                return _read(verdict)
            case Repair():
                tried = _tried(verdict, steps)
                if tried is None:
                    return _edit(verdict)
                declined.append((_where(failure, report), tried))
            case Declined(why=why):
                declined.append((_where(failure, report), why))
    return FinalText(text=stopped(report, repaired, declined))


def _verdict(failure: TestFailure, evidence: RepairEvidence) -> RepairDecision:
    site = _site(failure, evidence.root)
    if site is None:
        return Declined(why="it comes from outside of this workspace")
    rule = RULES.get(failure.kind)
    if rule is None:
        return Declined(why="Python names no repair for it")
    return rule(site, evidence)


def _site(failure: TestFailure, root: str | None) -> Site | None:
    """Find the innermost line of the workspace in a traceback."""
    for frame in reversed(failure.frames):
        path = inside(frame, root)
        if path is not None:
            here = frame is failure.frames[-1]
            return Site(failure=failure, path=path, line=frame.line, raised_here=here)
    return None


def _where(failure: TestFailure, report: TestRunReport) -> str:
    """Name a failure by the line of the workspace that it comes from."""
    site = _site(failure, report.root)
    frame = failure.frames[-1]
    path, line = (site.path, site.line) if site else (frame.path, frame.line)
    return f"{path}:{line}: {short(failure.sentence)}"


def _tried(repair: Repair, steps: Sequence[ToolStep]) -> str | None:
    """Return why a repair is not made: it, or its reverse, was tried already."""
    forth = _edit(repair).arguments
    back = _edit_arguments(repair, reverse=True)
    for one in steps:
        if one.name != "edit" or one.arguments not in (forth, back):
            continue
        if one.failed:
            return f"the edit of {repair.path} failed: {one.output}"
        return f"`{repair.what}` was tried already and did not help"
    return None


def _bash(command: str, why: str) -> CallTool:
    return CallTool(text=why, name="bash", arguments={"command": command})


def _read(wanted: ReadLines) -> CallTool:
    arguments: dict[str, JsonValue] = {"path": wanted.path}
    if wanted.offset is not None:
        arguments |= {"offset": wanted.offset, "limit": WINDOW}
    return CallTool(
        text=f"I look at {wanted.path}:{wanted.line}.", name="read", arguments=arguments
    )


def _edit(repair: Repair) -> CallTool:
    return CallTool(
        text=f"{repair.path}:{repair.line}: {repair.what}",
        name="edit",
        arguments=_edit_arguments(repair),
    )


def _edit_arguments(repair: Repair, *, reverse: bool = False) -> JsonObject:
    edits = [(new, old) if reverse else (old, new) for old, new in repair.edits]
    return {
        "path": repair.path,
        "edits": [{"oldText": old, "newText": new} for old, new in edits],
    }
