// Builds plotly.min.js beside this file: plotly.js with the five trace types that our pages draw (scatter is in its core).
// A third of the whole bundle, and of the time that a browser takes to read it.
//
//     npm install --no-save plotly.js@4.1.1 esbuild esbuild-plugin-glsl esbuild-plugin-inline-css stream-browserify buffer events
//     node src/onelayer/views/assets/plotly/build.mjs
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createRequire } from "node:module";

const require = createRequire(join(process.cwd(), "package.json")); // where npm put the packages
const { glsl } = require("esbuild-plugin-glsl");
const styles = require("esbuild-plugin-inline-css");
const { version } = JSON.parse(readFileSync(require.resolve("plotly.js/package.json"), "utf8"));
const TRACES = ["bar", "heatmap", "surface", "waterfall"];
const parts = TRACES.map((name) => `require("plotly.js/lib/${name}")`).join(", ");

await require("esbuild").build({
  stdin: {
    contents: `const Plotly = require("plotly.js/lib/core"); Plotly.register([${parts}]); module.exports = Plotly;`,
    resolveDir: process.cwd(),
  },
  outfile: join(dirname(fileURLToPath(import.meta.url)), "plotly.min.js"),
  bundle: true, minify: true, format: "iife", globalName: "Plotly", target: "es2020", legalComments: "none", charset: "ascii",
  plugins: [styles(), glsl({ minify: true })],
  alias: { stream: "stream-browserify" },
  define: { global: "window", "define.amd": "false", "process.env.NODE_DEBUG": "false" },
  banner: { js: `/* plotly.js v${version}: scatter, ${TRACES.join(", ")}. Copyright 2012-2026, Plotly, Inc. MIT license, see LICENSE. */` },
});
