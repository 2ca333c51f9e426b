// Files and symbols that can be named in a prompt.

import * as vscode from "vscode";
import type { Found } from "../../shared/messages.js";
import type { Range } from "../../shared/wire.js";
import { localPrograms } from "../server/programs.js";
import { excludedGlobs, listFiles, ripgrepPlaces } from "./project-files.js";
import { rank } from "./rank.js";

/** Where ripgrep is missing. */
const MOST_FILES = 20_000;
const SHOWN = 40;
const KEPT_MS = 10_000;

/** What a workspace has, by path. */
interface Listed {
  at: number;
  paths: Map<string, vscode.Uri>;
  folders: Map<string, vscode.Uri>;
}

let listed: Listed | undefined;

/** Gives files whose paths fit; what is open comes first when nothing was typed. */
export async function findFiles(query: string): Promise<Found[]> {
  const { paths, folders } = await workspacePaths();
  const open = openPaths();
  const names =
    query === ""
      ? [...open, ...[...paths.keys()].filter((one) => !open.has(one))]
      : [...folders.keys(), ...paths.keys()];
  return rank(query.replace(/\/$/, ""), names, SHOWN).flatMap((label): Found[] => {
    const folder = folders.get(label);
    if (folder !== undefined) return [{ uri: folder.toString(), label: `${label}/`, icon: "folder" }];
    const uri = paths.get(label);
    return uri === undefined ? [] : [{ uri: uri.toString(), label, icon: "file" }];
  });
}

/** Gives the folders above the files, by their paths without a slash at the end. */
function foldersOf(paths: ReadonlyMap<string, vscode.Uri>): Map<string, vscode.Uri> {
  const folders = new Map<string, vscode.Uri>();
  for (const [path, uri] of paths) {
    let [name, place] = [path, uri];
    for (let cut = name.lastIndexOf("/"); cut > 0; cut = name.lastIndexOf("/")) {
      name = name.slice(0, cut);
      if (folders.has(name)) break;
      place = vscode.Uri.joinPath(place, "..");
      folders.set(name, place);
    }
  }
  return folders;
}

async function workspacePaths(): Promise<Listed> {
  if (listed !== undefined && Date.now() - listed.at < KEPT_MS) return listed;
  const found = await Promise.all((vscode.workspace.workspaceFolders ?? []).map(filesOf));
  const paths = new Map(found.flat().map((uri) => [vscode.workspace.asRelativePath(uri), uri]));
  for (const name of openPaths()) {
    const document = vscode.workspace.textDocuments.find(
      (one) => vscode.workspace.asRelativePath(one.uri) === name,
    );
    if (document !== undefined) paths.set(name, document.uri);
  }
  listed = { at: Date.now(), paths, folders: foldersOf(paths) };
  return listed;
}

async function filesOf(folder: vscode.WorkspaceFolder): Promise<vscode.Uri[]> {
  const said = (section: string) =>
    vscode.workspace.getConfiguration(section, folder.uri).get<Record<string, unknown>>("exclude");
  const globs = excludedGlobs(said("files"), said("search"));
  const { scheme, fsPath } = folder.uri;
  const rg = ripgrepPlaces(vscode.env.appRoot);
  const names =
    scheme === "file" ? await listFiles(localPrograms(), { rg, folder: fsPath, globs }) : undefined;
  if (names !== undefined) return names.map((name) => vscode.Uri.joinPath(folder.uri, name));
  const everything = new vscode.RelativePattern(folder, "**/*");
  return vscode.workspace.findFiles(everything, `{${["**/node_modules", ...globs].join(",")}}`, MOST_FILES);
}

function openPaths(): Set<string> {
  const inTabs = vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .flatMap((tab) => (tab.input instanceof vscode.TabInputText ? [tab.input.uri] : []));
  return new Set(
    inTabs.filter((uri) => uri.scheme === "file").map((uri) => vscode.workspace.asRelativePath(uri)),
  );
}

/** Gives symbols of the workspace and of the document that the user looks at. */
export async function findSymbols(query: string): Promise<Found[]> {
  const active = vscode.window.activeTextEditor?.document.uri;
  const [everywhere, here] = await Promise.all([
    ask<vscode.SymbolInformation>("vscode.executeWorkspaceSymbolProvider", query),
    active === undefined ? [] : ask<vscode.DocumentSymbol>("vscode.executeDocumentSymbolProvider", active),
  ]);
  const found = new Map<string, Found>();
  if (active !== undefined)
    for (const one of flat(here)) add(found, symbolOf(one, active, one.selectionRange));
  for (const one of everywhere)
    add(found, symbolOf(one, one.location.uri, one.location.range, one.containerName));
  const byLabel = rank(query, [...new Set([...found.values()].map((one) => one.label))], SHOWN);
  const order = new Map(byLabel.map((label, place) => [label, place]));
  return [...found.values()]
    .filter((one) => order.has(one.label))
    .sort((one, other) => (order.get(one.label) ?? 0) - (order.get(other.label) ?? 0))
    .slice(0, SHOWN);
}

async function ask<T>(command: string, argument: unknown): Promise<T[]> {
  try {
    return (await vscode.commands.executeCommand<T[] | undefined>(command, argument)) ?? [];
  } catch {
    return [];
  }
}

function flat(symbols: vscode.DocumentSymbol[]): vscode.DocumentSymbol[] {
  return symbols.flatMap((one) => ("selectionRange" in one ? [one, ...flat(one.children ?? [])] : []));
}

function symbolOf(
  one: { name: string; kind: vscode.SymbolKind },
  uri: vscode.Uri,
  range: vscode.Range,
  container?: string,
): Found {
  const place = `${vscode.workspace.asRelativePath(uri)}:${range.start.line + 1}`;
  return {
    uri: uri.toString(),
    label: one.name,
    detail: container ? `${container} · ${place}` : place,
    icon: `symbol-${(vscode.SymbolKind[one.kind] ?? "misc").toLowerCase()}`,
    range: plainRange(range),
  };
}

function add(found: Map<string, Found>, one: Found): void {
  found.set(`${one.uri}#${one.range?.start.line}#${one.label}`, one);
}

export function plainRange(range: vscode.Range): Range {
  const { start, end } = range;
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}

export function editorRange(range: Range): vscode.Range {
  return new vscode.Range(range.start.line, range.start.character, range.end.line, range.end.character);
}
