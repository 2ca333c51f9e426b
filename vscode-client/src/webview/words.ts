// Numbers, times and names as people read them.

import type { Cost, Range } from "../shared/wire.js";

/** Writes a number of tokens in at most five characters. */
export function countText(count: number): string {
  if (count < 1000) return String(count);
  if (count < 100_000) return `${(count / 1000).toFixed(1)}k`;
  if (count < 1_000_000) return `${Math.round(count / 1000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** Writes an amount of money, or nothing when none was spent. */
export function costText(cost: Cost | undefined): string | undefined {
  if (!cost || cost.amount <= 0) return undefined;
  const sign = cost.currency === "USD" ? "$" : `${cost.currency} `;
  if (cost.amount < 0.0001) return `<${sign}0.0001`;
  const amount = cost.amount < 0.01 ? cost.amount.toFixed(4) : cost.amount.toFixed(2);
  return `${cost.estimated ? "≈" : ""}${sign}${amount}`;
}

export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

/** Writes the whole seconds between two times; a clock that has not ticked yet counts as zero. */
export function elapsedText(sinceMs: number, nowMs: number): string {
  const s = Math.max(0, Math.floor((nowMs - sinceMs) / 1000));
  if (s < 60) return `${s} s`;
  const min = Math.floor(s / 60);
  return min < 60 ? `${min} min ${s % 60} s` : `${Math.floor(min / 60)} h ${min % 60} min`;
}

export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** Says how long ago something was, coarsely. */
export function agoText(at: string, nowMs: number): string {
  const s = Math.max(0, (nowMs - Date.parse(at)) / 1000);
  if (s < 60) return "now";
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  if (s < 7 * 86_400) return `${Math.floor(s / 86_400)} d ago`;
  return new Date(at).toLocaleDateString();
}

/** Gives the last part of the path of a URI. */
export function baseName(uri: string): string {
  const path = pathOf(uri);
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

/** Gives the path of a URI as people write it, below one of the folders where it is in one. */
export function shortPath(uri: string, folders: readonly { uri: string }[] = []): string {
  for (const folder of folders) {
    const base = folder.uri.endsWith("/") ? folder.uri : `${folder.uri}/`;
    if (uri.startsWith(base)) return decoded(uri.slice(base.length));
  }
  return pathOf(uri);
}

function pathOf(uri: string): string {
  return decoded(uri.replace(/^[a-z][a-z0-9+.-]*:(\/\/[^/]*)?/i, ""));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Writes lines of a range as people count them, from 1. */
export function linesText(range: Range): string {
  const first = range.start.line + 1;
  const last =
    range.end.character === 0 && range.end.line > range.start.line ? range.end.line : range.end.line + 1;
  return last > first ? `${first}–${last}` : String(first);
}

export function plural(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? "" : "s"}`;
}
