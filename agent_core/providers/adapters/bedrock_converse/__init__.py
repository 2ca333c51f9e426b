"""Models behind Amazon Bedrock's Converse API, of whatever maker."""

from agent_core.providers.adapters.bedrock_converse.model import BedrockConverse
from agent_core.providers.adapters.bedrock_converse.signature import AwsSigner, Signer

__all__ = ["AwsSigner", "BedrockConverse", "Signer"]
