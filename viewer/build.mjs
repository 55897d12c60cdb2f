// Bundle src/ into HTML templates and write them as C strings:  node build.mjs NODE_MODULES OUT.c
//
// A template carries its script and style, and a Content-Security-Policy that lets these two run and nothing else:
// both are named there by their SHA-256. What is bundled of others is listed in the page with its licence.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(resolve(modules), "x.js"))("esbuild");

/** The packages that the bundle has pieces of, by the paths esbuild says it took them from. */
function bundledPackages(metafile) {
  const names = new Set();
  for (const path of Object.keys(metafile.inputs)) {
    const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (match) names.add(match[1]);
  }
  return [...names].sort().map((name) => {
    const about = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
    const text = readFileSync(join(modules, name, "LICENSE"), "utf8").trim();
    return { name, version: about.version, license: about.license, text };
  });
}

/** What is made: the C name of each, where its script begins, its style, and what it says while there is no script. */
const PAGES = [
  { name: "marey__page_template", script: "main.ts", style: "page.css", loading: "Opening the recording...", instead: "<code>marey report</code>" },
  { name: "marey__memory_template", script: "memory.ts", style: "memory.css", loading: "Opening the timeline...", instead: "the .json.gz file beside it" },
];

async function bundle(script, licences) {
  return esbuild.build({
    entryPoints: [join(here, "src", script)],
    bundle: true,
    minify: true,
    format: "iife",
    target: ["chrome105", "firefox113", "safari16.4"],
    charset: "ascii", // so that no editor, server or locale can spoil it
    legalComments: "none",
    nodePaths: [resolve(modules)],
    loader: { ".css": "text" },
    define: { LICENCES: JSON.stringify(licences) },
    metafile: true,
    write: false,
  });
}

async function styles(style) {
  const result = await esbuild.build({
    entryPoints: [join(here, "src", style)],
    bundle: true,
    minify: true,
    nodePaths: [resolve(modules)],
    write: false,
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

function fill(template, values) {
  // Functions, since "$&" in a replacement text would mean something.
  return template.replace(/\{\{(\w+)\}\}/g, (_, key) => values[key]);
}

/** A C string as numbers: compilers need not take a literal longer than 4095 characters. */
function asC(name, text) {
  const bytes = Buffer.from(text, "utf8");
  const lines = [];
  for (let i = 0; i < bytes.length; i += 32) lines.push(Array.from(bytes.subarray(i, i + 32)).join(","));
  return `extern const char ${name}[];\nconst char ${name}[] = {\n${lines.join(",\n")},0};\n`;
}

async function makePage(about) {
  // Licences are known once it is bundled, and are part of the bundle: a second time.
  const licences = bundledPackages((await bundle(about.script, [])).metafile);
  const script = (await bundle(about.script, licences)).outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
  const style = await styles(about.style);
  const page = fill(readFileSync(join(here, "src/page.html"), "utf8"), {
    ...about,
    script,
    style,
    policy:
      `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
      "img-src data:; base-uri 'none'; form-action 'none'",
  });
  // Bytes above 127 would not fit a char that is signed.
  const odd = /[^\x00-\x7f]/.exec(page);
  if (odd) throw new Error(`the template has the character ${JSON.stringify(odd[0])}; write it as an escape`);
  return asC(about.name, page);
}

const pages = await Promise.all(PAGES.map(makePage));
writeFileSync(out, `/* Templates of pages, made by viewer/build.mjs. */\n${pages.join("")}`);
