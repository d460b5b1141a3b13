/** Builds the page into build/dashboard. Addresses in it are relative, so it works under any path prefix. */
import { join } from 'node:path';
import { defineConfig } from 'vite';

const here = import.meta.dirname;

export default defineConfig({
  root: here,
  base: './',
  cacheDir: join(here, '..', 'build', 'vite-cache'),
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  worker: { format: 'es' },
  build: {
    outDir: join(here, '..', 'build', 'dashboard'),
    emptyOutDir: true,
    rolldownOptions: { input: ['index', 'explorer'].map((name) => join(here, `${name}.html`)) },
    target: 'es2022',
    // A data: address would need a hole in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
