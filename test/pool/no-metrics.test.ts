/** `--no-metrics` (specification: Bridge/pool options): the pool's web listener has no `/metrics` then, whatever page it has. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { poolOptions } from '../../pool/options.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { temporaryDirectory } from '../temporary.ts';
import { webBed } from './web-bed.ts';

const wantsMetrics = (...words: string[]): boolean => {
  const parsed = parseCommandLine({ name: 'svc-pool', summary: '', options: poolOptions }, words, () => '');
  if (parsed.kind !== 'run') throw parsed.kind === 'usage' ? parsed.error : new Error(parsed.kind);
  return parsed.values.metrics;
};

test.each(['', '/pool'])(
  '/metrics of a pool with a dashboard under "%s": 200 unless --no-metrics, then 404',
  async (prefix) => {
    const dashboard = temporaryDirectory();
    mkdirSync(dashboard, { recursive: true });
    writeFileSync(join(dashboard, 'index.html'), '<!doctype html><title>page</title>');
    for (const [words, status] of [
      [[], 200],
      [['--no-metrics'], 404],
    ] as const) {
      const metrics = wantsMetrics('--node', 'http://127.0.0.1:28702', ...words);
      const port = await webBed([], { live: () => undefined }, { prefix, metrics, dashboard });
      const get = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${prefix}${path}`, { method });
      expect((await get('/explorer')).status).toBe(200);
      for (const method of ['GET', 'HEAD']) expect((await get('/metrics', method)).status).toBe(status);
      expect((await get('/metrics/')).status).toBe(status);
      expect((await get('/metrics')).headers.get('content-type')).toMatch(status === 200 ? /version=0.0.4/ : /json/);
    }
  },
);
