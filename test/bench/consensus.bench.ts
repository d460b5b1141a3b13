/**
 * Consensus of four validators: from proposal to decision, and the pace. Words choose parts: `empty` and `pace` run four `svcd` processes, seen from proxies between them; `full` runs four nodes in
 * one process over sockets, with cuts of 1,000 payments; `down` is `pace` with one of the four away; `members` is the cost of a cut for one member of 4 and of 64, with real signatures on one thread;
 * `embedded` is the cost of a cut with four members inside one node; `simulator` counts events of the simulator. `cuts=N` and `millis=N` set how many cuts at which pace.
 */
import { verify } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConsensusDriver } from '../../node/consensus/driver/driver.ts';
import type { Message } from '../../node/consensus/engine/effects.ts';
import { PRECOMMIT } from '../../node/consensus/engine/votes.ts';
import { ConsensusLog } from '../../node/consensus/log/log-file.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentGenesis, developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { importPublicKey, signMessage, signMessageAside } from '../../node/ml-dsa.ts';
import { type ConsensusNode, createNode } from '../../node/node.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { MAX_COMMITTEE } from '../../protocol/ledger/cut.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { VALIDATORS, ValidatorProcesses } from '../consensus/processes.ts';
import { simulate } from '../consensus/simulation.ts';
import { payment, quickHash, searchNonce, silentLog } from '../node/bed.ts';
import { embeddedCost } from './embedded-members.ts';
import { type Bench, bench } from './harness.ts';
import { committeeCost } from './signed-committee.ts';

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] as number;

const QUORUM = 3;

