"""`tiller policy`: explains, lists, adds and removes permission rules."""

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from os import defpath
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import encode
from agent_core.resources.paths import AppPaths, app_paths, project_folder
from agent_core.resources.settings.layers import Layer, load_settings_now
from agent_core.workspace.permissions.call_permission import LETS_IN, Needs, SandboxLevel
from agent_core.workspace.permissions.policy import (
    CommandAccess,
    PolicyContext,
    RuleSet,
    git_starts_programs,
)
from agent_core.workspace.permissions.policy.explanation import (
    CommandExplanation,
    Explanation,
    explain,
)
from agent_core.workspace.permissions.policy.rules.command_rule import command_rule
from agent_core.workspace.permissions.policy.rules.entries import entry_of
from agent_core.workspace.permissions.policy.rules.matching import RulesFileContext
from agent_core.workspace.permissions.policy.rules.rule import Rule
from agent_core.workspace.permissions.policy.rules.rules_file import (
    NAME,
    LoadedRulesFile,
    RulesOrigin,
    load_rules,
    remembered_file,
)
from agent_core.workspace.permissions.policy.rules.rules_file_writer import remove_rule, save_rule
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, code_of_error, complain
from tiller_server.cli.subcommands.trust import look_at

EXAMPLE: Final = "example: tiller policy explain -- 'npm test && git push'"
NEEDS: Final[Mapping[str, Needs]] = {need: need for need in LETS_IN}
PRIVATE_FOLDER: Final = 0o700
ORIGINS: Final[tuple[RulesOrigin, ...]] = ("user", "project", "repository")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="explain|list|allow|deny|rm")
    explain_parser = verbs.add_parser(
        "explain", help="show what would happen to a command, and why", epilog=EXAMPLE
    )
    _ = explain_parser.add_argument(
        "--mode", choices=("plan", "ask", "auto", "yolo"), help="instead of the settings' mode"
    )
    _ = explain_parser.add_argument(
        "--containment", choices=("full", "partial", "none"), help="instead of this machine's"
    )
    _ = explain_parser.add_argument(
        "--needs", choices=tuple(NEEDS), action="append", default=[], help="what it asks for"
    )
    _ = explain_parser.add_argument(
        "argv", nargs="+", metavar="COMMAND", help="the command line, or its words"
    )
    shown = verbs.add_parser("list", help="list the rules in force here, and errors in others")
    for name, what in (("allow", "run a command without asking"), ("deny", "never run a command")):
        added = verbs.add_parser(name, help=what, epilog=f"example: tiller policy {name} npm test")
        _ = added.add_argument(
            "--project", action="store_true", help="in this folder only, not in all of yours"
        )
        _ = added.add_argument("--workspace", metavar="DIR", default=".", help="the folder [.]")
        _ = added.add_argument(
            "argv", nargs=argparse.REMAINDER, metavar="COMMAND", help="how the command begins"
        )
    removed = verbs.add_parser("rm", help="remove a rule of yours")
    _ = removed.add_argument("id", metavar="ID", help="as `tiller policy list` shows it")
    for one in (explain_parser, shown, removed):
        _ = one.add_argument(
            "--workspace", metavar="DIR", default=".", help="the folder it is about [.]"
        )
    for one in (explain_parser, shown):
        _ = one.add_argument("--json", action="store_true", help="as JSON")
        supposed = one.add_mutually_exclusive_group()
        _ = supposed.add_argument(
            "--untrusted", action="store_true", help="as if the workspace were not trusted"
        )
        _ = supposed.add_argument(
            "--trust",
            action="store_true",
            help="as if it were trusted; without either: as you have decided",
        )


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    try:
        paths = app_paths(environment.variables)
        workspace = Path(options.workspace).resolve()
        if options.verb == "rm":
            return _remove(options.id, paths, workspace)
        if options.verb in {"allow", "deny"}:
            return _add(options, paths, workspace, environment)
        trusted = not options.untrusted and (options.trust or look_at(paths, workspace).is_trusted)
        # Before trust what comes with the code is not even read.
        origins = ORIGINS if trusted else ORIGINS[:-1]
        loaded = _loaded(paths, workspace, environment, origins)
        if options.verb == "list":
            return _list(loaded, options)
        return _explain(loaded, paths, workspace, options, environment)
    except TillerError as error:
        complain("policy", str(error))
        return code_of_error(error)


