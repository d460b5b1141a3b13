/**
 * The dashboard's files, read into memory at start and served as they are. Their headers isolate the page (so that its
 * miner may share memory between threads) and forbid anything from other origins.
 */
import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, posix } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

export type StaticFile = {
  readonly type: string;
  readonly body: Buffer;
  readonly brotli: Buffer | undefined;
  readonly etag: string;
  /** The file name contains a hash of its contents: it never changes. */
  readonly isHashed: boolean;
};

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
};
const COMPRESSED = /^(text|application\/(json|wasm|manifest)|image\/svg)/;
const HASHED = /[-.][A-Za-z0-9_-]{8,}\.\w+$/;

export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy':
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self' http://127.0.0.1:* http://localhost:*; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
};

/** Files by their path below the folder, `/index.html` as `/` too. An absent folder gives none. */
export async function loadStaticFiles(directory: string): Promise<Map<string, StaticFile>> {
  const files = new Map<string, StaticFile>();
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    },
  );
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = `/${posix.relative(directory, path)}`;
    const body = await readFile(path);
    const type = TYPES[extname(name)] ?? 'application/octet-stream';
    const packed = COMPRESSED.test(type) && body.length > 512 ? compressed(body) : undefined;
    const file = {
      type,
      body,
      brotli: packed,
      etag: etagOf(body),
      isHashed: HASHED.test(name),
    };
    files.set(name, file);
    if (name === '/index.html') files.set('/', file);
  }
  return files;
}

export const etagOf = (body: Buffer): string => `"${hash('sha256', body, 'base64url').slice(0, 22)}"`;

export const compressed = (body: Buffer): Buffer =>
  brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } });
