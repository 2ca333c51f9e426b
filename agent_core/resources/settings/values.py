"""The keys of settings.json with their types and defaults."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from agent_core.events import PermissionMode, QueueMode, ThinkingLevel
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, decode, encode

CountSetting = Annotated[int, Field(ge=0)]
SecondsSetting = Annotated[float, Field(ge=0)]
Wait = Annotated[float, Field(gt=0)]
Paths = tuple[str, ...]
VariableName = Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*\*?|\*)$")]
AgentName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
BucketUrl = Annotated[
    str, Field(pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^/\s?#]+)*/?$", max_length=1024)
]
BucketAddress = Annotated[str, Field(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$", max_length=2048)]
RemoteWorkspace = Annotated[str, Field(pattern=r"^(ssh|docker|podman):[^\s:].*$", max_length=4096)]
DevContainerWorkspace = Annotated[str, Field(pattern=r"^devcontainer:/", max_length=4096)]
FullPath = Annotated[str, Field(pattern=r"^(/|~$|~/)")]


class SettingsGroup(BaseModel):
    """An object of settings: strict about types and names."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        strict=True,
    )


class PermissionSettings(SettingsGroup):
    """Permissions of tools, and questions to the user."""

    mode: PermissionMode = Field(default="ask", description="How much runs without a question.")
    fallback: Literal["ask", "deny", "rules"] = Field(
        default="ask", description="What answers when nobody can be asked."
    )
    timeout_s: SecondsSetting = Field(
        default=300, description="How long a question waits, in seconds."
    )


class ContainmentSettings(SettingsGroup):
    """Access of commands beyond the needs of tool chains; only in the user's own settings."""

    pass_variables: tuple[VariableName, ...] = Field(
        default=(),
        description="More variables of the environment for commands: names, or beginnings that end in *. A secret, and what makes programs run others, passes by its whole name only.",
    )
    read_paths: tuple[FullPath, ...] = Field(
        default=(),
        description="More folders and files of your home that contained commands may read, from / or ~; keys in them stay hidden.",
    )
    hide_paths: tuple[FullPath, ...] = Field(
        default=(),
        description="More folders and files that contained commands may not read, from / or ~.",
    )


class RetrySettings(SettingsGroup):
    """Trying a failed model call again."""

    enabled: bool = Field(default=True, description="Try again after a failure that may pass.")
    max_retries: CountSetting = Field(default=3, description="Tries after the first, per prompt.")
    base_delay_ms: CountSetting = Field(
        default=2000, description="First wait; doubles with each try."
    )
    max_delay_ms: CountSetting = Field(
        default=60000, description="Longest wait; beyond it the run ends."
    )


class ModelCompactionSettings(SettingsGroup):
    """Overrides for one model; null: as for all models."""

    reserve_tokens: CountSetting | None = Field(
        default=None, description="Room kept free for the answer."
    )
    keep_recent_tokens: CountSetting | None = Field(
        default=None, description="How much is kept word for word."
    )


class CompactionSettings(SettingsGroup):
    """Summing up a conversation that outgrows the context window."""

    enabled: bool = Field(default=True, description="Compact when the context fills up.")
    reserve_tokens: CountSetting = Field(
        default=16384, description="Room kept free for the answer."
    )
    keep_recent_tokens: CountSetting = Field(
        default=20000, description="How much is kept word for word."
    )
    model_overrides: Mapping[str, ModelCompactionSettings] = Field(
        default_factory=dict[str, ModelCompactionSettings],
        description="Other figures for single models, by provider/model.",
    )


class BranchSummarySettings(SettingsGroup):
    """Summing up a branch of the conversation that is left."""

    reserve_tokens: CountSetting = Field(
        default=16384, description="Room kept free beside the branch."
    )
    skip_prompt: bool = Field(
        default=False, description="Leave branches without offering to sum them up."
    )


