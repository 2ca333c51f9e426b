"""Which providers are known, and how one gets into each: the table, the user's own file, and what extensions bring."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from agent_core.kernel.errors import ConfigError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import SecretValue
from agent_core.providers.auth.credentials import CredentialSources, ProviderCredentials
from agent_core.providers.auth.store import AuthStore
from agent_core.providers.catalog.catalogue import ProviderInfo, builtin_providers
from agent_core.providers.catalog.models_file import (
    ModelsFile,
    WrittenAccess,
    apply_models_file,
    written_access,
)
from agent_core.providers.catalog.provider_environment import in_environment
from agent_core.providers.extension_models import ExtensionModels


class ProviderConfig(SecretValue, frozen=True):
    """Providers and credentials that do not depend on extensions. The `repr` shows no key."""

    hidden: ClassVar = frozenset({"file", "auth", "keys", "environment", "redactor"})

    file: ModelsFile
    extra: Sequence[ProviderInfo]
    auth: AuthStore | None
    keys: Mapping[str, str]
    environment: Mapping[str, str]
    redactor: Redactor | None


class ProviderTable(SecretValue, frozen=True, kw_only=True):
    """Known providers and their credentials, including those of extensions."""

    hidden: ClassVar = frozenset({"credentials"})

    providers: tuple[ProviderInfo, ...]
    credentials: Mapping[str, ProviderCredentials]
    problems: tuple[ConfigError, ...]

    @property
    def secret_variables(self) -> frozenset[str]:
        """The variables of the environment that may hold a key of some provider."""
        return frozenset[str]().union(*(one.variables() for one in self.credentials.values()))


def build_provider_table(ground: ProviderConfig, brought: ExtensionModels) -> ProviderTable:
    """Return the known providers and their credentials; the user's own file has precedence over extensions."""
    file = replace(ground.file, providers={**brought.shapes, **ground.file.providers})
    bare = (
        in_environment(one, ground.environment) for one in (*builtin_providers(), *ground.extra)
    )
    laid, problems = apply_models_file(tuple(bare), file)
    providers = tuple(
        replace(one, oauth=brought.oauth[one.id], keyless=False) if one.id in brought.oauth else one
        for one in laid
    )
    credentials = {
        provider.id: ProviderCredentials(
            provider,
            CredentialSources(
                given=ground.keys.get(provider.id),
                stored=ground.auth,
                written=_written(file, provider.id),
                environment=ground.environment,
                redactor=ground.redactor,
            ),
        )
        for provider in providers
    }
    of_auth = ground.auth.problems if ground.auth is not None else ()
    return ProviderTable(
        providers=providers,
        credentials=credentials,
        problems=(*ground.file.problems, *problems, *of_auth),
    )


def _written(file: ModelsFile, provider: str) -> WrittenAccess:
    shape = file.providers.get(provider)
    return WrittenAccess() if shape is None else written_access(shape)
