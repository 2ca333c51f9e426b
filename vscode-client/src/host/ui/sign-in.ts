// Signs in to a provider and chooses the first model. Keys go from the editor's own box to the program, by its standard input.

import * as vscode from "vscode";
import { NO_KEY } from "../../shared/no-key.js";
import { AgentError, NOT_SERVED } from "../agent/port.js";
import { localPrograms, type RunOptions } from "../server/programs.js";
import type { Window } from "../window.js";
import { shortModel } from "./status-text.js";

interface Provider {
  id: string;
  name: string;
  auth: "ok" | "missing";
  source: string | undefined;
  login: "key" | "browser" | "code";
}

const WAYS = { key: "with a key", browser: "log in with the browser", code: "log in with a code" };
const COMMAND_MS = 60_000;
const POLL_MS = 1_000;

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
    if (await logIn(window, provider)) await chooseModel(window, provider.id);
    return;
  }
  const key = await askKey(provider);
  if (key === undefined) return;
  await runTiller(window, ["auth", "login", provider.id, "--key"], { input: key });
  await chooseModel(window, provider.id);
}

/** Adds a server that speaks OpenAI's chat wire: asks for its address and key, and offers its models. */
export async function addModel(window: Window): Promise<void> {
  const url = await vscode.window.showInputBox({
    title: "Add a model server: address",
    prompt: "Base URL of a server with an OpenAI-compatible API",
    placeHolder: "http://127.0.0.1:8000/v1",
    ignoreFocusOut: true,
    validateInput: (text) =>
      /^https?:\/\/[^\s/]/.test(text.trim()) ? undefined : "Enter an http or https URL.",
  });
  if (url === undefined) return;
  const key = await vscode.window.showInputBox({
    title: "Add a model server: key",
    prompt: "API key; leave empty if the server needs none",
    password: true,
    ignoreFocusOut: true,
  });
  if (key === undefined) return;
  const words = ["models", "add", url.trim(), "--json"];
  const added = await vscode.window.withProgress(
    {
      location: vscode.ProgressLocation.Notification,
      title: `Tiller: requesting the models of ${url.trim()}`,
    },
    () => (key === "" ? runTiller(window, words) : runTiller(window, [...words, "--key"], { input: key })),
  );
  const { provider } = JSON.parse(added) as { provider: string };
  await chooseModel(window, provider);
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
    throw new AgentError(await whyNone(window, provider), NOT_SERVED);
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

/** A provider without a key is a server of the user's own, and says what it has only while it runs. */
async function whyNone(window: Window, id: string): Promise<string> {
  const found = (await listProviders(window)).find((one) => one.id === id);
  if (found !== undefined && needsNoKey(found))
    return `${found.name} does not answer, or has no model. Start it, load a model, and choose it again. If it listens at another address than usual, name it as baseUrl in models.json.`;
  return `${found?.name ?? id} is signed in to, but has no model that can be asked.`;
}

function details(one: {
  contextWindow: number;
  prices?: { in: number; out: number };
  images?: boolean;
}): string {
  const window = one.contextWindow > 0 ? [`${Math.round(one.contextWindow / 1000)}k tokens`] : [];
  const prices = one.prices === undefined ? [] : [`$${one.prices.in} in, $${one.prices.out} out per million`];
  return [...window, ...prices, ...(one.images ? ["images"] : [])].join(" · ");
}

/** The list opens at once and fills when the providers are known: what is typed meanwhile is typed into it. */
async function choose(listed: Promise<Provider[]>): Promise<Provider | undefined> {
  const chosen = await vscode.window.showQuickPick<Row>(listed.then(rows), {
    title: "Sign in to a provider",
    placeHolder: "Select a provider",
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
  const { providers } = await window.daemon.request("agent/auth/status", {});
  return providers.map((one) => ({
    id: one.provider,
    name: one.name ?? one.provider,
    auth: one.state === "ok" ? "ok" : "missing",
    source: one.source,
    login: one.login === "browser" || one.login === "code" ? one.login : "key",
  }));
}

/** Shows the page of the provider and waits for the user there; what goes wrong the server says itself. */
async function logIn(window: Window, { id, name }: Provider): Promise<boolean> {
  const page = await window.daemon.request("agent/auth/login", { provider: id });
  if (page.url === undefined) return page.state === "ok";
  if (page.userCode !== undefined && !(await hasCopied(name, page.userCode, page.url))) return false;
  await vscode.env.openExternal(vscode.Uri.parse(page.url));
  const title = `Tiller: waiting for the login at ${name}`;
  const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  return vscode.window.withProgress(options, async (_, given) => {
    while (!given.isCancellationRequested) {
      const { providers } = await window.daemon.request("agent/auth/status", { provider: id });
      const state = providers[0]?.state;
      if (state !== "pending") return state === "ok";
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
    return false;
  });
}

/** The code must be seen before the page is, and typing it is not needed. */
async function hasCopied(name: string, code: string, url: string): Promise<boolean> {
  const copy = "Copy the Code and Open the Page";
  const told = { modal: true, detail: `The page ${url} asks for it. Enter it only if you began this login.` };
  const chosen = await vscode.window.showInformationMessage(`The code for ${name} is ${code}`, told, copy);
  if (chosen !== copy) return false;
  await vscode.env.clipboard.writeText(code);
  return true;
}

/** Runs a command of the program that serves; throws what it complains of. */
export async function runTiller(
  window: Window,
  words: readonly string[],
  { input = "", timeoutMs = COMMAND_MS, ...options }: Omit<RunOptions, "maxBytes"> = {},
): Promise<string> {
  await window.daemon.start();
  const launch = window.daemon.launch;
  if (launch === undefined) throw new AgentError("The Tiller server is not running.", NOT_SERVED);
  const ran = await localPrograms().run(launch.command, [...launch.base, ...words], {
    timeoutMs,
    input,
    ...options,
  });
  if (ran.code === 0) return ran.out;
  const last = ran.err.trim().split("\n").at(-1);
  const silent =
    ran.code === undefined
      ? `tiller ${words[0]} did not end within ${timeoutMs / 1000} s and was stopped.`
      : `tiller ${words[0]} failed with exit code ${ran.code} and printed nothing.`;
  throw new AgentError(last || silent, NOT_SERVED);
}
