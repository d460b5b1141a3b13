/**
 * Three nodes on what looks like three machines: network namespaces joined by a bridge in the namespace of the test. They find each other, one is cut off while the chain goes on, and catches up when
 * it is back. Needs root, ip netns and veth; where they are missing the test says so and ends.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { developmentGenesis } from '../../node/genesis/development.ts';
import { writeGenesis } from '../../node/genesis/make-genesis.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from './peers.ts';
import { Svcd } from './svcd.ts';

const NET = '10.77.5';
const NAMES = ['a', 'b', 'c'].map((name) => `svct${process.pid}${name}`);
const BRIDGE = `svcbr${process.pid % 10_000}`;
const CUT_MILLIS = 250;

const ip = (...words: string[]) => execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] });
const end = (i: number) => `svcv${process.pid % 10_000}${i}`;

function build(): void {
  ip('link', 'add', BRIDGE, 'type', 'bridge');
  ip('addr', 'add', `${NET}.254/24`, 'dev', BRIDGE);
  ip('link', 'set', BRIDGE, 'up');
  for (const [i, name] of NAMES.entries()) {
    ip('netns', 'add', name);
    ip('link', 'add', end(i), 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
    ip('link', 'set', end(i), 'master', BRIDGE, 'up');
    ip('-n', name, 'addr', 'add', `${NET}.${i + 1}/24`, 'dev', 'eth0');
    for (const device of ['eth0', 'lo']) ip('-n', name, 'link', 'set', device, 'up');
  }
}

/** Deleting a namespace deletes its end of the cable, and with it the other. */
function remove(): void {
  for (const words of [...NAMES.map((name) => ['netns', 'del', name]), ['link', 'del', BRIDGE]])
    try {
      ip(...words);
    } catch {
      // It was not made.
    }
}

test('nodes of three namespaces find each other; one that was cut off catches up', async () => {
  try {
    build();
  } catch (error) {
    remove();
    console.log(`not run: network namespaces cannot be made here (${(error as Error).message.split('\n')[0]})`);
    return;
  }
  const directory = temporaryDirectory();
  const genesis = join(directory, 'genesis.json');
  writeGenesis(genesis, developmentGenesis({ timestampMillis: steadyMillis(), validators: 2 }));
  const nodes = NAMES.map((namespace, i) => {
    const host = `${NET}.${i + 1}`;
    const bootstrap = i === 0 ? [] : ['--bootstrap', `/ip4/${NET}.${i}/tcp/28705`];
    const words = ['--data-dir', join(directory, namespace), '--genesis', genesis, '--cut-millis', String(CUT_MILLIS)];
    const ports = { api: 28_701, mining: 28_702 };
    return new Svcd(ports, [...words, '--p2p-listen', host, ...bootstrap], { namespace, host });
  });
  onTestFinished(async () => {
    await Promise.all(nodes.map((node) => node.end('SIGKILL')));
    remove();
  });
  for (const node of nodes) node.start();
  const [first, , last] = nodes as [Svcd, Svcd, Svcd];
  // The last one knows the second alone, and is told of the first.
  await until(async () => (await last.sync())?.synced === true && (await last.sync())?.peers === 2);
  ip('link', 'set', end(2), 'down');
  const parted = await first.height();
  await until(async () => (await first.height()) >= parted + 20);
  ip('link', 'set', end(2), 'up');
  await until(async () => (await last.height()) >= parted + 20 && (await last.sync())?.synced === true);
  type Head = { readonly cut: { readonly height: number; readonly cut_id: string } };
  const answered = async <T>(node: Svcd, path: string): Promise<T> => {
    for (;;) {
      const answer = await node.get<T>(path);
      if (answer !== undefined) return answer;
    }
  };
  const { cut } = await answered<Head>(last, '/v1/chain/head');
  type Cuts = { readonly cuts: readonly { readonly height: number; readonly cut_id: string }[] };
  const { cuts } = await answered<Cuts>(first, `/v1/cuts?before=${cut.height + 1}&limit=1`);
  expect(cuts[0]).toMatchObject({ height: cut.height, cut_id: cut.cut_id });
});
