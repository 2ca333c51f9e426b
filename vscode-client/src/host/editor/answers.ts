// Who answers what the server asks of this window.

import type { CancellationToken } from "vscode";
import { type LanguageClient, LSPErrorCodes, ResponseError } from "vscode-languageclient/node";
import type { ClientRequests } from "../../shared/wire.js";
import { applyEdit } from "./apply-edit.js";
import { readDocument, saveDocuments } from "./documents.js";
import type { Problems } from "./problems.js";

type Asked = keyof ClientRequests;

/** Registers the answers with a client that is about to start. */
export function answerServer(client: LanguageClient, problems: Problems, changed: () => void): void {
  const answer = <M extends Asked>(
    method: M,
    act: (
      params: ClientRequests[M]["params"],
      token: CancellationToken,
    ) => Promise<ClientRequests[M]["result"]>,
  ) => client.onRequest(method, act);
  answer("agent/edit/apply", applyEdit);
  answer("agent/documents/save", saveDocuments);
  answer("agent/documents/read", async (params) => readDocument(params));
  answer("agent/diagnostics", (params) => problems.answer(params));
  answer("agent/permission", (_params, token) => shownInPanel(token));
  answer("agent/question", (_params, token) => shownInPanel(token));
  client.onNotification("agent/changes/show", changed);
}

/**
 * The panel shows it as a card, from the events of the session, and its answer goes by a request of its own. The
 * server then withdraws this one. Answering here would count as a no.
 */
function shownInPanel(token: CancellationToken): Promise<never> {
  return new Promise((_, fail) => {
    const withdraw = () =>
      fail(new ResponseError(LSPErrorCodes.RequestCancelled, "It was answered in the panel."));
    if (token.isCancellationRequested) withdraw();
    else token.onCancellationRequested(withdraw);
  });
}