def _files(paths: AppPaths, workspace: Path) -> dict[RulesOrigin, Path]:
    return {
        "user": paths.config / NAME,
        "project": remembered_file(paths.data, workspace),
        "repository": project_folder(workspace) / NAME,
    }


def _loaded(
    paths: AppPaths, workspace: Path, environment: Environment, origins: Sequence[RulesOrigin]
) -> dict[RulesOrigin, LoadedRulesFile]:
    variables = environment.variables
    home = Path(variables["HOME"]) if variables.get("HOME") else None
    return {
        origin: load_rules(
            path,
            origin=origin,
            roots=(workspace,),
            env_path=variables.get("PATH", ""),
            home=home,
        )
        for origin, path in _files(paths, workspace).items()
        if origin in origins
    }


def _explain(
    loaded: dict[RulesOrigin, LoadedRulesFile],
    paths: AppPaths,
    workspace: Path,
    options: argparse.Namespace,
    environment: Environment,
) -> int:
    values = load_settings_now((Layer(name="user", content=paths.settings),)).values
    containment, how = _containment(options.containment, values.sandbox)
    situation = PolicyContext(
        mode=options.mode or values.permission.mode,
        trusted="repository" in loaded,
        containment=containment,
        rules=RuleSet(rules=tuple(rule for one in loaded.values() for rule in one.rules)),
        roots=(workspace,),
    )
    argv = options.argv
    asked = CommandAccess(
        command=argv[0] if len(argv) == 1 else shlex.join(argv),
        cwd=workspace,
        needs=frozenset(NEEDS[one] for one in options.needs),
        env_path=environment.variables.get("PATH", ""),
        git_starts_programs=git_starts_programs(workspace),
    )
    explanation = explain(asked, situation)
    _tell(_problems(list(loaded.values())))
    if options.json:
        return _write_line(encode(_as_json(explanation, asked, situation)).decode())
    return _write_line("\n".join(_as_text(explanation, asked, situation, how)))


def _containment(chosen: SandboxLevel | None, setting: str) -> tuple[SandboxLevel, str]:
    if chosen is not None:
        return chosen, "as given"
    if setting == "off":
        return "none", 'the setting "sandbox" is "off"'
    from agent_core.workspace.sandbox import probe  # noqa: PLC0415 - starts programs to find out

    found = probe()
    return found.level, found.why_not_full or found.how


def _as_text(
    explanation: Explanation, asked: CommandAccess, situation: PolicyContext, how: str
) -> list[str]:
    rule = explanation.decision.rule
    lines = [
        f"verdict      {explanation.verdict}",
        f"why          {explanation.decision.reason}",
        f"rule         {_shown(rule) if rule is not None else 'none'}",
        f"mode         {situation.mode}{'' if situation.trusted else ' (not trusted: as plan)'}",
        f"containment  {situation.containment} ({how})",
        f"command      {asked.command!r}",
    ]
    if explanation.unclear is not None:
        lines.append(f"read as      not plain: {explanation.unclear}")
        lines += [f"mentions     {shlex.join(argv)!r}" for argv in explanation.mentions]
    for part in explanation.parts:
        lines += _part_lines(part)
    if explanation.proposal is not None:
        lines.append(f"would allow  {encode(entry_of(explanation.proposal)).decode()}")
    return lines


def _part_lines(part: CommandExplanation) -> list[str]:
    by = f", allowed by {part.rule}" if part.rule is not None else ""
    lines = [
        f"read as      {list(part.argv)!r} starts {part.program or 'nothing that a rule may name'}{by}"
    ]
    if part.why_no_rule is not None:
        lines.append(f"             {part.why_no_rule}")
    return lines