/** Four processes for so many cuts: how long each took from its proposal until a quorum's precommits had passed, and the pace of the timestamps. */
async function measureProcesses(b: Bench, name: string, cuts: number, cutMillis: number, down = 0): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-consensus-'));
  const processes = new ValidatorProcesses(directory);
  const proposed = new Map<string, number>();
  const precommits = new Map<string, Set<number>>();
  const times: number[] = [];
  let rounds = 0;
  processes.watch = (message: Message) => {
    const now = performance.now();
    if (message.type === 'proposal') {
      const { height, cut, round } = message.proposal;
      if (!proposed.has(`${height} ${cut}`)) {
        proposed.set(`${height} ${cut}`, now);
        if (round > 0) rounds++;
      }
    } else if (message.type === 'vote' && message.vote.kind === PRECOMMIT) {
      const { height, cut, member } = message.vote;
      const began = proposed.get(`${height} ${cut}`);
      const members = precommits.get(`${height} ${cut}`) ?? new Set();
      precommits.set(`${height} ${cut}`, members);
      if (members.has(member)) return;
      members.add(member);
      if (members.size === QUORUM && began !== undefined) times.push(now - began);
    }
  };
  try {
    await processes.prepare(cutMillis);
    for (const process of processes.validators) process.start();
    const [first] = processes.validators as [(typeof processes.validators)[number]];
    await processes.reached(4, processes.validators);
    for (const away of processes.validators.slice(VALIDATORS - down)) await away.end('SIGKILL');
    times.length = 0;
    const from = await first.height();
    await processes.reached(from + cuts, [first]);
    await processes.end('SIGTERM');
    const stamps = await processes.timestamps(0);
    // The chain begins with its genesis, before the processes do, and makes up for it first (rule 3).
    const isCaughtUp = (stamp: number, height: number) =>
      stamp - (stamps[0] as number) - height * cutMillis < cutMillis;
    const since = stamps.findIndex((stamp, height) => height >= from && isCaughtUp(stamp, height));
    const measured = stamps.slice(since, from + cuts + 1);
    const mean = ((measured.at(-1) as number) - (measured[0] as number)) / (measured.length - 1);
    b.note(
      `${times.length} decisions, pace of ${measured.length - 1} cuts, ${rounds} proposals of later rounds, ${cutMillis} ms a cut, ${VALIDATORS} processes`,
    );
    b.figure(`${name}-decision-p50`, percentile(times, 0.5), 'ms');
    b.figure(`${name}-decision-p99`, percentile(times, 0.99), 'ms');
    b.figure(`${name}-cut`, mean, 'ms', { ratio: mean / cutMillis, yardstick: 'target' });
  } finally {
    await processes.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

const PAYMENTS = 1_000;
const PAYMENTS_OF_A_BLOCK = 180;
const FULL_CUT_MILLIS = 2_500;

type Node = { readonly node: ConsensusNode; readonly driver: ConsensusDriver };

/** Four nodes of one process, joined by sockets; each has its own store, log and threads for signatures. */
async function startNodes(
  directory: string,
  cuts: number,
  note: (message: 'proposed' | 'decided', height: number) => void,
) {
  const treasury = developmentKey(TREASURY).address;
  const genesis = developmentGenesis({
    timestampMillis: steadyMillis(),
    initialWork: 1n,
    minimumWork: 1n,
    validators: VALIDATORS,
    fund: Array.from({ length: PAYMENTS * cuts }, () => ({ address: treasury, amount: 100_000_000n })),
  });
  const ports = await freePorts(VALIDATORS);
  const at = (port: number): ListenAddress => ({ host: '127.0.0.1', port });
  const nodes: Node[] = [];
  for (const [member, port] of ports.entries()) {
    const { publicKey, privateKey } = developmentKey(validatorName(member));
    const node = await createNode(
      {
        storeDirectory: join(directory, `${member}`, 'store'),
        genesis,
        cutMillis: FULL_CUT_MILLIS,
        makesCuts: false,
        signatureThreads: 1,
      },
      {
        verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
        certify: async () => ({ round: 0, signatures: [] }),
        now: (): number => steadyMillis(),
        random: (limit) => Math.floor(limit / 2),
        log: silentLog,
      },
    );
    const transport = new Overlay(
      { chainId: node.chain.chainId, binds: [at(port)], neighbours: ports.slice(member + 1).map(at) },
      {
        log: silentLog,
        steady: steadyMillis,
        signer: { publicKey, sign: (message) => signMessageAside(privateKey, message) },
        members: () => node.ledger.committee(node.chain.head().height + 1)?.members ?? [],
      },
    );
    await transport.listen();
    const owner = { chainId: node.chain.chainId, validatorId: validatorId(publicKey) };
    const driver = new ConsensusDriver(FULL_CUT_MILLIS, {
      node,
      transport,
      signer: { publicKey, privateKey, ...(await ConsensusLog.open(join(directory, `${member}`, 'log'), owner)) },
      log: silentLog,
      now: (): number => steadyMillis(),
      steady: steadyMillis,
      watch: (_, effects) => {
        for (const effect of effects) {
          if (effect.do === 'send' && effect.message.type === 'proposal')
            note('proposed', effect.message.proposal.height);
          if (effect.do === 'decide') note('decided', effect.proof.height);
        }
      },
    });
    driver.start();
    nodes.push({ node, driver });
  }
  return nodes;
}

/** Within five seconds one draw gives the same payments again. */
async function mine(node: ConsensusNode, payout: Bytes, draw: number): Promise<void> {
  const template = node.template({ payout, maxTransactions: PAYMENTS, draw });
  const outcome = await node.submitBlock(searchNonce(template.header, template.target), template.body);
  if (outcome.status === 'refused') throw new Error(`the block was refused: ${outcome.error.code}`);
}

async function measureFull(b: Bench, cuts: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-consensus-'));
  const proposed = new Map<number, number>();
  const decided = new Map<number, number[]>();
  const nodes = await startNodes(directory, cuts, (what, height) => {
    const now = performance.now();
    if (what === 'decided') decided.set(height, [...(decided.get(height) ?? []), now]);
    else if (!proposed.has(height)) proposed.set(height, now);
  });
  const [{ node }] = nodes as [Node];
  try {
    b.note(`signing ${PAYMENTS * cuts} payments`);
    const to = developmentKey('alice').address;
    const outputOf = (i: number): UnspentOutput => ({
      ...(node.chain.genesis.outputs[i] as UnspentOutput),
      outpoint: genesisOutpoint(node.chain.chainId, i),
      source: 'genesis',
    });
    const heights: number[] = [];
    const wires: Bytes[] = [];
    for (let i = 0; i < PAYMENTS * cuts; i++) {
      wires.push(payment(node.chain, [outputOf(i)], [{ address: to, amount: 1_000n }], { validUntil: 100_000 }));
      if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    for (let cut = 0; cut < cuts; cut++) {
      // All of the cut's blocks between two cuts, on one node: the others have to fetch and check them.
      const before = node.chain.head().height;
      while (node.chain.head().height === before) await sleep(5);
      const payments = wires.slice(cut * PAYMENTS, (cut + 1) * PAYMENTS);
      // A block holds 1 MiB of payments. Each is made before the next ones are there, so no payment is in two of them.
      for (let at = 0; at < payments.length; at += PAYMENTS_OF_A_BLOCK) {
        await Promise.all(
          payments.slice(at, at + PAYMENTS_OF_A_BLOCK).map((wire) => node.submitTransaction(wire, 'own')),
        );
        await mine(node, to, cut * PAYMENTS + at);
      }
      heights.push(node.chain.head().height + 1);
      const height = node.chain.head().height + 1;
      while (nodes.some((other) => other.node.chain.head().height < height)) await sleep(5);
    }
    const times = heights.map(
      (height) => Math.max(...(decided.get(height) as number[])) - (proposed.get(height) as number),
    );
    b.note(
      `payments in the measured cuts: ${heights.map((height) => node.chain.cut(height)?.transactionCount).join(', ')}`,
    );
    b.figure('full-decision-p50', percentile(times, 0.5), 'ms');
    b.figure('full-decision-most', Math.max(...times), 'ms');
  } finally {
    for (const each of nodes) {
      await each.driver.close();
      await each.node.close();
    }
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A member checks a proposal and two votes of every other member: nothing can be quicker than that. */
function measureMembers(b: Bench, cuts: number): void {
  const { privateKey, publicKey } = developmentKey(validatorName(0));
  const message = new Uint8Array(48);
  const signature = signMessage(privateKey, message);
  const key = importPublicKey(publicKey);
  const began = process.cpuUsage();
  const checks = 1_000;
  for (let i = 0; i < checks; i++) if (!verify(null, message, key, signature)) throw new Error('it is valid');
  const { user, system } = process.cpuUsage(began);
  const checkMillis = (user + system) / 1_000 / checks;
  b.figure('signature-check', checkMillis, 'ms');
  for (const size of [VALIDATORS, MAX_COMMITTEE]) {
    const cost = committeeCost(size, cuts);
    const ratio = cost.cpuMillis / ((2 * (size - 1) + 1) * checkMillis);
    b.figure(`members-${size}-cpu`, cost.cpuMillis, 'ms', { ratio, yardstick: 'its signature checks alone' });
    b.figure(`members-${size}-received`, cost.receivedBytes / 1_000, 'kB');
    b.figure(`members-${size}-written`, cost.writtenBytes / 1_000, 'kB');
    b.figure(`members-${size}-one-core`, cost.wallMillis, 'ms');
  }
}

function measureSimulator(b: Bench, runs: number): void {
  for (let seed = 0; seed < 50; seed++) simulate(seed);
  const began = process.cpuUsage();
  let events = 0;
  for (let seed = 0; seed < runs; seed++) events += simulate(seed).events;
  const { user, system } = process.cpuUsage(began);
  b.figure('simulator-events', (events / (user + system)) * 1e6, '/s');
}

export default bench('consensus of four validators: proposal to decision, pace', async (b) => {
  const number = (key: string, otherwise: number): number =>
    Number(b.words.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1) ?? otherwise);
  const parts = b.words.filter((word) => !word.includes('='));
  const wants = (part: string) => parts.length === 0 || parts.includes(part);
  if (wants('empty')) await measureProcesses(b, 'empty', number('cuts', 40), number('millis', 2_500));
  if (wants('pace')) await measureProcesses(b, 'pace', number('cuts', 1_000), number('millis', 250));
  if (parts.includes('down')) await measureProcesses(b, 'down', number('cuts', 200), number('millis', 500), 1);
  if (wants('members')) measureMembers(b, number('cuts', 10));
  if (parts.includes('embedded'))
    for (const way of ['clock', 'engines', 'engines with logs'] as const)
      b.figure(
        `embedded-${way.replaceAll(' ', '-')}`,
        await embeddedCost(way, number('cuts', 100), number('millis', 100)),
        'ms',
      );
  if (wants('simulator')) measureSimulator(b, number('runs', 1_000));
  if (wants('full')) await measureFull(b, Math.min(20, number('cuts', 8)));
});
