"""Small images of real formats."""

from base64 import b64decode
from typing import Final

PNG_BASE64: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""One pixel."""
PNG: Final = b64decode(PNG_BASE64)
