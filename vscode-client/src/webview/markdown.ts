// Markdown of models as HTML that can do nothing: no HTML of their own, no pictures, no remote anything.

import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import { highlighted } from "./highlight.js";

const parser = new MarkdownIt({ html: false, linkify: true, typographer: false });
// Without a slash or a dot, `name:12` may be a scheme as well: `command:1`, `javascript:1`.
parser.validateLink = (url) => /^(https?:|mailto:|file:|#|[^:]*$|[^:]*[./][^:]*:\d+$)/i.test(url.trim());

// A picture could tell a stranger that it was seen; its words and address are shown instead.
parser.renderer.rules["image"] = (tokens, at) => {
  const token = tokens[at];
  const address = hrefOf(String(token?.attrGet("src") ?? ""));
  const words = token?.content || address;
  const { escapeHtml } = parser.utils;
  return `<a href="${escapeHtml(address)}" title="${escapeHtml(address)}">${escapeHtml(words + realAddress(words, address))}</a>`;
};

parser.renderer.rules["fence"] = (tokens, at) => {
  const token = tokens[at];
  const language = wordOf(token?.info ?? "");
  return `<pre><code>${codeHtml(token?.content ?? "", language)}</code></pre>`;
};

// A code span that names a file is a link to it.
parser.renderer.rules["code_inline"] = (tokens, at) => {
  const text = tokens[at]?.content ?? "";
  const code = `<code>${parser.utils.escapeHtml(text)}</code>`;
  const place = FILE.exec(text);
  if (!place) return code;
  const path = (place[1] ?? "").split("/").map(encodeURIComponent).join("/");
  return `<a class="file" href="./${path}${place[2] ?? ""}">${code}</a>`;
};

/** A relative path with a folder or a usual ending, and perhaps a line. */
const FILE =
  /^(?:\.\/)?((?:[\w@.+-]+\/)*[\w@+-][\w@.+-]*\.(?:[cm]?[jt]sx?|py|rs|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|lua|sh|sql|md|toml|ya?ml|json|xml|html?|s?css|vue|svelte|txt|cfg|ini|lock|proto|ipynb))(:\d+)?(?:[-–]\d+)?$/;

// The alignment of cells is a class: the page takes no inline styles.
parser.core.ruler.push("cell_alignment", (state) => {
  for (const token of state.tokens) {
    const style = token.attrGet("style");
    const side = /text-align:(\w+)/.exec(String(style ?? ""))?.[1];
    if (style === null) continue;
    token.attrs = (token.attrs ?? []).filter(([name]) => name !== "style");
    if (side) token.attrSet("class", `align-${side}`);
  }
});

// The title of a link is its address, and one whose words look like another address shows its own in full.
parser.core.ruler.push("link_address", (state) => {
  for (const { children } of state.tokens) {
    for (let at = 0; children && at < children.length; at++) {
      const open = children[at];
      if (open?.type !== "link_open") continue;
      const address = hrefOf(String(open.attrGet("href") ?? ""));
      open.attrSet("href", address);
      open.attrSet("title", address);
      const close = children.findIndex((token, index) => index > at && token.type === "link_close");
      const words = children.slice(at, close).map((token) => token.content);
      const real = new state.Token("text", "", 0);
      real.content = realAddress(words.join(""), address);
      children.splice(close + 1, 0, real);
      at = close;
    }
  }
});

/** Gives a reference to a line of a file as a relative address, which no browser takes for a scheme. */
function hrefOf(address: string): string {
  return /^(?!https?:|mailto:|file:)[a-z][a-z0-9+.-]*:/i.test(address) ? `./${address}` : address;
}

const ADDRESS = /:\/\/|\bwww\.|[\p{L}\p{N}_-][.。．｡․‧@][\p{L}\p{N}-]{2,}/iu;

/** Gives the address in brackets, for words that a reader could take for another one; else nothing. */
function realAddress(words: string, address: string): string {
  const isOut = /^(https?|mailto):/i.test(address);
  if (!(isOut ? ADDRESS : /:\/\//).test(words)) return "";
  const said = bare(words);
  return said === bare(address) || said === bare(decoded(address)) ? "" : ` (${address})`;
}

function bare(address: string): string {
  return address
    .trim()
    .replace(/^(https?:\/\/|mailto:|file:\/\/)/i, "")
    .replace(/\/$/, "");
}

function decoded(address: string): string {
  try {
    return decodeURI(address);
  } catch {
    return address;
  }
}

export { parser };

const ALLOWED = {
  ALLOWED_TAGS: [
    ..."a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup".split(" "),
    ..."table tbody td th thead tr ul".split(" "),
  ],
  ALLOWED_ATTR: ["href", "title", "class", "start"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|file:|[^a-z]|[a-z+.-]+(?:[^a-z+.\-:]|$))/i,
};

/** Gives HTML of Markdown, cleaned. */
export function markdownHtml(source: string): string {
  return DOMPurify.sanitize(parser.render(source), ALLOWED);
}

/** Gives HTML of code, coloured where the language is known. */
export function codeHtml(code: string, language: string): string {
  return highlighted(code, language) ?? parser.utils.escapeHtml(code);
}

/** Gives the first word of what stands behind the fence. */
export function wordOf(info: string): string {
  return (
    info
      .trim()
      .split(/[\s{:,]/, 1)[0]
      ?.toLowerCase() ?? ""
  );
}
