// Builds the extension (Node), the panel (browser) and, with --tests, one bundle for each test file.
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import esbuild from "esbuild";

const production = process.argv.includes("--production");
const common = {
  bundle: true,
  minify: production,
  sourcemap: production ? false : "linked",
  logLevel: "warning",
};

/** @type {esbuild.BuildOptions} */
const host = {
  ...common,
  entryPoints: { extension: "src/host/extension.ts" },
  outdir: "dist",
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
};
/** @type {esbuild.BuildOptions} */
const panel = {
  ...common,
  entryPoints: { panel: "src/webview/panel.ts" },
  outdir: "dist",
  platform: "browser",
  format: "iife",
  target: "chrome122",
  loader: { ".ttf": "file" },
  assetNames: "[name]",
  legalComments: "none",
};

const WEB = "../server/tiller_server/web/page";
/** The page of `tiller web`, which serves all of it but `index.html` below `/assets/`. */
const web = {
  ...panel,
  minify: true,
  sourcemap: false,
  entryPoints: { app: "src/web/main.ts" },
  format: "esm",
  // What is rarely used is loaded at its first use.
  splitting: true,
  chunkNames: "[name]-[hash]",
  outdir: WEB,
  target: ["chrome111", "firefox113", "safari16.4"],
};

const SCHEMAS = "../agent_core/assembly/schemas";

/** What `jsonValidation` of package.json names: the schemas that come with the server. */
async function schemas() {
  for (const name of await readdir(SCHEMAS)) await copyFile(join(SCHEMAS, name), join("dist", name));
}

async function tests() {
  await rm("dist/test", { recursive: true, force: true });
  const files = (await readdir("test", { recursive: true })).filter((name) => name.endsWith(".test.ts"));
  await esbuild.build({
    ...common,
    minify: false,
    sourcemap: "inline",
    entryPoints: files.map((name) => join("test", name)),
    outbase: "test",
    outdir: "dist/test",
    platform: "node",
    format: "esm",
    outExtension: { ".js": ".mjs" },
    target: "node20",
    // Tests of the extension run without an editor: what they need of it is given in.
    external: ["vscode", "playwright-core", "axe-core"],
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
  });
}

async function page() {
  await rm(WEB, { recursive: true, force: true });
  const { metafile } = await esbuild.build({ ...web, metafile: true });
  await cp("src/web/assets", WEB, { recursive: true });
  await writeFile(join(WEB, "licenses.txt"), await licences(Object.keys(metafile.inputs)));
}

/** The licences of all packages that have a part in the page: it goes out in the wheel, without the extension. */
async function licences(sources) {
  const folders = sources.flatMap((one) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(one)?.[1] ?? []);
  const texts = [...new Set(folders)].sort().map(async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice)/i.test(file)).sort();
    const words = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
    return `${name} ${version} (${license})\n\n${words.join("\n")}`;
  });
  return (await Promise.all(texts)).join(`\n${"=".repeat(80)}\n`);
}

if (process.argv.includes("--tests")) {
  await tests();
} else if (process.argv.includes("--web")) {
  await page();
} else if (process.argv.includes("--watch")) {
  for (const options of [host, panel]) await (await esbuild.context(options)).watch();
  await mkdir("dist", { recursive: true });
  await schemas();
} else {
  for (const options of [host, panel]) {
    // What went into a bundle is listed beside it: the notices of licences are made from that.
    const { metafile } = await esbuild.build({ ...options, metafile: true });
    await writeFile(`dist/${Object.keys(options.entryPoints)[0]}.meta.json`, JSON.stringify(metafile));
  }
  await schemas();
}
