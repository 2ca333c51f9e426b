"""Planner of the embedded model: its next step as a pure function of the request."""

import re
from collections.abc import Callable, Mapping, Sequence

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import Value
from agent_core.providers.adapters.embedded.commands import (
    RUN_TESTS,
    RUN_TESTS_IN_FOLDER,
    TEST_COMMANDS,
    find_identifiers,
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
from agent_core.providers.adapters.embedded.members import FOUND, repair_attribute, repair_import
from agent_core.providers.adapters.embedded.modules import repair_module
from agent_core.providers.adapters.embedded.names import (
    repair_missing_self,
    repair_name,
    repair_unbound,
    use_instead,
)
from agent_core.providers.adapters.embedded.output import (
    TestFailure,
    TestRunReport,
    inside,
    read_run,
)
from agent_core.providers.adapters.embedded.source import FunctionNode, PythonSource, positional
from agent_core.providers.adapters.embedded.steps import ToolStep, task_of
from agent_core.providers.model import ModelRequest

TOO_MANY = re.compile(
    r"""(?P<owner>\w+)\.(?P<method>\w+)\(\)\ takes\ (?:from\ \d+\ to\ )?(?P<takes>\d+)\ positional\ arguments?
    \ but\ (?P<given>\d+)\ (?:was|were)\ given""",
    re.VERBOSE,
)
KEYWORD = re.compile(r".*got an unexpected keyword argument '(?P<name>\w+)'")

NO_LANGUAGE_MODEL = (
    "I am the embedded repair model, rule-based and not a language model, and can only repair failing Python tests; "
    "for anything else connect a real model: set a key such as ANTHROPIC_API_KEY or add a provider to models.json, "
    'then choose it as "provider/id" in your editor, with `--model`, or by "defaultProvider" and "defaultModel" in '
    "settings.json."
)
NO_SUMMARY = (
    "The embedded repair model is rule-based and not a language model: it cannot sum up a conversation. What it "
    "repaired is in the files; running the tests again shows what is left."
)
LONG = 400


def _repair_call(site: Site, evidence: RepairEvidence) -> RepairDecision:
    """Return what to do about a TypeError."""
    if (keyword := KEYWORD.match(site.failure.message)) and site.failure.suggested:
        source = evidence.source(site.path, site.line)
        if not isinstance(source, PythonSource):
            return source
        found = source.first_from(site.line, keyword["name"], dotted=False)
        if found is None or not found.keyword:
            return Declined(why=f"line {site.line} does not hold {keyword['name']!r}")
        return use_instead(source, site, found, site.failure.suggested)
    match = TOO_MANY.search(site.failure.message)
    if match is None or int(match["given"]) != int(match["takes"]) + 1:
        return Declined(why="Python names no repair for it")
    return _missing_self(site, evidence, owner=match["owner"], method=match["method"])


def _missing_self(
    site: Site, evidence: RepairEvidence, *, owner: str, method: str
) -> RepairDecision:
    command = find_identifiers([f"def {method}"])
    found = evidence.output(command)
    if found is None:
        return RunCommand(command=command, why=f"I look for the definition of `{owner}.{method}`.")
    for place in FOUND.finditer(found.output):
        line = int(place["line"])
        source = evidence.source(place["path"], line)
        if not isinstance(source, PythonSource):
            return source
        function, around = source.function_at(line), source.class_at(line)
        if function is None or around is None or around.name != owner or function.name != method:
            continue
        if _lacks_self(function):
            there = Site(
                failure=site.failure, path=place["path"], line=function.lineno, raised_here=False
            )
            return repair_missing_self(source, there)
    return Declined(why=f"`{owner}.{method}` has its `self`: the call passes one argument too many")


def _lacks_self(function: FunctionNode) -> bool:
    return not function.decorator_list and positional(function)[:1] not in (["self"], ["cls"])


NEEDED_TOOLS = ("bash", "read", "edit")
RULES: Mapping[str, Callable[[Site, RepairEvidence], RepairDecision]] = {
    "NameError": repair_name,
    "UnboundLocalError": repair_unbound,
    "AttributeError": repair_attribute,
    "ImportError": repair_import,
    "ModuleNotFoundError": repair_module,
    "TypeError": _repair_call,
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
        return FinalText(text=_tools_missing(missing))
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
            return FinalText(text=_no_tests(repaired))
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


def _tools_missing(names: Sequence[str]) -> str:
    """Return which tools must be switched on."""
    listed = ", ".join(f"`{name}`" for name in names)
    return f"To repair tests I need the tools `bash`, `read` and `edit`, and I was not given {listed}; switch them on and ask again."


def refused(what: str, output: str) -> str:
    """Return what could not be done, in the words of the refusal."""
    return f"I could not {what}, so I changed nothing more. The tool said: {short(output)}"


def passed(report: TestRunReport, repaired: Sequence[str]) -> str:
    """Report that the tests pass."""
    tests = f"{report.count} test" if report.count == 1 else f"{report.count} tests"
    if not repaired:
        return f"The tests pass ({tests}): there is nothing to repair."
    return f"The tests pass now ({tests}). Repaired:\n{_list(repaired)}"


def _no_tests(repaired: Sequence[str]) -> str:
    """Report that there are no tests to go by."""
    found = "I found no tests to run, neither with unittest nor in the folder `tests`; there is nothing I could go by."
    return f"{found}\nRepaired before that:\n{_list(repaired)}" if repaired else found


def gave_up(left: Sequence[str], repaired: Sequence[str]) -> str:
    """Report that this goes on for too long."""
    return f"I stop after {len(repaired)} repairs; the tests still fail. Repaired:\n{_list(repaired)}\nLeft:\n{_list(left)}"


def stopped(
    report: TestRunReport, repaired: Sequence[str], declined: Sequence[tuple[str, str]]
) -> str:
    """Return what was repaired, and what could not be."""
    done = f"Repaired:\n{_list(repaired)}\n" if repaired else "I repaired nothing.\n"
    if not declined:
        return f"{done}The tests fail, and I found no traceback to go by. The last lines are:\n{report.tail}"
    left = "\n".join(f"- {where}: {why}" for where, why in declined)
    if (more := len(report.failures) - len(declined)) > 0:
        left += f"\n- and {more} more, at which I have not looked"
    return (
        f"{done}The tests still fail. Not repaired:\n{left}\n"
        "This needs you, or a language model: I only make repairs that Python's own messages name."
    )


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def short(text: str) -> str:
    """Cut a long text."""
    text = text.strip()
    return text if len(text) <= LONG else f"{text[: LONG - 1]}…"