class BashSettings(SettingsGroup):
    """The bash tool."""

    timeout_s: Wait = Field(
        default=600, description="Limit of a command that names none, in seconds."
    )
    prefix: str | None = Field(default=None, description="Shell text put before every command.")
    shell_path: str | None = Field(default=None, description="The bash to use.")


class ImageSettings(SettingsGroup):
    """Pictures in prompts and tool results."""

    auto_resize: bool = Field(default=True, description="Shrink what the provider would refuse.")
    block_images: bool = Field(default=False, description="Never send a picture to a provider.")
    max_bytes: Annotated[int, Field(gt=0)] = Field(
        default=4_718_592,
        description="A picture is sent when it has fewer bytes than this, as base64.",
    )


class StreamSettings(SettingsGroup):
    """How long a silent provider is waited for."""

    first_byte_timeout_s: Wait = Field(default=300, description="Until the first byte, in seconds.")
    idle_timeout_s: Wait = Field(default=30, description="Between two chunks, in seconds.")


class SteerSettings(SettingsGroup):
    """Handling of running processes when the user sends a message."""

    grace_s: SecondsSetting | None = Field(
        default=2, description="Seconds a process may go on; 0: none, null: to its end."
    )


class BudgetSettings(SettingsGroup):
    """Limits of one run, and of what one day may cost; null: none."""

    usd: SecondsSetting | None = Field(default=None, description="US dollars.")
    tokens: CountSetting | None = Field(default=None, description="Tokens of all kinds.")
    turns: CountSetting | None = Field(default=None, description="Answers of the model.")
    minutes: SecondsSetting | None = Field(default=None, description="Minutes of wall time.")
    day_usd: SecondsSetting | None = Field(
        default=None, description="US dollars of all model calls of one day."
    )
    folder_day_usd: SecondsSetting | None = Field(
        default=None, description="US dollars of the model calls of one day in this folder."
    )


class HookSettings(SettingsGroup):
    """Code of others that looks in on what happens."""

    timeout_s: Wait = Field(
        default=5, description="How long one hook may take for one event, in seconds."
    )
    long_timeout_s: Wait = Field(
        default=120, description="The same where hooks may ask a model: compaction, providers."
    )


class McpSettings(SettingsGroup):
    """Servers of the Model Context Protocol."""

    start_timeout_s: Wait = Field(
        default=30, description="How long a server may take to be ready, in seconds."
    )
    call_timeout_s: Wait = Field(
        default=120, description="How long one call of a tool may take, in seconds."
    )


class WebSettings(SettingsGroup):
    """The tools fetch and web_search. Hosts and the search service only in the user's own settings."""

    timeout_s: Wait = Field(default=30, description="How long one request may take, in seconds.")
    private_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts that fetch may reach although their addresses are private, such as localhost.",
    )
    search: Literal["brave", "tavily", "searxng"] | None = Field(
        default=None,
        description="Service for web search; brave and tavily take their key from BRAVE_API_KEY and TAVILY_API_KEY. null: no search.",
    )
    search_url: str | None = Field(
        default=None, description="Address of the service: the SearXNG instance, or another one."
    )


class TelemetrySettings(SettingsGroup):
    """Traces and metrics for an OpenTelemetry collector; only in the user's own settings."""

    enabled: bool = Field(
        default=False,
        description="Send traces and metrics over OTLP/HTTP; needs the extra otel (pip install 'tillerd[otel]').",
    )
    endpoint: str | None = Field(
        default=None,
        description="Address of the collector, such as http://localhost:4318. null: as OTEL_EXPORTER_OTLP_ENDPOINT says.",
    )
    content: bool = Field(
        default=False,
        description="Whether spans have prompts, answers, arguments and results of tools, without secrets.",
    )


