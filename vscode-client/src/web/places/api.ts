// Requests of the plain HTTP interface, whose answers hold a reason where they are refused.

export class ApiRefused extends Error {
  /** 0: the server was not reached. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.name = "ApiRefused";
    this.status = status;
  }
}

/** Asks for `path`, with a POST where there is a body; throws `ApiRefused`. */
export async function ask<T>(path: string, body?: object): Promise<T> {
  const post = body && {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, post).catch(() => {
    throw new ApiRefused("Tiller cannot be reached.", 0);
  });
  const answer = (await response.json().catch(() => ({}))) as T & { error?: { message?: string } };
  if (response.ok) return answer;
  const why = answer.error?.message ?? `The server answered with status ${response.status}.`;
  throw new ApiRefused(why, response.status);
}
