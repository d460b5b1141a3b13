/** Processes over real sockets: two validators, a plain node that knows one of them as a peer and is killed again and again while the chain goes on, and one that knows only that node. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { developmentFiles, writeDevelopmentNetwork } from '../../node/genesis/development-network.ts';
import type { ConsensusReport } from '../../node/reports/consensus-report.ts';
import { validatorCommands } from '../../node/validator/validator-commands.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { isSigning } from '../consensus/is-signing.ts';
import { count } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from './peers.ts';
import { rootsOf } from './stored-chain.ts';
import { Svcd } from './svcd.ts';

const CUTS = count({ full: 40, deep: 2_000 });
const CUT_MILLIS = count({ full: 250, deep: 100 });

/** What a command about a running node prints, without a program that is started for it. */
async function asked(name: string, ...words: string[]): Promise<string> {
  let said = '';
  const say = (text: string) => {
    said += text;
  };
  const found = validatorCommands.find(({ spec }) => spec.name === name);
  await found?.start(words, { out: say, err: say, readText: () => '', env: {} });
  return said;
}

test('plain nodes follow validators over their peers, through kill -9, to the same state', async () => {
  const directory = temporaryDirectory();
  await writeDevelopmentNetwork(join(directory, 'network'), { timestampMillis: steadyMillis(), validators: 2 });
  const files = developmentFiles(join(directory, 'network'));
  const ports = await freePorts(14);
  const port = (i: number) => ports[i] as number;
  const common = (name: string) => [
    '--data-dir',
    join(directory, name),
    '--genesis',
    files.genesis,
    '--cut-millis',
    String(CUT_MILLIS),
  ];
  const binds = (i: number) => ({ api: port(2 * i), mining: port(2 * i + 1) });
  const validators = [0, 1].map((member) => {
    const key = ['--consensus-key-file', files.key(member), '--consensus-password-file', files.password];
    const overlay = [
      '--overlay-listen',
      `127.0.0.1:${port(8 + member)}`,
      '--neighbour',
      `127.0.0.1:${port(9 - member)}`,
    ];
    const peers = member === 0 ? ['--p2p-listen', `127.0.0.1:${port(10)}`] : [];
    return new Svcd(binds(member), [...common(`validator-${member}`), ...key, ...overlay, ...peers]);
  });
  const bootstrap = (i: number) => ['--pow-mode', 'light', '--bootstrap', `/ip4/127.0.0.1/tcp/${port(i)}`];
  const plain = new Svcd(binds(2), [...common('plain'), ...bootstrap(10), '--p2p-listen', `127.0.0.1:${port(11)}`]);
  const far = new Svcd(binds(3), [...common('far'), ...bootstrap(11)]);
  const all = [...validators, plain, far];
  onTestFinished(async () => {
    await Promise.all(all.map((svcd) => svcd.end('SIGKILL')));
  });
  for (const svcd of validators) svcd.start();
  const [validator] = validators as [Svcd, Svcd];
  const ofValidator = join(directory, 'validator-0');
  await until(() => isSigning(ofValidator));
  expect(await asked('svcd validator', 'status', '--data-dir', ofValidator)).toMatch(
    /^in the committee +yes.*^signs +yes/ms,
  );
  const dump = JSON.parse(await asked('svcd consensus', 'dump', '--data-dir', ofValidator)) as ConsensusReport;
  expect(dump.consensus.members).toHaveLength(2);
  await until(async () => (await validator.height()) >= CUTS / 2);
  plain.start();
  await until(async () => (await plain.height()) >= 10);
  await plain.end('SIGKILL');
  plain.start();
  far.start();
  await until(async () => (await plain.height()) >= CUTS / 2);
  await plain.end('SIGKILL');
  plain.start();
  await until(async () => (await far.height()) >= CUTS && (await plain.height()) >= CUTS);
  // A busy node may leave a question without an answer.
  await until(async () => {
    const [near, sync] = await Promise.all([plain.sync(), far.sync()]);
    const hasPeer = (sync?.best_peer_height ?? 0) >= CUTS && (sync?.peers ?? 0) >= 1;
    return near?.synced === true && sync?.synced === true && hasPeer;
  });
  // One document for the operator, at the listener that serves this machine only.
  type Peers = { readonly peers: readonly { readonly direction: string; readonly height: number }[] };
  await until(async () => ((await plain.peers<Peers>())?.peers.length ?? 0) >= 2);
  expect(await far.get('/v1/node/peers')).toBeUndefined();
  expect(statSync(join(directory, 'plain', 'network', 'peer.key')).mode & 0o777).toBe(0o600);
  // Without its peer a node knows that it does not know.
  await plain.end('SIGTERM');
  await validator.end('SIGTERM');
  await until(async () => (await far.sync())?.synced === false);
  expect(await far.template()).toBe(503);
  // The operator reads both in the log.
  await until(async () => / synced height=\d.* no longer synced height=\d/s.test(far.output));
  await Promise.all(all.map((svcd) => svcd.end('SIGTERM')));
  const chains = await Promise.all(
    ['validator-0', 'plain', 'far'].map((name) => rootsOf(join(directory, name, 'store'))),
  );
  const [first, ...others] = chains as [string[], ...string[][]];
  for (const chain of others) {
    expect(chain.length).toBeGreaterThan(CUTS);
    expect(chain).toEqual(first.slice(0, chain.length));
  }
});