class NotifySettings(SettingsGroup):
    """Webhook that is told when a person is needed; only in the user's own settings."""

    url: Annotated[str, Field(pattern=r"^https?://[^/?#\s]", max_length=2048)] | None = Field(
        default=None,
        description="Address that gets a POST with a title and a text, as ntfy takes it. null: none is sent.",
    )
    token_variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        default=None,
        description="Variable of the environment with a token for it, sent as Authorization: Bearer.",
    )
    request_after_s: SecondsSetting = Field(
        default=15,
        description="How long a permission request or a question may wait for an answer before it is sent, in seconds.",
    )
    run_after_s: SecondsSetting | None = Field(
        default=300,
        description="The end of a run is sent when it comes so many seconds after the last prompt or answer of a person; null: never. A failure is always sent.",
    )


class AttachmentSettings(SettingsGroup):
    """Where the images and files of sessions are stored; only in the user's own settings."""

    store: BucketUrl | None = Field(
        default=None,
        description="s3://BUCKET/PREFIX in an S3-compatible store; needs the extra s3 (pip install 'tillerd[s3]') and, in the environment, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the credentials of a machine of AWS. null: the folder beside the sessions.",
    )
    endpoint: BucketAddress | None = Field(
        default=None,
        description="Address of the store. null: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL of the environment, else AWS.",
    )
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}$")] | None = Field(
        default=None,
        description="Region of the bucket. null: AWS_REGION of the environment, else us-east-1.",
    )
    link_s: Annotated[int, Field(ge=1, le=604_800)] | None = Field(
        default=None,
        description="Seconds for which an address from GET /v1/blobs/SHA256/link of tiller web lets anyone read an attachment in the bucket. null: there are no such addresses.",
    )


class CompletionSettings(SettingsGroup):
    """Completion at the cursor of editors that show inline completions."""

    trigger: Literal["off", "invoked", "automatic"] = Field(
        default="invoked",
        description="When text is completed at the cursor: never, when you ask the editor for it, or also while you type.",
    )
    model: str | None = Field(
        default=None,
        description=(
            "The model that completes, as provider/id or a pattern; a small, fast one is best. null: the model of the session."
        ),
    )


class MemorySettings(SettingsGroup):
    """Memory of projects in which it is on; only in the user's own settings."""

    consolidate_after_minutes: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description=(
            "Minutes without a prompt after which the server has a model propose entries from the new prompts of a project, with"
            " the cheapest priced model of the provider in use. null: only `tiller memory consolidate` does it."
        ),
    )


class ExternalAgentSettings(SettingsGroup):
    """A program that speaks the Agent Client Protocol and works on tasks."""

    command: Annotated[str, Field(min_length=1)] = Field(description="The program.")
    args: tuple[str, ...] = Field(default=(), description="Its arguments.")
    env: Mapping[VariableName, str] = Field(
        default_factory=dict[str, str],
        description="Variables for it; ${NAME} stands for one of yours. It gets no others but PATH, HOME and the like.",
    )
    description: str = Field(default="", description="When to give it a task, for the model.")
    options: Mapping[str, str | bool] = Field(
        default_factory=dict[str, str | bool],
        description="Values of its own options, by id or category, such as model and mode.",
    )
    network: bool = Field(
        default=True, description="Whether it reaches the network; most need it for their model."
    )
    sandbox: Literal["auto", "off"] = Field(
        default="auto",
        description="Whether it is contained like commands; off only in the user's own settings.",
    )
    start_timeout_s: Wait = Field(
        default=60,
        description="How long each answer may take until its session is open, in seconds.",
    )
    idle_timeout_s: Wait = Field(
        default=1800, description="How long it may work without a message, in seconds."
    )


class ChatWorkspaceSettings(SettingsGroup):
    """A workspace that chats can be bound to."""

    folder: FullPath = Field(description="The folder.")
    model: str | None = Field(
        default=None, description="Model of new sessions. null: the default model."
    )
    mode: PermissionMode | None = Field(
        default=None, description="Permission mode of new sessions. null: permission.mode."
    )
    approvers: tuple[str, ...] | None = Field(
        default=None, description="Who may approve in it. null: the approvers of the app."
    )


