"""The page that takes the code of the terminal, where other machines reach the server."""

import secrets
from typing import Final

from starlette.responses import Response

TEXT: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in to Tiller</title>
<style nonce="{nonce}">
:root {{ color-scheme: light dark; font: 1.1rem system-ui, sans-serif; }}
form {{ display: grid; gap: 1rem; max-width: 20rem; margin: 15vh auto 0; padding: 0 1rem; }}
input, button {{ font: inherit; min-height: 44px; padding: 0 0.75rem; }}
input {{ text-transform: uppercase; letter-spacing: 0.15em; }}
</style>
<form>
<label for="code">Code that tiller web shows in its terminal</label>
<input id="code" required autofocus autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" maxlength="16">
<button>Log in</button>
<p role="alert"></p>
</form>
<script nonce="{nonce}">
const form = document.querySelector("form");
const say = (text) => {{ form.querySelector("p").textContent = text; }};
form.addEventListener("submit", async (event) => {{
  event.preventDefault();
  say("");
  const body = JSON.stringify({{ code: form.querySelector("input").value }});
  const headers = {{ "content-type": "application/json" }};
  try {{
    const answer = await fetch("/v1/login", {{ method: "POST", headers, body }});
    if (answer.ok) location.replace("/");
    else say((await answer.json()).error.message);
  }} catch {{
    say("The server does not answer.");
  }}
}});
</script>
</html>
"""


def login_page() -> Response:
    """Return the page, with a nonce of its own."""
    nonce = secrets.token_urlsafe(18)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
    return Response(
        TEXT.format(nonce=nonce),
        media_type="text/html; charset=utf-8",
        headers={"content-security-policy": policy},
    )
