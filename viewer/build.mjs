// Bundle src/ into one HTML template and write it as a C string:  node build.mjs NODE_MODULES OUT.c [OUT.html]
//
// The template carries its script and style, and a Content-Security-Policy that lets these two run and nothing else:
// both are named there by their SHA-256. What is bundled of others is listed in the page with its licence.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out, html] = process.argv.slice(2);
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

async function bundle(licences) {
  return esbuild.build({
    entryPoints: [join(here, "src/main.ts")],
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

async function styles() {
  const result = await esbuild.build({
    entryPoints: [join(here, "src/page.css")],
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

/** A C string literal in pieces: compilers need not take a longer one than 4095 characters. */
function asC(text) {
  const bytes = Buffer.from(text, "utf8");
  const lines = [];
  for (let i = 0; i < bytes.length; i += 32) lines.push(Array.from(bytes.subarray(i, i + 32)).join(","));
  return (
    "/* The page's template, made by viewer/build.mjs. */\nextern const char kymo__page_template[];\n" +
    `const char kymo__page_template[] = {\n${lines.join(",\n")},0};\n`
  );
}

// Licences are known once it is bundled, and are part of the bundle: a second time.
const licences = bundledPackages((await bundle([])).metafile);
const script = (await bundle(licences)).outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
const style = await styles();
const page = fill(readFileSync(join(here, "src/page.html"), "utf8"), {
  script,
  style,
  policy:
    `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
    "img-src data:; base-uri 'none'; form-action 'none'",
});
// Bytes above 127 would not fit a char that is signed.
const odd = /[^\x00-\x7f]/.exec(page);
if (odd) throw new Error(`the template has the character ${JSON.stringify(odd[0])}; write it as an escape`);
writeFileSync(out, asC(page));
if (html) writeFileSync(html, page);
