// The page of the panel: nothing inline, nothing from elsewhere.

export interface PageParts {
  nonce: string;
  /** What the editor serves local files from. */
  source: string;
  script: string;
  style: string;
  language: string;
}

/** Gives the page. Styles are set by a sheet and by script; a style attribute in model text has no effect. */
export function page(parts: PageParts): string {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${parts.nonce}'`,
    `style-src ${parts.source} 'nonce-${parts.nonce}'`,
    `font-src ${parts.source}`,
    `img-src ${parts.source} data: blob:`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="${escaped(parts.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tiller</title>
<link rel="stylesheet" href="${escaped(parts.style)}">
</head>
<body>
<div id="app"></div>
<script nonce="${parts.nonce}" src="${escaped(parts.script)}"></script>
</body>
</html>`;
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll('"', "&quot;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
