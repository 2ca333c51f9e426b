"""The wire vocabulary: every shape of the `agent/…` protocol, its tables, and how to read and write them.

Each name can be imported from here; only the module that it lives in is loaded, because building a few hundred
shapes costs more than answering a prompt. The stub beside this file gives type checkers the same names.
"""

from collections.abc import Mapping
from importlib import import_module

_NAMES: Mapping[str, str] = {
    "base": """
        CLEARABLE Clearable SafeCount UncheckedJson UncheckedJsonObject FailFastList Marker Timestamp NonNegativeNumber Seq
        SessionParams Token Uint Vendor VendorWord WireModel at_most tagged_union dump
        wire_name
    """,
    "parsing": """
        ValidationIssue validation_issue parse prepare
    """,
    "errors": """
        ERROR_KINDS ERROR_MEANINGS ErrorData ErrorKind KilledProcess RunError RunStatus
    """,
    "blocks": """
        Block ContentBlocks Diagnostic DiagnosticsBlock DiffBlock ImageBlock Position Range
        ResourceBlock SelectionBlock SkillBlock TextBlock VendorBlock
    """,
    "changes": """
        ChangeCounts ChangeSet ChangesListParams ChangesResolveParams ChangesResolveResult
        ChangesShowParams Checkpoint CheckpointListResult CheckpointPreviewParams
        CheckpointPreviewResult CheckpointRestoreParams CheckpointRestoreResult
        CheckpointScope DocumentPrecondition EditLabel EditRequest EditResult
        EditedDocument FileChange FileHashes Hunk PreviewedFile Resolution Resolved
        SkippedFile
    """,
    "permissions": """
        Answer AnsweredResult ChangeSubject CommandSubject FolderTrust ParsedCommand PermissionAnswer
        PermissionOption PermissionRequest PermissionRespondParams PermissionRulesParams
        PermissionRulesResult PermissionSubject Question QuestionAnswer QuestionLine
        QuestionOption QuestionRespondParams Rule RuleDraft Sandbox ServerSubject TargetSubject
        TrustSubject
        VendorSubject
        Verdict
    """,
    "session": """
        Activity Attendant BashActivity BudgetUse Budgets CheckpointCount ClientRole
        CompactionActivity CompactionReason ConfigChange ContextUse Cost DocumentOutcome
        EditItem EndItem History Item MessageDelivery MessageItem MessageRole Mode
        QueueItem QueueMode RetryActivity Root RunView SessionConfig SessionInfo
        SessionState Snapshot SpentUsage StopReason SummaryItem Thinking ThoughtItem
        TokenUse ToolItem ToolStatus Usage
    """,
    "sessions": """
        ConfigureParams ConfigureResult Empty ForkedSession OutputRange SessionCloseParams
        SessionDeleteParams SessionExportParams SessionExportResult SessionForkParams
        SessionLabelParams SessionListParams SessionListResult SessionNavigateParams
        SessionNavigateResult SessionOpenParams SessionReadParams SessionReadResult
        SessionRenameParams SessionStatsParams SessionStatsResult SessionTreeParams
        SessionTreeResult ToolCallCount TreeNode
    """,
    "runs": """
        BashParams BashResult CompactParams CompactResult EditorContext EditorFocus
        Finding FollowUpParams IfIdle PromptAccepted PromptParams QueueOp
        QueueUpdateParams QueueUpdateResult ReviewParams RunCancelParams RunCancelResult
        RunResult RunRetryParams SteerParams
    """,
    "catalogue": """
        AuthAccount AuthLoginParams AuthLoginResult AuthLogoutParams AuthState
        AuthStatusParams AuthStatusResult Command CommandCompleteParams
        CommandCompleteResult CommandCompletion CommandListParams CommandListResult
        DaemonStatus LoadedResource ModelChoice ModelCycleParams ModelEntry
        ModelListParams ModelListResult ModelPrices RegisteredTool ResourceProblem
        ResourcesReloadParams ResourcesReloadResult SessionStatus StatusParams
        StatusResult ThinkingCycleParams ThinkingCycleResult ToolsRegisterParams
        ToolsRegisterResult VersionTable
    """,
    "extensions": """
        ExtensionFlag ExtensionKey ExtensionListParams ExtensionListResult
        ExtensionPressParams ExtensionPressResult ExtensionRenderParams
        ExtensionRenderResult ExtensionRenderer StandingView
    """,
    "editor": """
        DiagnosticsItem DiagnosticsParams DiagnosticsResult DocumentsReadParams
        DocumentsReadResult DocumentsSaveParams DocumentsSaveResult LspRequestParams
        SaveItem SavedDocument TrustParams
    """,
    "capabilities": """
        AgentClientCaps AgentOptions AgentServerCaps ClientName DocumentCaps EditCaps
        EditOptions EventCaps EventDetail PROTOCOL_LEVEL PROTOCOL_VERSION PermissionCaps
        PermissionOptions PlainOptions QuestionCaps ServerLimits ServerName SessionById
        SessionOptions UriPrefix VersionCaps merge_capabilities
    """,
    "subscription": """
        AckParams EventsFrame FRAMES SubscriptionFrame GapFrame HeartbeatFrame SnapshotFrame
        SubscribeParams SubscribeResult
    """,
    "event_base": """
        EventBase ItemEvent MessageEvent RangedItemEvent RunEvent SessionEvent TurnEvent
    """,
    "run_events": """
        ChangesUpdated CompactionEnded CompactionStarted EditApplied EditConflict
        EditEvent EditProposed EditRejected EditSaved EditUndone MessageDelta MessageEnded
        MessageStarted PlanStep PlanUpdated RetryEnded RetryStarted RunEnded RunStarted
        SubagentEnded SubagentStarted ThoughtDelta ThoughtEnded ThoughtStarted ToolEnded
        ToolInputDelta ToolOutputDelta ToolRunning ToolStarted TurnEnded TurnStarted
    """,
    "session_events": """
        BashEnded BashOutput BashStarted CheckpointCreated CheckpointRestored EntryLabelled
        ErrorRaised ExtensionErrorRaised LeafMoved ModelChanged NoticeGiven PermissionRequested
        PermissionResolved QuestionRequested QuestionResolved QueueChanged
        SessionClientsChanged SessionConfigChanged SessionRootsChanged SessionStateChanged
        SessionTitleChanged SessionTrustChanged SessionUsageChanged UiEvent
    """,
    "events": """
        EVENTS EventShape check_event
    """,
    "methods": """
        CheckpointListParams METHODS Method PermissionDialogResult PromptResult
    """,
}

_HOMES: Mapping[str, str] = {
    name: module for module, names in _NAMES.items() for name in names.split()
}


def __getattr__(name: str) -> object:
    """Load a name from its module on first use."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List what can be imported from here."""
    return sorted(_HOMES)