def _as_json(
    explanation: Explanation, asked: CommandAccess, situation: PolicyContext
) -> JsonObject:
    rule = explanation.decision.rule
    parts: list[JsonValue] = [
        {
            "argv": part.argv,
            "program": part.program,
            "rule": part.rule,
            "whyNoRule": part.why_no_rule,
        }
        for part in explanation.parts
    ]
    return {
        "verdict": explanation.verdict,
        "reason": explanation.decision.reason,
        "rule": None if rule is None else _entry(rule),
        "mode": situation.mode,
        "trusted": situation.trusted,
        "containment": situation.containment,
        "command": asked.command,
        "plain": explanation.unclear is None,
        "unclear": explanation.unclear,
        "parts": parts,
        "mentions": explanation.mentions,
        "wouldAllow": None if explanation.proposal is None else _entry(explanation.proposal),
    }


def _list(loaded: dict[RulesOrigin, LoadedRulesFile], options: argparse.Namespace) -> int:
    rules = [rule for one in loaded.values() for rule in one.rules]
    problems = _problems(list(loaded.values()))
    if options.json:
        entries: list[JsonValue] = [_entry(rule) for rule in rules]
        return _write_line(encode({"rules": entries, "problems": problems}).decode())
    _tell(problems)
    return _write_line("\n".join(_shown(rule) for rule in rules) if rules else "no rules")


def _add(
    options: argparse.Namespace, paths: AppPaths, workspace: Path, environment: Environment
) -> int:
    """Add a rule about commands that begin with some words to a file of the user.

    Raises:
        UsageError: There are no words, or no rule can hold for them.
        ConfigError: The file cannot be changed.
    """
    argv: list[str] = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
    if len(argv) == 1:
        argv = shlex.split(argv[0])
    if not argv:
        message = f"name a command. example: tiller policy {options.verb} npm test"
        raise UsageError(message)
    origin: RulesOrigin = "project" if options.project else "user"
    variables = environment.variables
    ground = RulesFileContext(
        origin=origin, roots=(workspace,), env_path=variables.get("PATH", defpath)
    )
    rule = command_rule(tuple(argv), verdict=options.verb, scope=origin, ground=ground)
    path = _files(paths, workspace)[origin]
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    save_rule(path, rule)
    done = "Allowed" if options.verb == "allow" else "Denied"
    where = f"in {workspace}" if options.project else "in all folders"
    return _write_line(
        f"{done} {where}: {shlex.join(argv)} …\nRemove it with: tiller policy rm {rule.id}"
    )


def _remove(rule_id: str, paths: AppPaths, workspace: Path) -> int:
    """Remove a rule from the user's own files; that of the repository is not changed."""
    files = _files(paths, workspace)
    mine = [files[one] for one in ("user", "project") if files[one].exists()]
    # Every file is changed: the same answer may stand in both.
    removed = [remove_rule(path, rule_id) for path in mine]
    if any(removed):
        return _write_line(f"Removed {rule_id}")
    complain("policy", f"rule {rule_id!r} of yours not found; see `tiller policy list`")
    return FAILED


def _shown(rule: Rule) -> str:
    about = [shlex.join(rule.argv_prefix) if rule.argv_prefix else None, rule.path, rule.mcp]
    host = f"host {rule.host}" if rule.host else None
    what = " ".join(one for one in (*about, host) if one) or "anything"
    pin = f"  [{rule.program}]" if rule.program else ""
    return f"{rule.id}  ({rule.scope}) {rule.verdict} {rule.tool}: {what!r}{pin}"


def _entry(rule: Rule) -> JsonObject:
    return {**entry_of(rule), "scope": rule.scope}


def _problems(loaded: list[LoadedRulesFile]) -> list[str]:
    return [str(problem) for one in loaded for problem in one.problems]


def _tell(problems: list[str]) -> None:
    for problem in problems:
        _ = sys.stderr.write(f"{problem}\n")


def _write_line(text: str) -> int:
    _ = sys.stdout.write(f"{text}\n")
    return DONE
