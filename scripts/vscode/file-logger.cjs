// In the place of VS Code's compiled logger (@vscode/spdlog): writes the same lines into the same files, so that a story
// which fails leaves what the extension and VS Code said.
const { appendFileSync, mkdirSync } = require("node:fs");
const { dirname } = require("node:path");

const LEVELS = ["trace", "debug", "info", "warn", "error", "critical"];

class Logger {
  #file;
  #level = 2;
  #raw = false;

  constructor(_kind, _name, file) {
    mkdirSync(dirname(file), { recursive: true });
    this.#file = file;
  }

  getLevel() {
    return this.#level;
  }

  setLevel(level) {
    this.#level = level;
  }

  clearFormatters() {
    this.#raw = true;
  }

  setPattern() {}
  flush() {}
  drop() {}

  write(level, message) {
    if (level < this.#level) return;
    const head = `${new Date().toISOString().replace("T", " ").slice(0, -1)} [${LEVELS[level]}] `;
    appendFileSync(this.#file, this.#raw ? message : `${head}${message}\n`);
  }
}
for (const [level, name] of LEVELS.entries()) {
  Logger.prototype[name] = function say(message) {
    this.write(level, message);
  };
}

// One by one, since an import of names reads them from the text.
const create = async (name, file) => new Logger("rotating", name, file);
exports.Logger = Logger;
exports.version = 0;
exports.setLevel = () => undefined;
exports.setFlushOn = () => undefined;
exports.createRotatingLogger = create;
exports.createAsyncRotatingLogger = create;
