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
from tiller_server.lsp.wire.base import SessionParams, UncheckedJson, WireModel
from tiller_server.lsp.wire.session import SessionInfo, Snapshot

__all__ = ["METHODS", "CheckpointListParams", "Method", "PermissionDialogResult", "PromptResult"]

MessageDirection = Literal["client→server", "server→client"]
MethodKind = Literal["request", "notification"]


class CheckpointListParams(SessionParams):
    """Lists the checkpoints of a session."""


PromptResult: TypeAlias = runs.PromptAccepted | runs.RunResult
"""The acknowledgement, or with `wait` how the run ended."""
PermissionDialogResult: TypeAlias = permissions.PermissionAnswer | None
QuestionDialogResult: TypeAlias = permissions.QuestionAnswer | None


class Method(Value, frozen=True, kw_only=True):
    """One method of the protocol."""

    name: str
    kind: MethodKind
    direction: MessageDirection
    params: type[WireModel]
    result: object
    """A shape, a union of shapes, or None for a notification."""


def _request(name: str, params: type[WireModel], result: object) -> Method:
    return Method(
        name=name, kind="request", direction="client→server", params=params, result=result
    )


def _notification(name: str, params: type[WireModel]) -> Method:
    return Method(
        name=name, kind="notification", direction="client→server", params=params, result=None
    )


def _client_request(name: str, params: type[WireModel], result: object) -> Method:
    return Method(
        name=name, kind="request", direction="server→client", params=params, result=result
    )


def _client_notification(name: str, params: type[WireModel]) -> Method:
    return Method(
        name=name, kind="notification", direction="server→client", params=params, result=None
    )


_ALL = (
    _request("agent/session/open", sessions.SessionOpenParams, Snapshot),
    _request("agent/session/list", sessions.SessionListParams, sessions.SessionListResult),
    _request("agent/session/read", sessions.SessionReadParams, sessions.SessionReadResult),
    _request("agent/session/configure", sessions.ConfigureParams, sessions.ConfigureResult),
    _request("agent/session/fork", sessions.SessionForkParams, sessions.ForkedSession),
    _request("agent/session/close", sessions.SessionCloseParams, sessions.Empty),
    _request("agent/session/delete", sessions.SessionDeleteParams, sessions.Empty),
    _request("agent/session/export", sessions.SessionExportParams, sessions.SessionExportResult),
    _request("agent/session/tree", sessions.SessionTreeParams, sessions.SessionTreeResult),
    _request(
        "agent/session/navigate", sessions.SessionNavigateParams, sessions.SessionNavigateResult
    ),
    _request("agent/session/label", sessions.SessionLabelParams, sessions.Empty),
    _request("agent/session/rename", sessions.SessionRenameParams, SessionInfo),
    _request("agent/session/stats", sessions.SessionStatsParams, sessions.SessionStatsResult),
    _request("agent/subscribe", subscription.SubscribeParams, subscription.SubscribeResult),
    _notification("agent/ack", subscription.AckParams),
    _request("agent/prompt", runs.PromptParams, PromptResult),
    _request("agent/steer", runs.SteerParams, runs.PromptAccepted),
    _request("agent/followUp", runs.FollowUpParams, runs.PromptAccepted),
    _request("agent/queue/update", runs.QueueUpdateParams, runs.QueueUpdateResult),
    _request("agent/run/cancel", runs.RunCancelParams, runs.RunCancelResult),
    _request("agent/run/retry", runs.RunRetryParams, runs.PromptAccepted),
    _request("agent/compact", runs.CompactParams, runs.CompactResult),
    _request("agent/bash", runs.BashParams, runs.BashResult),
    _request("agent/review", runs.ReviewParams, runs.RunResult),
    _request("agent/changes/list", changes.ChangesListParams, changes.ChangeSet),
    _request("agent/changes/resolve", changes.ChangesResolveParams, changes.ChangesResolveResult),
    _request("agent/checkpoint/list", CheckpointListParams, changes.CheckpointListResult),
    _request(
        "agent/checkpoint/preview",
        changes.CheckpointPreviewParams,
        changes.CheckpointPreviewResult,
    ),
    _request(
        "agent/checkpoint/restore",
        changes.CheckpointRestoreParams,
        changes.CheckpointRestoreResult,
    ),
    _request(
        "agent/permission/respond",
        permissions.PermissionRespondParams,
        permissions.AnsweredResult,
    ),
    _request(
        "agent/permission/rules",
        permissions.PermissionRulesParams,
        permissions.PermissionRulesResult,
    ),
    _request(
        "agent/question/respond", permissions.QuestionRespondParams, permissions.AnsweredResult
    ),
    _request("agent/model/list", catalogue.ModelListParams, catalogue.ModelListResult),
    _request("agent/model/cycle", catalogue.ModelCycleParams, catalogue.ModelChoice),
    _request("agent/thinking/cycle", catalogue.ThinkingCycleParams, catalogue.ThinkingCycleResult),
    _request("agent/command/list", catalogue.CommandListParams, catalogue.CommandListResult),
    _request(
        "agent/command/complete",
        catalogue.CommandCompleteParams,
        catalogue.CommandCompleteResult,
    ),
    _request(
        "agent/resources/reload",
        catalogue.ResourcesReloadParams,
        catalogue.ResourcesReloadResult,
    ),
    _request(
        "agent/extension/list", extensions.ExtensionListParams, extensions.ExtensionListResult
    ),
    _request(
        "agent/extension/press", extensions.ExtensionPressParams, extensions.ExtensionPressResult
    ),
    _request(
        "agent/extension/render",
        extensions.ExtensionRenderParams,
        extensions.ExtensionRenderResult,
    ),
    _request("agent/tools/register", catalogue.ToolsRegisterParams, catalogue.ToolsRegisterResult),
    _request("agent/auth/status", catalogue.AuthStatusParams, catalogue.AuthStatusResult),
    _request("agent/auth/login", catalogue.AuthLoginParams, catalogue.AuthLoginResult),
    _request("agent/auth/logout", catalogue.AuthLogoutParams, catalogue.AuthStatusResult),
    _request("agent/status", catalogue.StatusParams, catalogue.StatusResult),
    _notification("agent/editorContext", runs.EditorContext),
    _notification("agent/trust", editor.TrustParams),
    _client_request("agent/permission", permissions.PermissionRequest, PermissionDialogResult),
    _client_request("agent/question", permissions.Question, QuestionDialogResult),
    _client_request("agent/edit/apply", changes.EditRequest, changes.EditResult),
    _client_request("agent/documents/save", editor.DocumentsSaveParams, editor.DocumentsSaveResult),
    _client_request("agent/documents/read", editor.DocumentsReadParams, editor.DocumentsReadResult),
    _client_request("agent/diagnostics", editor.DiagnosticsParams, editor.DiagnosticsResult),
    _client_request("agent/lsp/request", editor.LspRequestParams, UncheckedJson),
    _client_notification("agent/changes/show", changes.ChangesShowParams),
)

METHODS: Mapping[str, Method] = {method.name: method for method in _ALL}
