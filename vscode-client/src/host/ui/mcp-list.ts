// The rows of the list of MCP servers, and of the tools of one. Pure.

/** A server as `tiller mcp list --json` has it. */
export interface McpServer {
  name: string;
  origin: "user" | "project";
  file: string;
  way: string;
  enabled: boolean;
}

/** What `tiller mcp test --json` prints. */
export interface McpTools {
  about: string;
  tools: { name: string; description: string }[];
  /** Tools that cannot be used, a sentence each. */
  problems: string[];
}

/** The result of the last test of a server. */
export type McpTest = McpTools | { failure: string };

interface RowText {
  label: string;
  description?: string;
  detail?: string;
}

export function serverText({ name, origin, way, enabled }: McpServer, test?: McpTest): RowText {
  const owner = origin === "project" ? "of this folder" : "your own";
  const result = test === undefined ? [] : [testText(test)];
  return {
    label: `$(${enabled ? "pass" : "circle-slash"}) ${plain(name)}`,
    description: [enabled ? "on" : "off", plain(way)].filter(Boolean).join(" · "),
    detail: [owner, ...result].join(" · "),
  };
}

export function toolTexts({ tools, problems }: McpTools): RowText[] {
  if (tools.length + problems.length === 0) return [{ label: "The server offers no tools." }];
  return [
    ...tools.map(({ name, description }) => ({ label: plain(name), detail: plain(description) })),
    ...problems.map((problem) => ({ label: `$(warning) ${plain(problem)}` })),
  ];
}

export function toolCount({ tools }: McpTools): string {
  return tools.length === 1 ? "1 tool" : `${tools.length} tools`;
}

function testText(test: McpTest): string {
  if ("failure" in test) return `does not work: ${plain(test.failure)}`;
  const names = test.tools.map((tool) => plain(tool.name)).join(", ");
  return names === "" ? toolCount(test) : `${toolCount(test)}: ${names}`;
}

/** Removes what the program puts before the reason of a failed test. */
export function failureText(message: string, name: string): string {
  const text = message.replace(/^tiller mcp: /, "");
  const before = `${name} does not work: `;
  return text.startsWith(before) ? text.slice(before.length) : text;
}

/** One line without control characters and icons: a server writes the names and descriptions of its tools itself. */
export function plain(text: string): string {
  return text
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .replaceAll("$(", "$ (")
    .trim();
}
