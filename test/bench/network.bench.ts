/**
 * Nodes and their peers on this machine, every network in a thread of its own: `sync` of a late joiner against the same cuts executed from a local store, `spread` of transactions and blocks over a mesh, `memory` of a node
 * with peers, `relay` of many transactions to a node in a process of its own: processor time of its main thread, and bytes; and only where they are named, because they take minutes, `late`: a node that takes a long chain and is killed twice,
 * and one from a snapshot, `hostile`: a mesh with hostile peers, `line`: as `spread`, but each node has only the one before and the one after it, and `split`: two halves of
 * validators and followers, parted for minutes. Words: parts, and cuts=, nodes=, peers=, transactions=, rate=, hostile=, rounds=, seconds=, millis=.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { developmentKey } from '../../node/genesis/development.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { concat, toHex } from '../../protocol/bytes.ts';
import { decodeProposedCut } from '../../protocol/consensus/proposal.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { type NodeFigures, NodeProcess } from '../network/child-node.ts';
import { fundsOf, NetBed, type NetNode, until } from '../network/peers.ts';
import { payment } from '../node/bed.ts';
import { type Bench, bench } from './harness.ts';
import { measureHostile } from './network/hostile-mesh.ts';
import { measureLateJoiner } from './network/late-joiner.ts';
import { measureSplit } from './network/split.ts';
import { measureSpread } from './network/spread.ts';

const IDLE_PEERS = fileURLToPath(new URL('../attack/hostile-peers-process.ts', import.meta.url));
const MEBIBYTE = 1024 * 1024;
const BOB = developmentKey('bob').address;

const at = ({ view }: NetNode): string => view.addresses[0] as string;
const height = ({ node }: NetNode): number => node.chain.head().height;

/** The same cuts from the store of the other node, without a network and without certificates to check. */
async function executeAgain({ chain }: ConsensusNode, { ledger }: ConsensusNode): Promise<void> {
  for (let of = 1; of <= chain.head().height; of++) {
    const cut = chain.cut(of);
    const certificate = chain.certificate(of);
    if (cut === undefined || certificate === undefined) throw new Error(`cut ${of} is not there`);
    const proposed = decodeProposedCut(concat(cut.headerBytes, ...cut.blockIds));
    for (const id of cut.blockIds)
      await ledger.admit(chain.block(id)?.header as Uint8Array, chain.blockBody(id) as Uint8Array, proposed);
    const applied = ledger.execute(proposed);
    if (typeof applied !== 'object') throw new Error(applied);
    await ledger.commit(applied, certificate);
  }
}

async function measureSync(b: Bench, cuts: number): Promise<void> {
  const bed = new NetBed();
  try {
    const source = await bed.start('source', {});
    await bed.seal(source, cuts, 4);
    const local = await bed.openChain('local');
    const began = performance.now();
    await executeAgain(source.node, local);
    const localSeconds = (performance.now() - began) / 1000;
    await local.close();
    const joiner = await bed.start('joiner', { bootstrap: [at(source)], follows: true });
    await until(() => height(joiner) > 0);
    const [first, start] = [height(joiner), performance.now()];
    await until(() => height(joiner) === cuts);
    const rate = ((cuts - first) * 1000) / (performance.now() - start);
    b.note(`${cuts} cuts of 4 blocks without payments, 2 validators, a plain hash for the PoW`);
    b.figure('local', cuts / localSeconds, 'cuts/s');
    b.figure('sync', rate, 'cuts/s', { ratio: (rate * localSeconds) / cuts, yardstick: 'local' });
  } finally {
    await bed.close();
  }
}

