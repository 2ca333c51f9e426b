// A provider that users log in to with a code, as an extension of Tiller brings it: its login server, and the extension.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const CODE = "WDJB-MJHT";

export interface Site {
  readonly name: string;
  readonly code: string;
  /** The source of the extension. */
  readonly extension: string;
  /** Whether the user has the page open; before that nobody is let in. */
  seen(): boolean;
  close(): void;
}

export async function startSite(): Promise<Site> {
  let isSeen = false;
  const server = createServer((request, response) => {
    const { url } = request;
    if (url === "/page") isSeen = true;
    const [status, body] =
      url === "/device"
        ? [200, { device_code: "d", user_code: CODE, verification_uri: `${origin}/page`, interval: 0.5 }]
        : url === "/token" && isSeen
          ? [200, { access_token: "site-token", expires_in: 3600 }]
          : url === "/page"
            ? [200, { title: "Type in the code" }]
            : [400, { error: "authorization_pending" }];
    response.writeHead(Number(status), { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    name: "Site",
    code: CODE,
    extension: `
from agent_core.extensions import DeviceFacts

def extension(api):
    api.provider(
        "site",
        {
            "name": "Site", "baseUrl": "${origin}/v1", "api": "openai-completions",
            "models": [{"id": "m", "name": "Site One", "contextWindow": 32000, "maxTokens": 4096}],
        },
        oauth=DeviceFacts(
            device_url="${origin}/device", token_url="${origin}/token", client_id="tiller"
        ),
    )
`,
    seen: () => isSeen,
    close: () => server.close(),
  };
}
