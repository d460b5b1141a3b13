/** Which files may read the system's clock (docs/programs.md, Clocks). Everything else goes by runtime/clock/clock.ts or by a clock that is handed in. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('only what must agree with the outside reads the system’s clock', () => {
  const root = join(import.meta.dirname, '../..');
  const readers = ['bridge', 'kernels', 'miner', 'node', 'pool', 'protocol', 'runtime', 'stack', 'wallet'].flatMap(
    (folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts') && /\bDate\.now\b/.test(readFileSync(join(root, folder, file), 'utf8')))
        .map((file) => `${folder}/${file}`),
  );
  expect(readers.sort()).toEqual([
    // Certificates go by the time of their authority.
    'bridge/connection/certificate.ts',
    'bridge/start-stratum.ts',
    // Which dataset was used last, over restarts.
    'kernels/dataset-file.ts',
    // How old the newest cut of a node is.
    'miner/browser/page-books.ts',
    // Whether an epoch is plausible.
    'miner/browser/page-miner.ts',
    'miner/mine.ts',
    // Whether the process was away: where the machine slept, the steady clock does not show it.
    'node/consensus/driver/driver.ts',
    // How old the newest cut is, for the same reason.
    'node/daemon.ts',
    // Certificates, proofs that a wallet elsewhere signs, webhooks.
    'pool/pool.ts',
    // The clocks themselves, and the times of log lines.
    'runtime/clock/clock.ts',
    'runtime/clock/watched-clock.ts',
    'runtime/log/log.ts',
    'stack/main.ts',
    // Times that people see, and requests to sign that run out.
    'wallet/command/session.ts',
    'wallet/open.ts',
  ]);
});
