"""Certificates of a test: real ones, signed by an authority that is made for it."""

from datetime import datetime
from pathlib import Path

import trustme


def write_certificate(
    folder: Path, *names: str, until: datetime | None = None
) -> tuple[Path, Path]:
    """Write a certificate for hosts, with that of its authority, and its key; return both files."""
    authority = trustme.CA()
    made = authority.issue_cert(*names, not_after=until)
    cert, key = folder / "cert.pem", folder / "key.pem"
    chain = (*made.cert_chain_pems, authority.cert_pem)
    cert.write_bytes(b"".join(one.bytes() for one in chain))
    key.write_bytes(made.private_key_pem.bytes())
    return cert, key
