"""The table of methods: every request and notification of the protocol, with its params and result."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from agent_core.kernel.values import Value
from tiller_server.lsp.wire import (
    catalogue,
    changes,
    editor,
    extensions,
    permissions,
    runs,
    sessions,
    subscription,
)
from tiller_server.lsp.wire.base import Json, SessionParams, WireModel
from tiller_server.lsp.wire.session import SessionInfo, Snapshot

__all__ = ["METHODS", "CheckpointListParams", "Method", "PermissionShown", "PromptResult"]

Direction = Literal["client→server", "server→client"]
Kind = Literal["request", "notification"]


class CheckpointListParams(SessionParams):
    """Lists the checkpoints of a session."""


PromptResult: TypeAlias = runs.PromptAccepted | runs.RunResult
"""The acknowledgement, or with `wait` how the run ended."""
PermissionShown: TypeAlias = permissions.PermissionAnswer | None
QuestionShown: TypeAlias = permissions.QuestionAnswer | None


class Method(Value, frozen=True, kw_only=True):
    """One method of the protocol."""

    name: str
    kind: Kind
    direction: Direction
    params: type[WireModel]
    result: object
    """A shape, a union of shapes, or None for a notification."""


def _asked(name: str, params: type[WireModel], result: object) -> Method:
    return Method(
        name=name, kind="request", direction="client→server", params=params, result=result
    )


def _told(name: str, params: type[WireModel]) -> Method:
    return Method(
        name=name, kind="notification", direction="client→server", params=params, result=None
    )


def _asking(name: str, params: type[WireModel], result: object) -> Method:
    return Method(
        name=name, kind="request", direction="server→client", params=params, result=result
    )


def _telling(name: str, params: type[WireModel]) -> Method:
    return Method(
        name=name, kind="notification", direction="server→client", params=params, result=None
    )


_ALL = (
    _asked("agent/session/open", sessions.SessionOpenParams, Snapshot),
    _asked("agent/session/list", sessions.SessionListParams, sessions.SessionListResult),
    _asked("agent/session/read", sessions.SessionReadParams, sessions.SessionReadResult),
    _asked("agent/session/configure", sessions.ConfigureParams, sessions.ConfigureResult),
    _asked("agent/session/fork", sessions.SessionForkParams, sessions.ForkedSession),
    _asked("agent/session/close", sessions.SessionCloseParams, sessions.Empty),
    _asked("agent/session/delete", sessions.SessionDeleteParams, sessions.Empty),
    _asked("agent/session/export", sessions.SessionExportParams, sessions.SessionExportResult),
    _asked("agent/session/tree", sessions.SessionTreeParams, sessions.SessionTreeResult),
    _asked(
        "agent/session/navigate", sessions.SessionNavigateParams, sessions.SessionNavigateResult
    ),
    _asked("agent/session/label", sessions.SessionLabelParams, sessions.Empty),
    _asked("agent/session/rename", sessions.SessionRenameParams, SessionInfo),
    _asked("agent/session/stats", sessions.SessionStatsParams, sessions.SessionStatsResult),
    _asked("agent/subscribe", subscription.SubscribeParams, subscription.SubscribeResult),
    _told("agent/ack", subscription.AckParams),
    _asked("agent/prompt", runs.PromptParams, PromptResult),
    _asked("agent/steer", runs.SteerParams, runs.PromptAccepted),
    _asked("agent/followUp", runs.FollowUpParams, runs.PromptAccepted),
    _asked("agent/queue/update", runs.QueueUpdateParams, runs.QueueUpdateResult),
    _asked("agent/run/cancel", runs.RunCancelParams, runs.RunCancelResult),
    _asked("agent/run/retry", runs.RunRetryParams, runs.PromptAccepted),
    _asked("agent/compact", runs.CompactParams, runs.CompactResult),
    _asked("agent/bash", runs.BashParams, runs.BashResult),
    _asked("agent/review", runs.ReviewParams, runs.RunResult),
    _asked("agent/changes/list", changes.ChangesListParams, changes.ChangeSet),
    _asked("agent/changes/resolve", changes.ChangesResolveParams, changes.ChangesResolveResult),
    _asked("agent/checkpoint/list", CheckpointListParams, changes.CheckpointListResult),
    _asked(
        "agent/checkpoint/preview",
        changes.CheckpointPreviewParams,
        changes.CheckpointPreviewResult,
    ),
    _asked(
        "agent/checkpoint/restore",
        changes.CheckpointRestoreParams,
        changes.CheckpointRestoreResult,
    ),
    _asked(
        "agent/permission/respond",
        permissions.PermissionRespondParams,
        permissions.AnsweredResult,
    ),
    _asked(
        "agent/permission/rules",
        permissions.PermissionRulesParams,
        permissions.PermissionRulesResult,
    ),
    _asked("agent/question/respond", permissions.QuestionRespondParams, permissions.AnsweredResult),
    _asked("agent/model/list", catalogue.ModelListParams, catalogue.ModelListResult),
    _asked("agent/model/cycle", catalogue.ModelCycleParams, catalogue.ModelChoice),
    _asked("agent/thinking/cycle", catalogue.ThinkingCycleParams, catalogue.ThinkingCycleResult),
    _asked("agent/command/list", catalogue.CommandListParams, catalogue.CommandListResult),
    _asked(
        "agent/command/complete",
        catalogue.CommandCompleteParams,
        catalogue.CommandCompleteResult,
    ),
    _asked(
        "agent/resources/reload",
        catalogue.ResourcesReloadParams,
        catalogue.ResourcesReloadResult,
    ),
    _asked("agent/extension/list", extensions.ExtensionListParams, extensions.ExtensionListResult),
    _asked(
        "agent/extension/press", extensions.ExtensionPressParams, extensions.ExtensionPressResult
    ),
    _asked(
        "agent/extension/render",
        extensions.ExtensionRenderParams,
        extensions.ExtensionRenderResult,
    ),
    _asked("agent/tools/register", catalogue.ToolsRegisterParams, catalogue.ToolsRegisterResult),
    _asked("agent/auth/status", catalogue.AuthStatusParams, catalogue.AuthStatusResult),
    _asked("agent/auth/login", catalogue.AuthLoginParams, catalogue.AuthLoginResult),
    _asked("agent/auth/logout", catalogue.AuthLogoutParams, catalogue.AuthStatusResult),
    _asked("agent/status", catalogue.StatusParams, catalogue.StatusResult),
    _told("agent/editorContext", runs.EditorContext),
    _told("agent/trust", editor.TrustParams),
    _asking("agent/permission", permissions.PermissionRequest, PermissionShown),
    _asking("agent/question", permissions.Question, QuestionShown),
    _asking("agent/edit/apply", changes.EditRequest, changes.EditResult),
    _asking("agent/documents/save", editor.DocumentsSaveParams, editor.DocumentsSaveResult),
    _asking("agent/documents/read", editor.DocumentsReadParams, editor.DocumentsReadResult),
    _asking("agent/diagnostics", editor.DiagnosticsParams, editor.DiagnosticsResult),
    _asking("agent/lsp/request", editor.LspRequestParams, Json),
    _telling("agent/changes/show", changes.ChangesShowParams),
)

METHODS: Mapping[str, Method] = {method.name: method for method in _ALL}
