// Renders the asciicast on standard input as an animated SVG on standard output.
const { readFileSync } = require("node:fs");
const { render } = require("svg-term");

process.stdout.write(render(readFileSync(0, "utf8"), { window: true, cursor: false }));
