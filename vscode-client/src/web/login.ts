// The one-off token of the opened address: exchanged for a cookie, and taken out of the address at once.

/** Exchanges the token of the address, if it has one. A token that was used before is no fault while the cookie is good. */
export async function signIn(): Promise<void> {
  const address = new URL(location.href);
  const token = address.searchParams.get("token");
  if (token === null) return;
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
  const body = JSON.stringify({ token });
  const headers = { "content-type": "application/json" };
  await fetch("/v1/login", { method: "POST", headers, body }).catch(() => undefined);
}