class ChatAppSettings(SettingsGroup):
    """An app of a chat platform, and the people it serves."""

    workspaces: Mapping[AgentName, ChatWorkspaceSettings] = Field(
        default_factory=dict[str, ChatWorkspaceSettings],
        description="Workspaces by name; the first is that of chats that are not bound to another.",
    )
    people: tuple[str, ...] = Field(
        default=(), description='Ids of the people who may write to the bot; "*": everybody.'
    )
    approvers: tuple[str, ...] = Field(
        default=(), description="Ids of the people who may answer permission requests and plans."
    )
    admins: tuple[str, ...] = Field(
        default=(), description="Ids of the people who may bind chats to workspaces."
    )
    direct: bool = Field(default=True, description="Whether direct chats are served.")
    groups: bool = Field(default=True, description="Whether groups are served.")
    context_messages: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0,
        description="Number of the last messages of a group that are sent with a prompt.",
    )


class LarkSettings(ChatAppSettings):
    """The app of `tiller lark`; its secret comes from the environment or the keyring."""

    app_id: str | None = Field(default=None, description="Id of the app, such as cli_a1b2c3.")
    domain: str = Field(
        default="feishu",
        description="The installation: feishu, lark, or the address of another one.",
    )
    secret_variable: VariableName = Field(
        default="LARK_APP_SECRET", description="Variable of the environment with its secret."
    )


class SlackSettings(ChatAppSettings):
    """The app of `tiller slack`; its tokens come from the environment or the keyring."""

    app_token_variable: VariableName = Field(
        default="SLACK_APP_TOKEN",
        description="Variable of the environment with the token of Socket Mode (xapp-…).",
    )
    bot_token_variable: VariableName = Field(
        default="SLACK_BOT_TOKEN",
        description="Variable of the environment with the token of the bot (xoxb-…).",
    )


class ChannelsSettings(SettingsGroup):
    """Chat platforms; only in the user's own settings."""

    lark: LarkSettings = LarkSettings()
    slack: SlackSettings = SlackSettings()


