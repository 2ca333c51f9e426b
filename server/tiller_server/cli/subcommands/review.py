"""`tiller review`: looks at the changes between two commits and reports what is wrong in them."""

import argparse
from pathlib import Path
from typing import Final

import anyio

from agent_core.kernel.errors import UsageError
from tiller_server.cli.command_exit import code_of
from tiller_server.cli.environment import Environment
from tiller_server.cli.session_options import add_budgets

EXAMPLE = "example: tiller review --base origin/main --fail-on warning"
FORMATS: Final = ("text", "md", "json", "sarif", "github", "gitlab")
MOST_DIGITS: Final = 6
FAIL_ON: Final = ("error", "warning", "note", "never")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    _add_change(parser)
    _add_findings(parser)
    _add_outputs(parser)
    _add_fixing(parser)
    model = parser.add_argument_group("the model")
    model.add_argument("--model", metavar="PROVIDER/ID", help="the model to ask")
    model.add_argument("--instructions", metavar="TEXT", default="", help="more words for it")
    model.add_argument(
        "--trust", action="store_true", help="use what the project brings for agents"
    )
    model.add_argument("--no-session", action="store_true", help="keep the session in memory only")
    add_budgets(parser)
    parser.add_argument("--debug", action="store_true", help="show tracebacks")


def _add_change(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the change").add_argument
    add("--workspace", metavar="DIR", default=".", help="a folder of the repository [.]")
    add("--base", metavar="REF", help="what it goes into [the target CI names, or the main branch]")
    add("--head", metavar="REF", default="HEAD", help="what to look at [HEAD]")
    add("--uncommitted", action="store_true", help="look at what lies on the disk; base: HEAD")
    for name, which in (("--path", "only these files"), ("--exclude", "not these files")):
        help_text = f"{which}; may be repeated"
        add(name, action="append", default=[], metavar="GLOB", help=help_text)
    add("--previous", metavar="FILE", type=Path, help="go on from this JSON report, if it exists")


def _add_findings(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the findings").add_argument
    add("--max-findings", type=_count, default=20, metavar="N", help="show so many at most [20]")
    add("--min-confidence", type=_share, default=0.3, metavar="N", help="0 to 1 [0.3]")
    add(
        "--baseline",
        metavar="FILE",
        help="accepted findings [.tiller/review-baseline.json of the base]",
    )
    add(
        "--reject",
        metavar="FINDING",
        action="append",
        default=[],
        help="remember that this finding of the last review is wrong: its fingerprint, or path:line; may be repeated",
    )
    add("--why", metavar="TEXT", default="", help="the reason of --reject")
    add("--write-baseline", metavar="FILE", type=Path, help="accept what is found, in this file")
    add(
        "--fail-on",
        choices=FAIL_ON,
        default="error",
        help="exit with 3 from this severity on [error]",
    )
    add(
        "--on-partial",
        choices=("fail", "pass"),
        default="fail",
        help="whether a review that an outage or a budget ended early fails [fail]",
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the report").add_argument
    add("--format", choices=FORMATS, default="text", help="what to print [text]")
    add(
        "--output",
        action="append",
        default=[],
        metavar="[FORMAT=]FILE",
        help="write to a file too; may be repeated",
    )
    add(
        "--from",
        dest="stored",
        metavar="FILE",
        type=Path,
        help="use this JSON report, ask no model",
    )
    add("--save-session", metavar="FILE", type=Path, help="copy the session's file there")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--post", action="store_true", help="post to GitHub or GitLab, as CI names it"
    )
    ways.add_argument("--dry-run", action="store_true", help="print what --post would do")


def _add_fixing(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("fixing").add_argument
    add(
        "--fix",
        choices=("patch", "branch"),
        help="apply the suggestions, onto a branch or as a patch",
    )
    add("--fix-with", choices=("suggestions", "agent"), default="suggestions", help="who repairs")
    add(
        "--fix-to",
        metavar="NAME",
        help="the patch file [tiller-fix.patch] or branch [tiller/fix-…]",
    )
    add(
        "--test",
        metavar="COMMAND",
        help="the judge of --fix: only what passes is kept. It runs the proposed code",
    )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        message = f"{text!r} is no count; give a whole number from 0 on, as 20"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        message = f"{text!r} is no share; give a number from 0 to 1, as 0.5"
        raise argparse.ArgumentTypeError(message)
    return share


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    from tiller_server.cli.review.run import run_review  # noqa: PLC0415 - it needs what no other command does
    from tiller_server.process.memory_privacy import forbid_ptrace  # noqa: PLC0415 - as above

    forbid_ptrace(environment.variables)

    def work() -> int:
        _check(options)
        if options.reject:
            from tiller_server.cli.review.rejections import reject  # noqa: PLC0415 - as above

            return anyio.run(reject, options, environment)
        return anyio.run(run_review, options, environment)

    return code_of("review", work, debug=options.debug, as_json=options.format == "json")


def _check(options: argparse.Namespace) -> None:
    wrong = (
        (options.reject and not options.why.strip(), "--reject needs a reason; say --why TEXT"),
        (options.why and not options.reject, "--why is the reason of --reject FINDING"),
        (
            options.uncommitted and options.head != "HEAD",
            "--uncommitted is a head of its own; leave out --head",
        ),
        (
            options.stored and options.fix,
            "--fix needs the repository at the head, which a stored report is not",
        ),
        (
            options.uncommitted and options.fix,
            "--fix works on commits; commit first, or leave out --uncommitted",
        ),
        (
            options.uncommitted and options.post,
            "what is not committed cannot be posted; leave out --uncommitted",
        ),
        (
            options.fix_with == "agent" and options.fix and not options.test,
            "an agent's repair needs a judge; say --test COMMAND",
        ),
        (
            options.fix_with == "agent" and options.fix and not options.trust,
            "an agent that repairs runs commands of the change; say --trust if you trust it",
        ),
    )
    for is_wrong, message in wrong:
        if is_wrong:
            raise UsageError(message)
