// Signs in to a provider and chooses the first model. Keys go from the editor's own box to the program, by its standard input.

import * as vscode from "vscode";
import { AgentError, NOT_SERVED } from "../agent/port.js";
import { localPrograms } from "../server/programs.js";
import type { Window } from "../window.js";
import { shortModel } from "./status-text.js";

/** A line of `tiller auth status --json`. */
interface Provider {
  id: string;
  name: string;
  auth: "ok" | "missing";
  source: string | null;
  login: "key" | "browser" | "code";
}

const WAYS = { key: "with a key", browser: "log in with the browser", code: "log in with a code" };
const LOGIN_MS = 60_000;
/** What the program says of providers that take no key. */
const NO_KEY = "none is needed";

export async function signIn(window: Window, wanted?: string): Promise<void> {
  const listed = listProviders(window);
  const provider =
    wanted === undefined ? await choose(listed) : (await listed).find((one) => one.id === wanted);
  if (provider === undefined) {
    if (wanted === undefined) return;
    throw new AgentError(`No provider is called ${JSON.stringify(wanted)}.`, NOT_SERVED);
  }
  if (needsNoKey(provider)) return chooseModel(window, provider.id);
  if (provider.login !== "key") {
    // The server opens the page of the provider, waits for the user, and says what came of it.
    await window.daemon.execute("tiller.signIn", { provider: provider.id });
    return;
  }
  const key = await askKey(provider);
  if (key === undefined) return;
  await runTiller(window, ["auth", "login", provider.id, "--key"], key);
  await chooseModel(window, provider.id);
}

export async function signOut(window: Window, wanted?: string): Promise<void> {
  const open = listProviders(window).then((all) =>
    all.filter((one) => one.auth === "ok" && !needsNoKey(one)),
  );
  const provider = wanted === undefined ? await choose(open) : (await open).find((one) => one.id === wanted);
  if (provider === undefined) return;
  const said = await runTiller(window, ["auth", "logout", provider.id]);
  void vscode.window.showInformationMessage(`Tiller: ${said.trim()}`);
}

/** Lets the user choose among the models that can be asked; with none, they sign in first. */
export async function chooseModel(window: Window, provider?: string): Promise<void> {
  const { models, current } = await window.daemon.request("agent/model/list", { scope: "usable" });
  const listed = models.filter((one) => provider === undefined || one.provider === provider);
  if (listed.length === 0) {
    if (provider === undefined) return signIn(window);
    throw new AgentError(`${provider} is signed in to, but has no model that can be asked.`, NOT_SERVED);
  }
  const items = listed.map((one) => ({
    label: `${one.model === current ? "$(check) " : ""}${one.name}`,
    description: one.model,
    detail: details(one),
    model: one.model,
  }));
  const placeHolder = current === null ? "No model is chosen yet" : `Now ${shortModel(current)}`;
  const chosen = await vscode.window.showQuickPick(items, {
    title: "Model",
    placeHolder,
    matchOnDescription: true,
  });
  // Who has just signed in and waves the list away has the provider's first model, not none.
  const first =
    provider !== undefined && window.watch.now?.model == null ? (current ?? undefined) : undefined;
  const model = chosen?.model ?? first;
  if (model === undefined) return;
  const session = window.feed.session;
  const set = { model };
  await window.daemon.request("agent/session/configure", {
    ...(session === undefined ? {} : { session }),
    set,
  });
}

function details(one: {
  contextWindow: number;
  prices?: { in: number; out: number };
  images?: boolean;
}): string {
  const window = `${Math.round(one.contextWindow / 1000)}k tokens`;
  const prices = one.prices === undefined ? [] : [`$${one.prices.in} in, $${one.prices.out} out per million`];
  return [window, ...prices, ...(one.images ? ["takes pictures"] : [])].join(" · ");
}

/** The list opens at once and fills when the providers are known: what is typed meanwhile is typed into it. */
async function choose(listed: Promise<Provider[]>): Promise<Provider | undefined> {
  const chosen = await vscode.window.showQuickPick<Row>(listed.then(rows), {
    title: "Sign in to a provider",
    placeHolder: "Whose models shall be asked?",
    matchOnDescription: true,
  });
  return chosen?.provider;
}

type Row = vscode.QuickPickItem & { provider?: Provider };

function rows(providers: Provider[]): Row[] {
  const groups: [string, Provider[]][] = [
    ["Sign in", providers.filter((one) => one.auth === "missing")],
    ["Signed in", providers.filter((one) => one.auth === "ok" && !needsNoKey(one))],
    ["On this machine or network", providers.filter(needsNoKey)],
  ];
  return groups.flatMap(([label, listed]) =>
    listed.length === 0 ? [] : [{ label, kind: vscode.QuickPickItemKind.Separator }, ...listed.map(row)],
  );
}

function row(provider: Provider): Row {
  const way = WAYS[provider.login];
  const known = needsNoKey(provider) ? "no key is needed" : `signed in (${provider.source ?? "stored"})`;
  return { label: provider.name, description: provider.auth === "ok" ? known : way, provider };
}

function needsNoKey(provider: Provider): boolean {
  return provider.auth === "ok" && provider.source === NO_KEY;
}

async function askKey(provider: Provider): Promise<string | undefined> {
  const key = await vscode.window.showInputBox({
    title: `Key of ${provider.name}`,
    prompt: "It is stored where only you can read it, and goes to this provider alone.",
    password: true,
    ignoreFocusOut: true,
    validateInput: (text) => (/\s/.test(text.trim()) ? "A key has no spaces in it." : undefined),
  });
  return key?.trim() || undefined;
}

async function listProviders(window: Window): Promise<Provider[]> {
  const said = await runTiller(window, ["auth", "status", "--json"]);
  return (JSON.parse(said) as { providers: Provider[] }).providers;
}

/** Runs a command of the program that serves; throws what it complains of. */
async function runTiller(window: Window, words: string[], input = ""): Promise<string> {
  await window.daemon.start();
  const launch = window.daemon.launch;
  if (launch === undefined) throw new AgentError("The server of Tiller does not run.", NOT_SERVED);
  const ran = await localPrograms().run(launch.command, [...launch.base, ...words], {
    timeoutMs: LOGIN_MS,
    input,
  });
  if (ran.code !== 0)
    throw new AgentError(ran.err.trim().split("\n").at(-1) ?? "It failed without a word.", NOT_SERVED);
  return ran.out;
}
