"""Dialogs with the user: what may be done, what is meant, and the rules that answer for them."""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, Tag, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    Json,
    Many,
    Moment,
    Vendor,
    VendorWord,
    WireModel,
    at_most,
    by_word,
)

__all__ = [
    "Answer",
    "AnsweredResult",
    "ChangeSubject",
    "CommandSubject",
    "FolderTrust",
    "ParsedCommand",
    "PermissionAnswer",
    "PermissionOption",
    "PermissionRequest",
    "PermissionRespondParams",
    "PermissionRulesParams",
    "PermissionRulesResult",
    "PermissionSubject",
    "Question",
    "QuestionAnswer",
    "QuestionLine",
    "QuestionOption",
    "QuestionRespondParams",
    "Rule",
    "RuleDraft",
    "Sandbox",
    "ServerSubject",
    "TargetSubject",
    "TrustSubject",
    "VendorSubject",
    "Verdict",
]

Verdict = TypeAliasType("Verdict", Literal["allow", "ask", "deny"] | Vendor)
Sandbox = TypeAliasType("Sandbox", Literal["full", "partial", "none"] | Vendor)
MAX_ANSWERS = 1000
Answer = bool | str | Many[str]


class Rule(WireModel):
    """A standing answer of the user."""

    id: str
    tool: str
    argv_prefix: Many[str] | None = None
    path: str | None = None
    host: str | None = None
    mcp: str | None = None
    verdict: Verdict
    scope: Literal["run", "session", "project", "user"] | Vendor
    match: Many[str]
    """Examples that the rule must cover, checked when it is added."""
    not_match: Many[str]
    """Examples that it must not cover."""


class RuleDraft(WireModel):
    """A rule to add (tool, verdict), or the id of one to remove."""

    id: str | None = None
    tool: str | None = None
    argv_prefix: Many[str] | None = None
    path: str | None = None
    host: str | None = None
    mcp: str | None = None
    verdict: Verdict | None = None
    scope: Literal["run", "session", "project", "user"] | Vendor | None = None
    match: Many[str] | None = None
    not_match: Many[str] | None = None


class ParsedCommand(WireModel):
    """One command of a shell line, as far as it could be read."""

    argv: Many[str]
    key: str | None = None
    reads: Many[str] | None = None
    writes: Many[str] | None = None
    network: bool | None = None


class CommandSubject(WireModel):
    """A command that wants to run."""

    type: Literal["command"] = "command"
    argv: Many[str] | None = None
    command: str
    cwd: str
    plain: bool
    sandbox: Sandbox
    parsed: Many[ParsedCommand]
    needs: Many[str] | None = None
    """What containment would deny and the model asks for: `network`, `sockets`, `gitConfig`."""


class ChangeSubject(WireModel):
    """An edit that wants to be made."""

    type: Literal["edit"] = "edit"
    change_set: str
    uri: str | None = None
    tool: str | None = None
    input: Json = None
    sandbox: Sandbox | None = None


class TargetSubject(WireModel):
    """Anything else with a target: a file to delete, an address to fetch, a tool of another server."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    type: Literal["delete", "fetch", "mcp", "outsideRoot", "secret", "tool"]
    uri: str | None = None
    tool: str | None = None
    input: Json = None
    sandbox: Sandbox | None = None


class TrustSubject(WireModel):
    """A folder that wants to configure the agent and to be changed."""

    type: Literal["trust"] = "trust"
    folder: str
    added: Many[str]
    """What came since the user trusted it, by path relative to it; all three are empty when they said nothing of it yet."""
    removed: Many[str]
    changed: Many[str]
    difference: str
    """How texts differ from those that were trusted, as a unified diff."""


class ServerSubject(WireModel):
    """A server of the Model Context Protocol whose tools want to be used."""

    type: Literal["server"] = "server"
    server: str
    way: str
    """How it is reached, and what holds it in."""
    source: str
    """The file that names it, as a URI."""
    added: Many[str]
    """Tools that nobody approved yet."""
    removed: Many[str]
    changed: Many[str]
    unasked: Many[str]
    """Tools that would run without a question each time, since the server marks them as read-only."""
    difference: str
    """All that the server says of new tools, and how it differs for those that have changed."""


class VendorSubject(WireModel):
    """A subject of a vendor's own type; kept whole."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    type: Annotated[VendorWord, Field(pattern="^_")]


