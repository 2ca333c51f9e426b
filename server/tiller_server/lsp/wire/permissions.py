"""Dialogs with the user: permissions, questions, and the rules that answer instead of the user."""

from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, Tag, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    FailFastList,
    Timestamp,
    UncheckedJson,
    Vendor,
    VendorWord,
    WireModel,
    at_most,
    tagged_union,
)
from tiller_server.lsp.wire.method import Method, client_request, request

__all__ = [
    "PERMISSION",
    "PERMISSION_RESPOND",
    "PERMISSION_RULES",
    "QUESTION",
    "QUESTION_RESPOND",
    "SERVED",
    "Answer",
    "AnsweredResult",
    "ChangeSubject",
    "CommandSubject",
    "FolderTrust",
    "ParsedCommand",
    "PermissionAnswer",
    "PermissionDialogResult",
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
Answer = bool | str | FailFastList[str]


class Rule(WireModel):
    """Permission rule: a stored decision of the user."""

    id: str
    tool: str
    argv_prefix: FailFastList[str] | None = None
    """First words of the commands that it covers."""
    path: str | None = None
    """Path or glob that it covers."""
    host: str | None = None
    """Host that it covers."""
    mcp: str | None = None
    """MCP tool that it covers."""
    verdict: Verdict
    scope: Literal["run", "session", "project", "user"] | Vendor
    """How long and where it holds."""
    match: FailFastList[str]
    """Examples that the rule must cover, checked when it is added."""
    not_match: FailFastList[str]
    """Examples that the rule must not cover."""


class RuleDraft(WireModel):
    """Rule to add (`tool` and `verdict` are required), or the `id` of a rule to remove."""

    id: str | None = None
    """Left out when a rule is added: made from its content."""
    tool: str | None = None
    argv_prefix: FailFastList[str] | None = None
    path: str | None = None
    host: str | None = None
    mcp: str | None = None
    verdict: Verdict | None = None
    scope: Literal["run", "session", "project", "user"] | Vendor | None = None
    """Left out: `session`."""
    match: FailFastList[str] | None = None
    not_match: FailFastList[str] | None = None


class ParsedCommand(WireModel):
    """One command of a shell line, as far as it can be parsed."""

    argv: FailFastList[str]
    key: str | None = None
    """Name under which rules know the command."""
    reads: FailFastList[str] | None = None
    """Files that it reads."""
    writes: FailFastList[str] | None = None
    """Files that it writes."""
    network: bool | None = None
    """Whether it uses the network."""


class CommandSubject(WireModel):
    """Command to run."""

    type: Literal["command"] = "command"
    argv: FailFastList[str] | None = None
    """Words of the command, when the line is a single command."""
    command: str
    """The shell line."""
    cwd: str
    """Working directory, as a URI."""
    plain: bool
    """Whether the line could be parsed completely."""
    sandbox: Sandbox
    """Containment in force for it."""
    parsed: FailFastList[ParsedCommand]
    needs: FailFastList[str] | None = None
    """Access that the command asks for beyond its containment: `network`, `sockets`, `gitConfig`."""


class ChangeSubject(WireModel):
    """Edit to make."""

    type: Literal["edit"] = "edit"
    change_set: str
    """Change set of the edit."""
    uri: str | None = None
    """File."""
    tool: str | None = None
    """Tool that edits."""
    input: UncheckedJson = None
    """Its arguments."""
    sandbox: Sandbox | None = None


class TargetSubject(WireModel):
    """Another target: a file to delete, an address to fetch, a tool of an MCP server."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    type: Literal["delete", "fetch", "mcp", "outsideRoot", "secret", "tool"]
    uri: str | None = None
    tool: str | None = None
    input: UncheckedJson = None
    """Arguments of the tool."""
    sandbox: Sandbox | None = None


class TrustSubject(WireModel):
    """Folder whose content would configure the agent."""

    type: Literal["trust"] = "trust"
    folder: str
    """Folder, as a URI."""
    added: FailFastList[str]
    """Paths, relative to the folder, that were added since the folder was trusted; this list, `removed` and `changed` are empty when there was no decision yet."""
    removed: FailFastList[str]
    """Paths that were removed since."""
    changed: FailFastList[str]
    """Paths that were changed since."""
    difference: str
    """Difference to the texts that were trusted, as a unified diff."""


class ServerSubject(WireModel):
    """MCP server whose tools are to be used."""

    type: Literal["server"] = "server"
    server: str
    """Name of the server."""
    way: str
    """How it is reached, and how it is contained."""
    source: str
    """File that names it, as a URI."""
    added: FailFastList[str]
    """Tools without an approval."""
    removed: FailFastList[str]
    """Tools that the server no longer has."""
    changed: FailFastList[str]
    """Tools whose description changed."""
    unasked: FailFastList[str]
    """Tools that would run without a question each time, because the server marks them as read-only."""
    difference: str
    """Full description of new tools, and the difference of changed ones."""


class VendorSubject(WireModel):
    """Subject of a vendor's own type (`type` begins with `_`); kept whole."""

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
    tagged_union(
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
    """Option of a permission request."""

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
    """Rule that this option would create."""


class PermissionRequest(WireModel):
    """Ask the user whether a tool call may go on."""

    request: str
    """Request id, for `agent/permission/respond`."""
    session: str
    """Session id."""
    run: str
    """Run that waits."""
    item: str
    """Item of the tool call."""
    title: str
    """Title of the dialog."""
    description: str | None = None
    """Why the user is asked."""
    risk: Literal["low", "medium", "high"] | Vendor
    """Risk of the action."""
    since: Timestamp
    """When it was asked."""
    expires: Timestamp | None = None
    """When silence counts as a refusal."""
    subject: PermissionSubject
    """Subject of the decision."""
    options: FailFastList[PermissionOption]
    """Possible answers."""
    default: str
    """Id of the option that counts when there is no answer."""


class PermissionAnswer(WireModel):
    """Option that the user chose; null in place of this object refuses once."""

    option: str
    """Id of an option."""
    note: str | None = None
    """Text of the user for the model."""


class PermissionRespondParams(WireModel):
    """Answer a permission request; the first answer wins."""

    request: str
    """Request id."""
    option: str
    """Id of an option."""
    note: str | None = None
    """Text of the user for the model."""
    scope: str | None = None
    """Extent of an allowance (`once`, `run`, `session`, `project`, `user`): the `allow` option of that extent is taken."""


class AnsweredResult(WireModel):
    """Whether the answer counts."""

    status: Literal["recorded", "alreadyResolved", "expired"] | Vendor
    """`alreadyResolved`: another answer was first; `expired`: the request no longer waits or is unknown."""
    by: str | None = None
    """Client that answered."""


class PermissionRulesParams(WireModel):
    """List, add or remove permission rules."""

    op: Literal["list", "add", "remove"] | Vendor
    """Operation."""
    rule: RuleDraft | None = None
    """Required for `add` and `remove`."""

    @model_validator(mode="after")
    def _rule_fits(self) -> "PermissionRulesParams":
        rule = self.rule
        if self.op == "add" and (rule is None or rule.tool is None or rule.verdict is None):
            raise PydanticCustomError("shape", "have a rule with tool and verdict to add")
        if self.op == "remove" and (rule is None or rule.id is None):
            raise PydanticCustomError("shape", "have a rule with the id to remove")
        return self


class PermissionRulesResult(WireModel):
    """Rules in force afterwards."""

    rules: FailFastList[Rule]
    """All rules in force."""


class QuestionOption(WireModel):
    """Option of a choice."""

    id: str
    label: str
    description: str | None = None


class QuestionLine(WireModel):
    """One line of a form."""

    id: str
    text: str
    kind: Literal["choice", "text", "confirm"] | Vendor
    """Decides the type of the answer: an option id or a list of them, a string, a boolean."""
    options: FailFastList[QuestionOption] | None = None
    """Options of a `choice`."""
    default: UncheckedJson = None
    """Answer that counts when the user gives none."""


class Question(WireModel):
    """Ask the user a form of questions."""

    request: str
    """Request id, for `agent/question/respond`."""
    session: str
    """Session id."""
    run: str
    """Run that asks."""
    questions: FailFastList[QuestionLine]
    """Lines of the form."""
    blocking: bool
    """Whether the run waits for the answer."""
    since: Timestamp | None = None
    """When it was asked."""
    expires: Timestamp | None = None
    """When the defaults count."""


class QuestionAnswer(WireModel):
    """Answers by line id, or `cancelled: true`: exactly one of both."""

    answers: Annotated[dict[str, Answer], at_most(MAX_ANSWERS)] | None = None
    """Answer of each line, by its id; a line that is left out takes its default."""
    cancelled: bool | None = None
    """True: the user declined."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "QuestionAnswer":
        if (self.answers is None) != (self.cancelled is True):
            raise PydanticCustomError("shape", "have either answers or cancelled: true")
        return self


class QuestionRespondParams(QuestionAnswer):
    """Answer a question; the first answer wins."""

    request: str
    """Request id."""


class FolderTrust(WireModel):
    """Whether the user trusts a folder."""

    folder: str
    """Folder, as a URI."""
    trusted: bool


PermissionDialogResult: TypeAlias = PermissionAnswer | None
QuestionDialogResult: TypeAlias = QuestionAnswer | None

PERMISSION_RESPOND: Final = request(
    "agent/permission/respond", PermissionRespondParams, AnsweredResult
)
PERMISSION_RULES: Final = request(
    "agent/permission/rules", PermissionRulesParams, PermissionRulesResult
)
QUESTION_RESPOND: Final = request("agent/question/respond", QuestionRespondParams, AnsweredResult)
PERMISSION: Final[Method[PermissionRequest, PermissionAnswer | None]] = client_request(
    "agent/permission", PermissionRequest, PermissionDialogResult
)
QUESTION: Final[Method[Question, QuestionAnswer | None]] = client_request(
    "agent/question", Question, QuestionDialogResult
)
SERVED: Final = (PERMISSION_RESPOND, PERMISSION_RULES, QUESTION_RESPOND)
"""Methods of this module that clients call, in the order of PROTOCOL.md."""
