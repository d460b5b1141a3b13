/**
 * Three nodes on this machine, without namespaces: each listens on a port of its own and announces the port of a forwarder, which is all that others ever know of it. They find each other, are parted all three while the chain of
 * the first goes on, and have one chain again when the forwarders let them. test/network/namespaces.deep.slow.test.ts does the same where root can make machines of its own.
 */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { developmentGenesis } from '../../node/genesis/development.ts';
import { writeGenesis } from '../../node/genesis/make-genesis.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { temporaryDirectory } from '../temporary.ts';
import { Forwarder } from './forwarder.ts';
import { until } from './peers.ts';
import { rootsOf } from './stored-chain.ts';
import { Svcd } from './svcd.ts';

const NAMES = ['first', 'second', 'third'];
const CUT_MILLIS = 400;
/** More than a synced node may be behind. */
const CUTS_APART = 10;

/** A busy node may leave a question without an answer. */
async function answered<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
  }
}

test('three nodes of this machine find each other, know that they are parted, and have one chain when they are healed', async () => {
  const directory = temporaryDirectory();
  const genesis = join(directory, 'genesis.json');
  writeGenesis(genesis, developmentGenesis({ timestampMillis: steadyMillis(), validators: 2 }));
  const ports = await freePorts(4 * NAMES.length);
  const port = (kind: number, i: number) => ports[kind * NAMES.length + i] as number;
  const announced = (i: number) => port(3, i);
  const forwarders = await Promise.all(NAMES.map((_, i) => Forwarder.open(announced(i), port(2, i))));
  const at = (i: number) => `/ip4/127.0.0.1/tcp/${announced(i)}`;
  const nodes = NAMES.map((name, i) => {
    const words = ['--data-dir', join(directory, name), '--genesis', genesis, '--cut-millis', String(CUT_MILLIS)];
    const listens = ['--p2p-listen', `127.0.0.1:${port(2, i)}`, '--p2p-announce', at(i)];
    // The third knows the second alone, and learns of the first.
    const bootstrap = i === 0 ? [] : ['--bootstrap', at(i - 1)];
    return new Svcd({ api: port(0, i), mining: port(1, i) }, [...words, ...listens, ...bootstrap]);
  });
  onTestFinished(async () => {
    await Promise.all(nodes.map((node) => node.end('SIGKILL')));
    await Promise.all(forwarders.map((forwarder) => forwarder.close()));
  });
  for (const node of nodes) node.start();
  const [first, ...followers] = nodes as [Svcd, Svcd, Svcd];
  const whole = async () => {
    const documents = await Promise.all(nodes.map((node) => node.sync()));
    return documents.every((document) => document?.synced === true && document.peers === 2);
  };
  await until(whole);
  type Peers = { readonly peers: readonly { readonly direction: string; readonly address: string }[] };
  const dialled = async () => {
    const all = await Promise.all(nodes.map((node) => answered(() => node.peers<Peers>())));
    return all.flatMap(({ peers }) => peers.filter(({ direction }) => direction === 'outbound'));
  };
  await until(async () => (await dialled()).length > 0);
  for (const { address } of await dialled())
    expect(NAMES.map((_, i) => at(i))).toContain(address.replace(/\/p2p\/.*/, ''));

  for (const forwarder of forwarders) forwarder.part('refusing');
  await until(async () => (await Promise.all(nodes.map((node) => node.sync()))).every((found) => found?.peers === 0));
  const { finalized_height: parted } = await answered(() => first.sync());
  await until(async () => (await first.height()) >= parted + CUTS_APART);
  // A node that knew another way to the first would have gone on.
  for (const node of followers) {
    // By the age of its newest cut: nobody tells it that others have newer ones.
    await until(async () => (await node.sync())?.synced === false);
    const sync = await answered(() => node.sync());
    expect(sync.peers).toBe(0);
    expect(sync.finalized_height).toBeLessThanOrEqual(parted);
    expect(await node.template()).toBe(503);
  }

  for (const forwarder of forwarders) forwarder.heal();
  await until(whole);
  const { finalized_height: healed } = await answered(() => first.sync());
  await until(async () => (await Promise.all(followers.map((node) => node.height()))).every((own) => own >= healed));
  await Promise.all(nodes.map((node) => node.end('SIGTERM')));
  const [chain, ...others] = (await Promise.all(NAMES.map((name) => rootsOf(join(directory, name, 'store'))))) as [
    string[],
    ...string[][],
  ];
  for (const other of others) {
    expect(other.length).toBeGreaterThan(healed);
    expect(other).toEqual(chain.slice(0, other.length));
  }
});
