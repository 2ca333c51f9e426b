// Markdown of models as HTML that can do nothing: no HTML of their own, no pictures, no remote anything.

import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import { highlighted } from "./highlight.js";

const parser = new MarkdownIt({ html: false, linkify: true, typographer: false });
parser.validateLink = (url) => /^(https?:|mailto:|file:|#|[^:]*$|[^:]*:\d+$)/i.test(url.trim());

// A picture could tell a stranger that it was seen; its words and address are shown instead.
parser.renderer.rules["image"] = (tokens, at) => {
  const token = tokens[at];
  const address = String(token?.attrGet("src") ?? "");
  const words = parser.utils.escapeHtml(token?.content || address);
  return `<a href="${parser.utils.escapeHtml(address)}">${words}</a>`;
};

parser.renderer.rules["fence"] = (tokens, at) => {
  const token = tokens[at];
  const language = wordOf(token?.info ?? "");
  return `<pre><code>${codeHtml(token?.content ?? "", language)}</code></pre>`;
};

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

export { parser };

const ALLOWED = {
  ALLOWED_TAGS: [
    ..."a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup".split(" "),
    ..."table tbody td th thead tr ul".split(" "),
  ],
  ALLOWED_ATTR: ["href", "title", "class", "start"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|file:|[^a-z]|[a-z+.-]+(?:[^a-z+.\-:]|$)|[^:]*:\d)/i,
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
