"""Answer texts of the embedded model."""

from collections.abc import Sequence

from agent_core.providers.adapters.embedded.output import TestRunReport

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


def tools_missing(names: Sequence[str]) -> str:
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


def no_tests(repaired: Sequence[str]) -> str:
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
