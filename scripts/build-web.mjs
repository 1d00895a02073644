// Builds dist/web, the dashboard, out of web/: checks its types, bundles it, and compresses what is sent compressed once and for all.
// scripts/build.mjs calls it where its sources have changed.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const WEB = join(ROOT, "web");
const OUT = join(ROOT, "dist", "web");

/** The policy allows no inline style, so what libraries write as style elements is adopted as sheets instead. */
const ADOPTED = join(WEB, "src", "style", "adopted-style.tsx");
const WRITES_STYLES =
  /@mantine[\\/]core[\\/]esm[\\/]core[\\/](InlineStyles[\\/]InlineStyles|MantineProvider[\\/](MantineCssVariables[\\/]MantineCssVariables|MantineClasses[\\/]MantineClasses))\.mjs$/;

const adoptedStyles = () => {
  const changed = new Set();
  return {
    name: "adopted styles",
    enforce: "pre",
    resolveId(source) {
      return source === "react-style-singleton" ? join(WEB, "src", "style", "style-singleton.tsx") : null;
    },
    transform(code, id) {
      if (!WRITES_STYLES.test(id)) return null;
      const text = code.replaceAll('jsx("style"', "jsx(AdoptedStyle");
      if (text === code) throw new Error(`${id} writes its styles in another way now`);
      changed.add(id);
      return { code: `import { AdoptedStyle } from ${JSON.stringify(ADOPTED)};\n${text}`, map: null };
    },
    buildEnd(error) {
      if (error === undefined && changed.size !== 3) throw new Error("Mantine's styles are elsewhere now");
    },
  };
};

/** Type checks and bundles at the same time. Answers whether both went well. */
export async function buildWeb() {
  const types = check();
  const beside = `${OUT}.${process.pid}`;
  try {
    const { build } = await import("vite");
    await build({
      configFile: false,
      root: WEB,
      logLevel: "warn",
      publicDir: false,
      plugins: [adoptedStyles()],
      build: {
        outDir: beside,
        emptyOutDir: true,
        target: ["chrome120", "firefox121", "safari17.2"],
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        reportCompressedSize: false,
        chunkSizeWarningLimit: 800,
        rolldownOptions: {
          onLog: (level, log, handle) =>
            ["MODULE_LEVEL_DIRECTIVE", "PLUGIN_TIMINGS"].includes(log.code) || handle(level, log),
        },
      },
    });
    compress(join(beside, "assets"));
    if (!(await types)) return false;
    rmSync(OUT, { recursive: true, force: true });
    mkdirSync(join(ROOT, "dist"), { recursive: true });
    renameSync(beside, OUT);
    return true;
  } finally {
    if (existsSync(beside)) rmSync(beside, { recursive: true, force: true });
  }
}

function check() {
  const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const child = spawn(process.execPath, [compiler, "--noEmit", "-p", "web"], { cwd: ROOT, stdio: "inherit" });
  return new Promise((resolve) => child.once("exit", (code) => resolve(code === 0)));
}

/** Scripts and styles are kept compressed alone; who takes nothing compressed has them unpacked by the server. */
function compress(folder) {
  for (const file of readdirSync(folder)) {
    if (!/\.(js|css|svg)$/.test(file)) continue;
    const path = join(folder, file);
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
    rmSync(path);
  }
}