class SettingsValues(SettingsGroup):
    """Everything in settings.json that this version understands."""

    default_provider: str | None = Field(default=None, description="Provider of the default model.")
    default_model: str | None = Field(default=None, description="Id of the default model.")
    default_thinking_level: ThinkingLevel = Field(
        default="medium", description="How much a model thinks unless told otherwise."
    )
    scoped_models: tuple[str, ...] = Field(default=(), description="Models to cycle through.")
    cache_retention: Literal["none", "short", "long"] = Field(
        default="short",
        description="How long providers keep what they were sent: unasked, their usual time, or their longest.",
    )
    permission: PermissionSettings = PermissionSettings()
    default_project_trust: Literal["ask", "always", "never"] = Field(
        default="ask", description="Whether the .tiller folder of a new workspace is used."
    )
    plan_review: Literal["off", "complex", "always"] = Field(
        default="complex",
        description="When the mode plan asks for a plan that you approve: never, for work of several steps, or always.",
    )
    workspace: RemoteWorkspace | DevContainerWorkspace | None = Field(
        default=None,
        description="The remote workspace of `tiller run` and `tiller chat` that name no folder: ssh:HOST:/path, docker:NAME:/path, podman:NAME:/path or devcontainer:/FOLDER.",
    )
    sandbox: Literal["auto", "off"] = Field(
        default="auto", description="Whether commands are contained."
    )
    containment: ContainmentSettings = ContainmentSettings()
    retry: RetrySettings = RetrySettings()
    compaction: CompactionSettings = CompactionSettings()
    branch_summary: BranchSummarySettings = BranchSummarySettings()
    steering_mode: QueueMode = Field(
        default="one-at-a-time", description="How steering is delivered."
    )
    follow_up_mode: QueueMode = Field(
        default="one-at-a-time", description="How follow-ups are delivered."
    )
    tool_execution: Literal["parallel", "sequential"] = Field(
        default="parallel", description="How safe tool calls of one answer run."
    )
    tool_concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        default=8, description="How many safe tool calls of one answer run at the same time."
    )
    tool_timeout_s: SecondsSetting | None = Field(
        default=600,
        description="How long one call of a tool of an extension may take, in seconds, without questions to you; 0 and null: no limit. MCP servers have mcp.callTimeoutS.",
    )
    max_turns: CountSetting | None = Field(
        default=150,
        description="Answers of the model in one run; then it is asked for a last one without tools. null: no limit.",
    )
    skip_on_steer: bool = Field(
        default=True, description="Skip calls that have not started when the user speaks."
    )
    default_tools: str | tuple[str, ...] = Field(
        default="default",
        description="A preset, or tool names; +name and -name change what is below.",
    )
    bash: BashSettings = BashSettings()
    images: ImageSettings = ImageSettings()
    stream: StreamSettings = StreamSettings()
    steer: SteerSettings = SteerSettings()
    durability: Literal["entry", "run"] = Field(
        default="run", description="When entries are forced to the disk."
    )
    budgets: BudgetSettings = BudgetSettings()
    skills: Paths = Field(
        default=(),
        description="More folders or files of skills; -path leaves one out, +path keeps it, !glob leaves out what fits.",
    )
    prompts: Paths = Field(
        default=(), description="The same for prompt templates: folders, or files that end in .md."
    )
    enable_skill_commands: bool = Field(
        default=True, description="Whether /skill:name puts a skill into a prompt."
    )
    extensions: Paths = Field(
        default=(), description="The same for extensions; only in the user's own settings."
    )
    extension_conflicts: Literal["last", "first"] = Field(
        default="last", description="Of two extensions with one name for something, which wins."
    )
    extension_flags: Mapping[str, bool | str] = Field(
        default_factory=dict[str, bool | str],
        description="Switches of extensions, by name; only in the user's own settings.",
    )
    hooks: HookSettings = HookSettings()
    mcp: McpSettings = McpSettings()
    external_agents: Mapping[AgentName, ExternalAgentSettings] = Field(
        default_factory=dict[str, ExternalAgentSettings],
        description="Programs that speak the Agent Client Protocol and to which tasks can be given, by name.",
    )
    web: WebSettings = WebSettings()
    memory: MemorySettings = MemorySettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    notify: NotifySettings = NotifySettings()
    channels: ChannelsSettings = ChannelsSettings()
    attachments: AttachmentSettings = AttachmentSettings()
    titles: Literal["auto", "off"] = Field(
        default="auto",
        description="Whether a model makes a title for a session in an editor or the chat that has none, after its first run.",
    )
    title_model: str | None = Field(
        default=None,
        description="The model that makes titles, as provider/id or a pattern. null: the model of the session.",
    )
    completion: CompletionSettings = CompletionSettings()
    idle_unload_minutes: Annotated[float, Field(gt=0)] = Field(
        default=30, description="Minutes after which a session that nobody uses leaves the memory."
    )

    def as_json(self) -> JsonObject:
        """Return every key with its value."""
        return as_object(decode(self.model_dump_json(by_alias=True)))


def setting_keys(above: Sequence[str]) -> Sequence[str]:
    """Return the keys that an object of settings can have.

    Args:
        above: The keys that lead to it; none: the outermost.
    """
    if tuple(above[:-1]) == ("compaction", "modelOverrides"):
        return tuple(ModelCompactionSettings().model_dump(by_alias=True))
    if tuple(above[:1]) == ("externalAgents",):
        return tuple(ExternalAgentSettings(command="x").model_dump(by_alias=True))
    if tuple(above[:1]) == ("channels",) and tuple(above[2:3]) == ("workspaces",):
        return tuple(ChatWorkspaceSettings(folder="/").model_dump(by_alias=True))
    here = SettingsValues().as_json()
    for key in above:
        here = as_object(here.get(key))
    return tuple(here)


def settings_schema() -> JsonObject:
    """Return the JSON Schema by which editors complete and check settings.json."""
    made = decode(encode(SettingsValues.model_json_schema(by_alias=True)))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **as_object(made),
        "title": "Tiller settings",
    }
