/** Clocks (docs/programs.md, docs/decisions/0017): which files read the system's clock, and that each clock handed on says which it is. */
import { expect, test } from 'vitest';
import type {
  LedgerClock,
  MonotonicClock,
  SteadyClock,
  SteadyMillis,
  WallClock,
  WallMillis,
} from '../../runtime/clock/clock.ts';
import { FILES, isCode, read, topFolder, withoutComments } from './project-files.ts';

const FOLDERS = ['bridge', 'kernels', 'miner', 'node', 'pool', 'protocol', 'proxy', 'runtime', 'stack', 'wallet'];
const CODE = FILES.filter((path) => isCode(path) && FOLDERS.includes(topFolder(path)));

/** Reads the system's clock itself, or imports it from runtime/clock/clock.ts. */
const READS = /\bDate\.now\b|\bwallMillis\b[^}]*\} from '[./\w]*\bclock\.ts'/;

test('only what must agree with the outside reads the system’s clock', () => {
  expect(CODE.filter((path) => READS.test(read(path)))).toEqual([
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
    // The highest cut that there can be.
    'pool/accountant/accountant.ts',
    // Certificates, proofs that a wallet elsewhere signs, webhooks.
    'pool/pool.ts',
    // Whether an epoch is plausible, and certificates.
    'proxy/proxy.ts',
    'proxy/rig-server.ts',
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

test('a clock that is handed on has a type that says which clock it is', () => {
  const unnamed =
    /\b(now|wall|steady)\w*\??: \(*\(\) => number|^\s*(now|wall|steady)\(\): number;|\bDate\.now\b(?!\()|\(\) => (Date|performance)\.now\(\)(?! [-+*/<>=])/;
  const home = 'runtime/clock/clock.ts';
  const wrong = CODE.filter((path) => path !== home).flatMap((path) =>
    withoutComments(read(path))
      .split('\n')
      .filter((line) => unnamed.test(line))
      .map((line) => `${path}: ${line.trim()}`),
  );
  expect(wrong).toEqual([]);
});

type Passes<Given, Wanted> = Given extends Wanted ? true : false;

/** Shown by the check of types: where a clock passes for another, `true` or `false` does not fit here. */
test('a clock of one kind does not pass for another', () => {
  const refused: readonly [
    Passes<WallClock, SteadyClock>,
    Passes<WallClock, MonotonicClock>,
    Passes<MonotonicClock, SteadyClock>,
    Passes<SteadyClock, LedgerClock>,
    Passes<WallMillis, SteadyMillis>,
  ] = [false, false, false, false, false];
  const taken: readonly [Passes<SteadyClock, MonotonicClock>, Passes<() => number, SteadyClock>] = [true, true];
  expect([...new Set(refused), ...new Set(taken)]).toEqual([false, true]);
});