_AnySubject = Annotated[
    Annotated[CommandSubject, Tag("command")]
    | Annotated[ChangeSubject, Tag("edit")]
    | Annotated[TargetSubject, Tag("delete")]
    | Annotated[TargetSubject, Tag("fetch")]
    | Annotated[TargetSubject, Tag("mcp")]
    | Annotated[TargetSubject, Tag("outsideRoot")]
    | Annotated[TargetSubject, Tag("secret")]
    | Annotated[TargetSubject, Tag("tool")]
    | Annotated[TrustSubject, Tag("trust")]
    | Annotated[ServerSubject, Tag("server")]
    | Annotated[VendorSubject, Tag("_")],
    by_word(
        "type",
        "command",
        "edit",
        "delete",
        "fetch",
        "mcp",
        "outsideRoot",
        "secret",
        "tool",
        "trust",
        "server",
        vendor=True,
    ),
]

PermissionSubject = TypeAliasType("PermissionSubject", _AnySubject)


class PermissionOption(WireModel):
    """One way to answer."""

    id: str
    kind: (
        Literal[
            "allowOnce",
            "allowRun",
            "allowSession",
            "allowProject",
            "allowUser",
            "rejectOnce",
            "rejectAlways",
        ]
        | Vendor
    )
    label: str
    rule: Rule | None = None


class PermissionRequest(WireModel):
    """Asks the user whether something may be done."""

    request: str
    session: str
    run: str
    item: str
    title: str
    description: str | None = None
    risk: Literal["low", "medium", "high"] | Vendor
    since: Moment
    expires: Moment | None = None
    subject: PermissionSubject
    options: Many[PermissionOption]
    default: str


class PermissionAnswer(WireModel):
    """The option that the user took; null instead of this denies once."""

    option: str
    note: str | None = None


class PermissionRespondParams(WireModel):
    """Answers a permission request; the first answer wins."""

    request: str
    option: str
    note: str | None = None
    scope: str | None = None


class AnsweredResult(WireModel):
    """Whether the answer came in time, and who was faster."""

    status: Literal["recorded", "alreadyResolved", "expired"] | Vendor
    by: str | None = None


class PermissionRulesParams(WireModel):
    """Lists, adds or removes standing answers."""

    op: Literal["list", "add", "remove"] | Vendor
    rule: RuleDraft | None = None

    @model_validator(mode="after")
    def _rule_fits(self) -> "PermissionRulesParams":
        rule = self.rule
        if self.op == "add" and (rule is None or rule.tool is None or rule.verdict is None):
            raise PydanticCustomError("shape", "have a rule with tool and verdict to add")
        if self.op == "remove" and (rule is None or rule.id is None):
            raise PydanticCustomError("shape", "have a rule with the id to remove")
        return self


class PermissionRulesResult(WireModel):
    """The rules in force afterwards."""

    rules: Many[Rule]


class QuestionOption(WireModel):
    """One thing to choose."""

    id: str
    label: str
    description: str | None = None


class QuestionLine(WireModel):
    """One question of a form."""

    id: str
    text: str
    kind: Literal["choice", "text", "confirm"] | Vendor
    options: Many[QuestionOption] | None = None
    default: Json = None


class Question(WireModel):
    """Asks the user what is meant."""

    request: str
    session: str
    run: str
    questions: Many[QuestionLine]
    blocking: bool
    since: Moment | None = None
    expires: Moment | None = None
    """When silence becomes the answer."""


class QuestionAnswer(WireModel):
    """The answers by question id, or the word that there are none."""

    answers: Annotated[dict[str, Answer], at_most(MAX_ANSWERS)] | None = None
    cancelled: bool | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "QuestionAnswer":
        if (self.answers is None) != (self.cancelled is True):
            raise PydanticCustomError("shape", "have either answers or cancelled: true")
        return self


class QuestionRespondParams(QuestionAnswer):
    """Answers a question; the first answer wins."""

    request: str


class FolderTrust(WireModel):
    """Whether the user trusts a folder."""

    folder: str
    trusted: bool
