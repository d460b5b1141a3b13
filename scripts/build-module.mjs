/**
 * Builds the protocol module to build/svc-wasm: compiles module/assembly, bundles module/svc-wasm.ts with protocol/, copies what is written by hand and lists all of it
 * in release.json. A step of scripts/ready/build-steps.mjs.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { main } from 'assemblyscript/asc';
import { build } from 'vite';
import { MODULE_COMPILE_OPTIONS } from './module-options.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const output = join(root, 'build/svc-wasm');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** @param {string} folder */
async function compile(folder) {
  /** @type {(string | Uint8Array)[]} */
  const written = [];
  const { error, stderr } = await main(
    [join(root, 'module/assembly/index.ts'), '--outFile', 'svc_wasm_bg.wasm', ...MODULE_COMPILE_OPTIONS],
    { writeFile: (_file, content) => void written.push(content) },
  );
  if (error) throw new Error(`${error.message}\n${stderr.toString()}`);
  writeFileSync(join(folder, 'svc_wasm_bg.wasm'), /** @type {Uint8Array} */ (written[0]));
}

/** One file that needs no other but the .wasm beside it. @param {string} folder */
async function bundle(folder) {
  await build({
    configFile: false,
    root: join(root, 'module'),
    logLevel: 'warn',
    // The bundle names the files that it is made of: not those of another folder to which node_modules is a link, as in a release.
    resolve: { preserveSymlinks: true },
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: 'es2022',
      minify: true,
      lib: { entry: join(root, 'module/svc-wasm.ts'), formats: ['es'], fileName: () => 'svc_wasm.js' },
      // The .wasm must stay a file: a page whose policy refuses data: addresses could not load it otherwise.
      assetsInlineLimit: 0,
    },
    plugins: [keepAddress],
  });
}

const WASM_NAME = /(["'`])svc_wasm_bg\.wasm\1/;
const HIDDEN = 'hiddenNameOfTheWasm';

/**
 * This bundler would look for the .wasm among the sources; it lies beside the bundle. The next one must see its name as plain text, to take it along.
 * @type {import('vite').Plugin}
 */
const keepAddress = {
  name: 'keep-address-of-wasm',
  enforce: 'pre',
  transform: (code, id) =>
    id.endsWith('/module/svc-wasm.ts') ? code.replace(WASM_NAME, `globalThis.${HIDDEN}`) : undefined,
  generateBundle(_options, files) {
    for (const file of Object.values(files))
      if (file.type === 'chunk') file.code = file.code.replace(`globalThis.${HIDDEN}`, "'svc_wasm_bg.wasm'");
  },
};

/** Sources of the package: a change in one of them that is not committed is no commit's build. */
const SOURCES = ['module', 'protocol', 'scripts/build-module.mjs', 'scripts/module-options.mjs', 'package-lock.json'];

/** The commit that it is built from; undefined without git, outside a checkout, and with changes. */
function commitOf() {
  const git = (/** @type {string[]} */ ...words) => {
    const { status, stdout } = spawnSync('git', words, { cwd: root, encoding: 'utf8' });
    return status === 0 ? stdout.trim() : undefined;
  };
  return git('status', '--porcelain', '--', ...SOURCES) === '' ? git('rev-parse', 'HEAD') : undefined;
}

/** @param {string} folder */
function describe(folder) {
  const about = JSON.parse(readFileSync(join(root, 'module/package/package.json'), 'utf8'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ ...about, version }, null, 2)}\n`);
  copyFileSync(join(root, 'module/package/index.d.ts'), join(folder, 'index.d.ts'));
  copyFileSync(join(root, 'module/README.md'), join(folder, 'README.md'));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  cpSync(join(root, 'module/examples'), join(folder, 'examples'), { recursive: true });
  /** @type {string[]} */
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
  const files = Object.fromEntries(
    names.map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  );
  writeFileSync(
    join(folder, 'release.json'),
    `${JSON.stringify({ name: about.name, version, commit: commitOf(), sha256: files }, null, 2)}\n`,
  );
}

// Written under another name and renamed, so that a reader never sees half a package.
const temporary = `${output}.${process.pid}`;
mkdirSync(temporary, { recursive: true });
await Promise.all([compile(temporary), bundle(temporary)]);
describe(temporary);
rmSync(output, { recursive: true, force: true });
renameSync(temporary, output);