/** Transactions that a node gets from one peer; the node is alone in its process, so that its main thread can be measured. */
async function measureRelay(b: Bench, transactions: number, rate: number): Promise<void> {
  const bed = new NetBed(fundsOf(transactions));
  let follower: NodeProcess | undefined;
  try {
    const source = await bed.start('source', {});
    await bed.seal(source, 2, 1);
    const { chain } = source.node;
    const wires = chain.genesis.outputs.slice(0, transactions).map((output, i) => {
      const spent = { outpoint: genesisOutpoint(chain.chainId, i), ...output, source: 'genesis' as const };
      return payment(chain, [spent], [{ address: BOB, amount: 5n }]);
    });
    const words = [join(bed.directory, 'process'), at(source), String(bed.now), String(transactions)];
    follower = new NodeProcess(words);
    follower.start();
    await until(() => follower?.latest?.synced === true);
    const before = follower.latest as NodeFigures;
    const start = performance.now();
    for (const [i, wire] of wires.entries()) {
      const early = start + (i * 1_000) / rate - performance.now();
      if (early > 1) await new Promise((resolve) => setTimeout(resolve, early));
      // Its signatures are checked on threads meanwhile.
      void source.node.submitTransaction(wire);
    }
    await until(() => follower?.latest?.transactions === transactions);
    const seconds = (performance.now() - start) / 1_000;
    const after = follower.latest as NodeFigures;
    // The network's thread tells its bytes every now and then.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const { receivedBytes } = follower.latest as NodeFigures;
    const micros = (after.cpuMicros - before.cpuMicros) / transactions;
    const bytes = wires.reduce((sum, wire) => sum + wire.length, 0);
    b.note(
      `${transactions} transactions of ${Math.round(bytes / transactions)} bytes, one input each, offered at ${rate}/s`,
    );
    b.figure('relay-reached', transactions / seconds, 'tx/s');
    b.figure('relay-main-thread', micros, 'us/tx');
    b.figure('relay-idle-share-at-1000', Math.max(0, 1 - (micros * 1_000) / 1e6), '');
    b.figure('relay-received-over-sent', (receivedBytes - before.receivedBytes) / bytes, 'times');
  } finally {
    await follower?.kill();
    await bed.close();
  }
}

async function measureMemory(b: Bench, peers: number): Promise<void> {
  const bed = new NetBed();
  let child: ChildProcess | undefined;
  try {
    const node = await bed.start('node', { maxPeers: 2 * peers });
    await bed.seal(node, 2);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const before = process.memoryUsage().rss;
    const words = [at(node), toHex(node.node.chain.chainId), '2', ...Array.from({ length: peers }, () => 'height')];
    child = spawn(process.execPath, [IDLE_PEERS, ...words], { stdio: ['pipe', 'ignore', 'inherit'] });
    await until(() => node.view.figures().peers.length === peers);
    await new Promise((resolve) => setTimeout(resolve, 15_000));
    b.figure('memory-of-peers', (process.memoryUsage().rss - before) / MEBIBYTE, 'MiB');
    b.note(`${node.view.figures().peers.length} idle peers in another process`);
  } finally {
    child?.kill('SIGKILL');
    await bed.close();
  }
}

export default bench(
  'peers: sync against local execution, propagation over a mesh, memory, relay of transactions; late joiners, hostile peers, a line, a split',
  async (b) => {
    const number = (key: string, otherwise: number): number =>
      Number(b.words.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1) ?? otherwise);
    const parts = b.words.filter((word) => !word.includes('='));
    const wants = (part: string) => parts.length === 0 || parts.includes(part);
    if (wants('sync')) await measureSync(b, number('cuts', 1_000));
    if (wants('spread')) await measureSpread(b, number('nodes', 20));
    if (wants('memory')) await measureMemory(b, number('peers', 50));
    if (parts.includes('late')) await measureLateJoiner(b, number('cuts', 10_000));
    if (parts.includes('line')) await measureSpread(b, number('nodes', 7), 'line');
    if (parts.includes('split')) await measureSplit(b, number('seconds', 300), number('millis', 1_000));
    if (parts.includes('hostile')) {
      const hostile = number('hostile', 6);
      const honest = number('nodes', 20) - hostile;
      await measureHostile(b, { honest, hostile, rounds: number('rounds', 60), maxSeconds: number('seconds', 240) });
    }
    if (wants('relay')) await measureRelay(b, number('transactions', 3_000), number('rate', 1_000));
  },
);
