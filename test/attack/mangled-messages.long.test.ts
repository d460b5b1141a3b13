/**
 * Every message of consensus, block exchange, sync, snapshots, relay, gossip and mining, changed on its way by one that
 * lies: no honest node ends, blames an honest one, takes something false or disagrees with the others, and the chain
 * and the work go on. The property is the same whatever is changed; the changes come from a seed (mangler.ts). At the
 * deep level there are 100,000 changes, and their counts are printed.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newIdentity } from '../../node/api/identity.ts';
import { adoptInto } from '../../node/chain/adopted-cut.ts';
import { decodeBlockMessage, encodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import { BLOCK_MESSAGE_TYPES, MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import type { Transport } from '../../node/consensus/reach/transport.ts';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { AskError } from '../../node/network/peers/peer-fault.ts';
import {
  decodeBatch,
  decodeRelayQuestion,
  encodeBatch,
  encodeRelayQuestion,
  type RelayQuestion,
  SALT_BYTES,
} from '../../node/network/relay/relay-messages.ts';
import { answerRelay } from '../../node/network/relay/relay-server.ts';
import { fetchSnapshot } from '../../node/network/snapshots/fetch-snapshot.ts';
import { answerSync } from '../../node/network/sync/cut-server.ts';
import { CutSync } from '../../node/network/sync/cut-sync.ts';
import {
  decodeBlocksAnswer,
  decodeSyncQuestion,
  encodeBlocksAnswer,
  encodeSyncQuestion,
  type SyncQuestion,
} from '../../node/network/sync/sync-messages.ts';
import type { Protocol, Topic } from '../../node/network/thread/host-types.ts';
import type { ConsensusNode } from '../../node/node.ts';
import type { Trust } from '../../node/snapshot/snapshot-options.ts';
import { SnapshotShelf } from '../../node/snapshot/snapshot-shelf.ts';
import { chainOfApi } from '../../pool/accountant/chain.ts';
import { statementOf } from '../../pool/accountant/reward-statements.ts';
import { createApiClient } from '../../protocol/api/client.ts';
import type { Pin } from '../../protocol/api/pinned-node.ts';
import { type Bytes, concat, toHex } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { blockId, HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { decodeTransaction, type Output, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';
import { ApiBed, identity as apiIdentity } from '../api/api-bed.ts';
import { DrivenNetwork, MEMBERS, mineOn } from '../consensus/driven.ts';
import { type Lie, LyingNode } from '../faults/lying-node.ts';
import { fatalErrors, followNodes, httpNode, startMiningBed } from '../faults/mining-bed.ts';
import { count, level, seed } from '../level.ts';
import { PeerRoom } from '../network/memory-peers.ts';
import { PayingChain } from '../network/paying-chain.ts';
import { treasuryOutput } from '../network/peers.ts';
import { payment } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { SNAPSHOT, SnapshotBed } from '../snapshot/snapshot-bed.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { Mangler, Tally } from './mangler.ts';

/** Of all tests of this file. */
const tally = new Tally();
const isDeep = level === 'deep';
// After each: a long run that is stopped has told what it did.
afterEach(() => isDeep && console.log(tally.report()));
afterAll(() => {
  if (isDeep) expect(tally.changes.total).toBeGreaterThanOrEqual(100_000);
});

const alice = developmentKey('alice').address;
/** Nodes that sync at the same time. */
const ABREAST = 4;
const repeat = (more: number) => `repeat with SVC_TEST_SEED=${seed + more}`;

/** The faults that ended a node, as it would have ended its process. */
function watchFaults(node: ConsensusNode, name: string, into: string[]): void {
  node.on('fault', ({ message }) => void into.push(`${name}: ${message}`));
}

describe('between validators', () => {
  let network: DrivenNetwork;
  let stranger: Transport;
  afterEach(async () => {
    // First: it reads blocks of the others.
    await stranger.close();
    await network.close();
  });

  const honest = ['m0', 'm1', 'm2'] as const;
  const LIAR = 'm3';
  const STRANGER = 'stranger';
  const OFFERS: readonly number[] = [BLOCK_MESSAGE_TYPES.offer, BLOCK_MESSAGE_TYPES.block];

  const TYPES = Object.entries({ ...MESSAGE_TYPES, ...BLOCK_MESSAGE_TYPES });
  const kindOf = ([type]: Bytes) => `validators: ${TYPES.find(([, of]) => of === type)?.[0] ?? 'others'}`;

  /** What is sent in place of a message: something else, or a block with a body that can be read and is not its own. */
  function changedBy(mangler: Mangler, bytes: Bytes): Bytes[] {
    const kind = kindOf(bytes);
    if (bytes[0] !== BLOCK_MESSAGE_TYPES.block || mangler.random(4) === 0) return mangler.mangle(bytes, kind);
    const message = decodeBlockMessage(bytes);
    if (message?.type !== 'block') return mangler.mangle(bytes, kind);
    return [encodeBlockMessage({ ...message, body: mangler.spoilBody(message.body, kind) })];
  }

  /** A stranger hears everything, sends to everybody what it made of it, and answers with spoiled blocks when it is asked. It has no key. */
  function joinStranger(mangler: Mangler, nodes: () => readonly ConsensusNode[]): void {
    stranger = network.network.transport(STRANGER);
    const blockOf = (id: Bytes): Bytes | undefined => {
      const [holder] = nodes().filter(({ chain }) => chain.blockBody(id) !== undefined);
      const [header, body] = [holder?.chain.block(id)?.header, holder?.chain.blockBody(id)];
      return header && body && encodeBlockMessage({ type: 'block', header, body });
    };
    stranger.start({
      joined: () => undefined,
      left: () => undefined,
      message: (from, bytes) => {
        // What the liar sends may be anything.
        const wanted = attempt(() => (from === LIAR ? undefined : decodeBlockMessage(bytes)));
        for (const id of wanted.ok && wanted.value?.type === 'want' ? wanted.value.ids : []) {
          const block = blockOf(id);
          if (block !== undefined) for (const changed of changedBy(mangler, block)) stranger.send(from, changed);
        }
        for (const other of honest) for (const changed of changedBy(mangler, bytes)) stranger.send(other, changed);
      },
    });
  }

  const PURSES = 64;

  /** Blocks have payments, so that bodies can be spoiled in more than one way: each of what an earlier one gave back, where that is final. */
  class Payer {
    readonly #purses: (UnspentOutput | undefined)[] = [];

    async mineAndPay(at: ConsensusNode, index: number): Promise<void> {
      const purse = index % PURSES;
      const spent = this.#purses[purse] ?? treasuryOutput(at.chain, purse);
      const wire = payment(at.chain, [spent], [{ address: alice, amount: 5n }]);
      const { status } = await at.submitTransaction(wire);
      const change = decodeTransaction(wire).body.outputs[1] as Output;
      const outpoint = { transactionId: transactionIdOfWire(wire), outputIndex: 1 };
      if (status === 'accepted') this.#purses[purse] = { outpoint, ...change, source: 'regular' };
      const extranonce = Buffer.alloc(5);
      extranonce.writeUInt32LE(index, 1);
      await mineOn(at, alice, extranonce);
    }
  }

  test(
    'a member that changes every block and a quarter of its votes, and a stranger that repeats everybody’s messages changed, stop and divide nobody',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      network = new DrivenNetwork();
      const mangler = new Mangler(seed, tally);
      const payer = new Payer();
      const faults: string[] = [];
      network.network.carries = (from: Peer, to: Peer, bytes: Bytes) => {
        // Half of the honest offers and blocks are lost too: what is missing when a cut is proposed is asked of anybody.
        if (from !== LIAR && from !== STRANGER) return !OFFERS.includes(bytes[0] ?? 0) || mangler.random(2) === 0;
        // Most of its votes are good: with them two honest members make a cut that a third one may have been lied to about.
        if (from === STRANGER || (!OFFERS.includes(bytes[0] ?? 0) && mangler.random(4) !== 0)) return true;
        for (const changed of changedBy(mangler, bytes)) network.network.deliver(from, to, changed);
        return false;
      };
      for (const [i, name] of [...honest, LIAR].entries()) {
        const { node } = await network.start(name, i);
        if (name !== LIAR) watchFaults(node, name, faults);
      }
      const nodes = honest.map((name) => network.running.get(name)?.node as ConsensusNode);
      joinStranger(mangler, () => nodes);
      const cuts = count({ full: 15, deep: 250 });
      for (let mined = 0; mined < cuts; mined++) {
        const before = (nodes[0] as ConsensusNode).chain.head().height;
        // The liar finds blocks too: others must ask it for their bodies.
        const finder = mined % MEMBERS === 3 ? network.running.get(LIAR)?.node : nodes[mined % 3];
        await payer.mineAndPay(finder as ConsensusNode, mined).catch((error: Error) => {
          // The liar's own node may be behind, and its block too late.
          if (finder !== network.running.get(LIAR)?.node) throw error;
        });
        await until(() => faults.length > 0 || nodes.every(({ chain }) => chain.head().height > before));
        expect(faults, repeat(0)).toEqual([]);
      }
      const isHonest = (peer: Peer) => honest.some((name) => name === peer);
      expect(network.network.dropped.filter(({ by, peer }) => isHonest(by) && isHonest(peer))).toEqual([]);
      const lowest = Math.min(...nodes.map(({ chain }) => chain.head().height));
      for (let height = 0; height <= lowest; height++)
        expect(new Set(nodes.map(({ chain }) => toHex(chain.cut(height)?.cutId ?? new Uint8Array(0)))).size).toBe(1);
      tally.verdicts.add('validators', `cuts that all agree on: ${lowest}`);
      for (const { reason } of network.network.dropped)
        tally.verdicts.add('validators', `sent away: ${reason.split(':')[0]}`);
    },
  );
});

/** What a peer that lies answers to a question: a block with a body that is not its own, or anything. */
function liesAbout(node: ConsensusNode, mangler: Mangler, protocol: Protocol, question: Bytes): Bytes | undefined {
  const asked = attempt(() => (protocol === 'sync' ? decodeSyncQuestion(question) : decodeRelayQuestion(question)));
  if (!asked.ok) return undefined;
  const { value } = asked;
  const truth = truthAbout(node, value);
  const kind = `${protocol} answer: ${value.type}`;
  if ((value.type !== 'blocks' && value.type !== 'block') || mangler.random(2) === 0)
    return mangler.random(4) === 0 ? truth : mangler.mangleOne(truth, kind);
  return encodeBlocksAnswer(
    decodeBlocksAnswer(truth).map((block) => block && { ...block, body: mangler.spoilBody(block.body, kind) }),
  );
}

function truthAbout(node: ConsensusNode, question: SyncQuestion | RelayQuestion): Bytes {
  switch (question.type) {
    case 'snapshots':
    case 'part':
      return NOTHING;
    case 'cuts':
    case 'blocks':
    case 'blockPart':
    case 'headers':
      return answerSync(node.chain, question);
    default:
      return answerRelay(node, question, () => undefined);
  }
}

const NOTHING = new Uint8Array(0);

describe('between a node that syncs and its peers', () => {
  let chain: PayingChain;
  beforeEach(() => {
    chain = new PayingChain();
  });
  afterEach(() => chain.bed.close());

  test(
    'of five peers four change their answers, and are never sent away: a node ends on the honest head and blames only them',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      const room = new PeerRoom();
      const { node } = await chain.start(() => ({ openPeers: room.opens('source') }));
      for (let cut = 0; cut < 12; cut++) await chain.seal({ node });
      const head = node.chain.head();
      const mangler = new Mangler(seed + 1, tally);
      const rounds = count({ full: 5, deep: 60 });
      const follow = async (round: number) => {
        const faults: string[] = [];
        const follower = await chain.bed.openChain(`alone-${round}`);
        watchFaults(follower, 'follower', faults);
        const sync = new CutSync({
          ledger: follower.ledger,
          adopt: adoptInto(follower.ledger),
          hasNeighbours: false,
          network: {
            ask: async (peer, _, bytes) => {
              if (peer === 'honest') return truthAbout(node, decodeSyncQuestion(bytes));
              const answer = liesAbout(node, mangler, 'sync', bytes);
              if (answer === undefined) throw new AskError('unanswered', 'no answer');
              if (answer.length === 0) throw new AskError('busy', 'the peer is busy');
              return answer;
            },
            fault: (peer, fault, reason) => {
              if (peer === 'honest') faults.push(`the honest one is blamed: ${fault} ${reason}`);
              tally.verdicts.add('sync answers', fault);
            },
          },
          log: quietLog,
          checkpoints: [],
          steady: steadyMillis,
          probeMillis: 20,
          isAtTip: () => true,
          updateRequired: (version) => void faults.push(`update_required ${version}`),
        });
        for (const peer of ['a', 'b', 'c', 'd', 'honest']) sync.heights.joined(peer, head.height);
        sync.start();
        await until(() => faults.length > 0 || follower.chain.head().height >= head.height);
        expect(faults, repeat(0)).toEqual([]);
        expect(toHex(follower.chain.head().cutId)).toBe(toHex(head.cutId));
        await sync.close();
        await follower.close();
        rmSync(join(chain.bed.directory, `alone-${round}`), { recursive: true });
        tally.verdicts.add('sync answers', 'on the honest head');
      };
      // Several at once: most of the time of one is waiting for the next try.
      for (let round = 0; round < rounds; round += ABREAST)
        await Promise.all(Array.from({ length: Math.min(ABREAST, rounds - round) }, (_, i) => follow(round + i)));
    },
  );
});

describe('gossip', () => {
  const NODES = ['source', 'relay', 'follower'] as const;
  /** Liars at every node, and what they send of every message that they hear. */
  const LIARS = 4;
  const VARIANTS = 16;
  const WORK = { initialWork: 4_096n, minimumWork: 4_096n };

  /** Peers that hear everything and send it changed before the honest do. One that is barred is followed by another. */
  class Liars {
    readonly #room: PeerRoom;
    readonly #mangler: Mangler;
    readonly #source: ConsensusNode;
    readonly #there = new Map<string, string[]>(NODES.map((name) => [name, []]));
    readonly #heard = new Set<string>();
    #entered = 0;

    constructor(room: PeerRoom, mangler: Mangler, source: ConsensusNode) {
      this.#room = room;
      this.#mangler = mangler;
      this.#source = source;
      for (const at of NODES) for (let i = 0; i < LIARS; i++) this.#enter(at);
    }

    #enter(at: string): void {
      const name = `liar-${this.#entered++}`;
      this.#there.get(at)?.push(name);
      const spoken = {
        answer: async (_: string, protocol: Protocol, question: Bytes) =>
          liesAbout(this.#source, this.#mangler, protocol, question),
        heard: (_: string, topic: Topic, data: Bytes) => this.#spread(topic, data),
        barred: () => {
          const there = this.#there.get(at) as string[];
          there.splice(there.indexOf(name), 1);
          this.#room.leave(name);
          setImmediate(() => this.#enter(at));
        },
      };
      if (this.#room.nodes.has(at)) this.#room.enter(name, spoken, at);
    }

    #spread(topic: Topic, data: Bytes): void {
      const name = toHex(data);
      if (this.#heard.has(name)) return;
      this.#heard.add(name);
      // Not to every node: one that has it from a liar already does not look at what an honest relay makes of it.
      for (const at of NODES.filter(() => this.#mangler.random(2) === 0))
        for (let i = 0; i < VARIANTS; i++)
          for (const changed of this.#changed(topic, data)) this.#send(at, topic, changed);
    }

    #send(at: string, topic: Topic, data: Bytes): void {
      const there = this.#there.get(at) as string[];
      const liar = there[this.#mangler.random(there.length)];
      if (liar === undefined) return;
      // What comes of it is not mangled again.
      this.#heard.add(toHex(data));
      void this.#room
        .node(at)
        ?.hear(liar, topic, data)
        .then((verdict) => tally.verdicts.add(`gossip: ${topic}`, verdict));
    }

    /** Announcements of one transaction each are what a relay must not pass on one by one; a header with other content is what it must not pass on at all. */
    #changed(topic: Topic, data: Bytes): Bytes[] {
      const { random } = this.#mangler;
      const kind = `gossip: ${topic}`;
      if (topic === 'cuts' || random(2) === 0) return this.#mangler.mangle(data, kind);
      if (topic === 'blocks')
        return this.#mangler
          .mangle(data.subarray(HEADER_BYTES), `${kind} with their headers`)
          .map((rest) => concat(data.subarray(0, HEADER_BYTES), rest));
      tally.changes.add(kind, 'batches of their own');
      const salt = () => Uint8Array.from({ length: SALT_BYTES }, () => random(256));
      return Array.from({ length: 8 }, () => decodeBatch(data).map((id) => encodeBatch(salt(), [id]))).flat();
    }
  }

  test(
    'in a line of three nodes among liars that change all announcements and all answers, everything honest arrives, nothing else does, and no honest node is blamed',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      const chain = new PayingChain(WORK);
      onTestFinished(() => chain.bed.close());
      const room = new PeerRoom();
      const faults: string[] = [];
      const opening = (name: string) => () => ({ openPeers: room.opens(name) });
      const source = await chain.start(opening('source'));
      const relay = await chain.bed.start('relay', { follows: true }, opening('relay'));
      const follower = await chain.bed.start('follower', { follows: true }, opening('follower'));
      const all = [source, relay, follower];
      for (const [i, { node }] of all.entries()) watchFaults(node, NODES[i] as string, faults);
      room.connect('relay', 'source');
      room.connect('follower', 'relay');
      const isHonest = (peer: string) => NODES.some((name) => name === peer);
      const wrongs = () => [
        ...faults,
        ...room.broken,
        ...room.blamed.filter(({ peer }) => isHonest(peer)).map((blame) => JSON.stringify(blame)),
      ];
      const comes = (has: (node: ConsensusNode) => boolean) =>
        until(() => wrongs().length > 0 || all.every(({ node }) => has(node)), { everyMillis: 2 });
      // A node says that it is synced when a cut was proven to it.
      await chain.bed.seal(source, 1);
      await comes(({ chain }) => chain.head().height > 0 && chain.sync().synced);
      new Liars(room, new Mangler(seed + 2, tally), source.node);
      const sent = new Set<string>();
      const cuts = count({ full: 6, deep: 120 });
      for (let cut = 0; cut < cuts; cut++) {
        room.steady += 100;
        const paid = await chain.pay(source);
        sent.add(toHex(paid));
        await comes(({ mempool }) => mempool.get(paid) !== undefined);
        await chain.bed.mine(source.node);
        await comes((node) => [...node.chain.waitingBlocks()].length > 0);
        await chain.bed.seal(source, 1);
        const { height, cutId } = source.node.chain.head();
        await comes((node) => node.chain.head().height >= height);
        expect(wrongs(), repeat(0)).toEqual([]);
        for (const { node } of all) {
          expect(toHex(node.chain.cut(height)?.cutId as Bytes)).toBe(toHex(cutId));
          for (const { id } of node.mempool.list()) expect(sent).toContain(toHex(id));
        }
        tally.verdicts.add('gossip', 'cuts that all agree on');
      }
      for (const { fault } of room.blamed) tally.verdicts.add('gossip: liars', fault);
    },
  );

  test(
    'questions that are changed on their way are answered or refused, and honest ones answered as before',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      const chain = new PayingChain();
      onTestFinished(() => chain.bed.close());
      const room = new PeerRoom();
      const source = await chain.start(() => ({ openPeers: room.opens('source') }));
      for (let cut = 0; cut < 3; cut++) await chain.seal(source);
      const faults: string[] = [];
      watchFaults(source.node, 'source', faults);
      const [first] = [...(source.node.chain.cut(1)?.blockIds ?? [])];
      const block = first as Bytes;
      const waiting = [await chain.pay(source), await chain.pay(source)];
      const QUESTIONS: readonly (readonly [Protocol, string, Bytes])[] = [
        ...(
          [
            { type: 'cuts', from: 1, count: 3 },
            { type: 'blocks', ids: [block] },
            { type: 'headers', to: 3, count: 2 },
            { type: 'snapshots' },
            { type: 'part', height: 191, part: 1, from: 0 },
          ] as const
        ).map((question) => ['sync', question.type, encodeSyncQuestion(question)] as const),
        ...(
          [
            { type: 'transactions', ids: waiting },
            { type: 'carried', block, indexes: [0] },
            { type: 'block', block },
            { type: 'waiting' },
          ] as const
        ).map((question) => ['relay', question.type, encodeRelayQuestion(question)] as const),
      ];
      const mangler = new Mangler(seed + 3, tally);
      const asks = count({ full: 500, deep: 40_000 });
      const before = room.node('source');
      const truths = await Promise.all(QUESTIONS.map(([protocol, , bytes]) => before.serve('honest', protocol, bytes)));
      for (let asked = 0; asked < asks; asked++) {
        const [protocol, type, bytes] = QUESTIONS[asked % QUESTIONS.length] as (typeof QUESTIONS)[number];
        const kind = `${protocol} question: ${type}`;
        for (const changed of mangler.mangle(bytes, kind)) {
          const answer = await before.serve(`liar-${asked}`, protocol, changed);
          tally.verdicts.add(kind, answer === undefined ? 'refused' : answer.length === 0 ? 'busy' : 'answered');
        }
      }
      expect([...faults, ...room.broken], repeat(1)).toEqual([]);
      expect(room.blamed.filter(({ fault }) => fault !== 'malformed')).toEqual([]);
      // Each from another peer: among a thousand that ask, the part of one is a few milliseconds.
      for (const [i, [protocol, , bytes]] of QUESTIONS.entries())
        expect(await before.serve(`honest ${i}`, protocol, bytes)).toEqual(truths[i]);
    },
  );
});

describe('snapshots', () => {
  let made: SnapshotBed;
  let shelf: SnapshotShelf | undefined;
  const room = new PeerRoom();
  beforeAll(async () => {
    made = await SnapshotBed.open(() => ({
      openPeers: room.opens('source'),
      snapshots: { offers: () => shelf?.offers() ?? [], part: async (...asked) => await shelf?.part(...asked) },
    }));
    const cutIdOf = (height: number) => made.source.node.chain.cut(height)?.cutId;
    shelf = new SnapshotShelf({ directory: made.folder, cutIdOf, steady: steadyMillis, log: quietLog });
    await shelf.look();
  });
  afterAll(async () => {
    await shelf?.close();
    await made.close();
  });

  const LIARS = 16;
  /** Of all liars of one fetch; then they are gone. */
  const CHANGES = 300;
  /** Turns for which the honest one waits for liars to be asked before it. */
  const TURNS = 400;

  /** Fetches with one honest peer among liars, of which another comes when one is barred or has lied a few times. */
  async function fetchAmongLiars(name: string, trust: Trust, mangler: Mangler): Promise<Bytes> {
    const { node } = made.source;
    let [left, entered] = [CHANGES, 0];
    const liars = new Map<string, () => void>();
    const truthOf = (question: Bytes) => room.node('source').serve(`${name}-liar`, 'sync', question);
    const enter = (): void => {
      const liar = `${name}-liar-${entered++}`;
      // Most come for one answer: who sent a false part is not asked for another.
      let lies = mangler.random(4) === 0 ? 3 : 1;
      const leave = () => {
        if (!liars.delete(liar)) return;
        room.leave(liar);
        setImmediate(() => left > 0 && enter());
      };
      const answer = async (_: string, __: Protocol, question: Bytes): Promise<Bytes | undefined> => {
        const truth = await truthOf(question);
        const { type } = decodeSyncQuestion(question);
        // Most say truly what they have: else they would be asked for nothing.
        const isTrue = mangler.random(4) < (type === 'snapshots' ? 3 : 2);
        if (truth === undefined || left <= 0 || isTrue) return truth;
        if (--left === 0) setImmediate(() => [...liars.values()].map((goes) => goes()));
        if (--lies === 0) setImmediate(leave);
        return mangler.mangleOne(truth, `sync answer: ${type}`);
      };
      liars.set(liar, leave);
      room.enter(liar, { answer, barred: leave }, name);
    };
    const honest = {
      answer: async (peer: string, protocol: Protocol, question: Bytes) => {
        for (let turn = 0; turn < TURNS && left > 0; turn++) await new Promise(setImmediate);
        // It may be busy with others.
        if (left > 0 && mangler.random(16) === 0) return NOTHING;
        return await room.node('source').serve(peer, protocol, question);
      },
    };
    const dataDir = join(made.bed.directory, name);
    const peers = { listen: [], announce: [], bootstrap: [], maxPeers: 50 };
    const open = room.opens(name);
    const found = fetchSnapshot(
      { dataDir, peers, trust, genesis: node.chain.genesis, release: '0.1.0' },
      {
        log: quietLog,
        now: () => made.bed.now,
        // A peer that failed rests for seconds.
        steady: () => 16 * steadyMillis(),
        signal: new AbortController().signal,
        openPeers: (settings, handlers, log) => {
          const link = open(settings, handlers, log);
          setImmediate(() => {
            for (let i = 0; i < LIARS; i++) enter();
            room.enter(`${name}-honest`, honest, name);
          });
          return link;
        },
      },
    );
    const { file, cutId } = await found;
    left = 0;
    expect(toHex(cutId)).toBe(toHex(made.trust));
    const fetched = readFileSync(file);
    rmSync(dataDir, { recursive: true });
    return fetched;
  }

  test(
    'a node that fetches one among peers that change their answers gets it whole, and blames no honest one',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      const mangler = new Mangler(seed + 4, tally);
      const faults: string[] = [];
      watchFaults(made.source.node, 'source', faults);
      const at = (height: number): Trust => ({ height, cutId: made.source.node.chain.cut(height)?.cutId as Bytes });
      // The trusted cut is that of the snapshot, one after it, or one before it.
      const trusts: readonly Trust[] = [{ cutId: made.trust }, at(SNAPSHOT + 2), at(SNAPSHOT - 5)];
      const whole = readFileSync(made.file);
      const fetches = count({ full: 3, deep: 60 });
      for (let fetch = 0; fetch < fetches; fetch++) {
        const fetched = await fetchAmongLiars(`fetch-${fetch}`, trusts[fetch % 3] as Trust, mangler);
        expect(whole.equals(fetched), repeat(4)).toBe(true);
        expect([...faults, ...room.broken], repeat(4)).toEqual([]);
        expect(room.blamed.filter(({ peer }) => peer.endsWith('-honest'))).toEqual([]);
        tally.verdicts.add('snapshots', 'fetched whole');
        for (const { fault } of room.blamed.splice(0)) tally.verdicts.add('snapshots: liars', fault);
      }
    },
  );
});

describe('mining', () => {
  const identity = newIdentity();
  const PIN: Pin = { identity: toHex(identity.identity) };

  type Said = { readonly fees: Set<string> };

  /** Everything between the node and its client is changed, but for one in `kept`. What the node really said is noted. */
  function mangling(mangler: Mangler, said: Map<string, Said>, kept: number): Lie {
    const isKept = () => mangler.random(kept) === 0;
    const changed = (text: Bytes, kind: string): Bytes[] =>
      mangler.random(2) === 0 ? [mangler.otherDigit(text, kind)] : mangler.mangle(text, kind);
    return {
      ask: (asked) => {
        if (asked.method !== 'POST' || mangler.random(3) > 0) return asked;
        const body = changed(asked.body, `mining request: ${asked.path}`).at(-1);
        return { ...asked, body: Buffer.from(body ?? NOTHING) };
      },
      http: async ({ path }, response, truth) => {
        const { status, headers, body } = await truth();
        note(body, said);
        const kind = `mining answer: ${path.split(/\/[0-9a-f]{96}/)[0]}`;
        const answer = isKept() ? body : changed(body, kind).at(-1);
        if (answer === undefined) return response.destroy();
        // A status of another answer.
        const told = mangler.random(16) === 0 ? ([200, 400, 409, 429, 503][mangler.random(5)] as number) : status;
        return response.writeHead(told, { ...headers, 'content-length': answer.length }).end(answer);
      },
      frame: (text, send) => {
        const type = /"type":"(\w+)"/.exec(text)?.[1];
        for (const frame of isKept() ? [Buffer.from(text)] : changed(Buffer.from(text), `mining frame: ${type}`))
          send(Buffer.from(frame).toString());
      },
    };
  }

  function note(body: Buffer, said: Map<string, Said>): void {
    const read = attempt(() => JSON.parse(body.toString()) as { header_hex?: string; fees?: string });
    const { header_hex = '', fees = '' } = (read.ok && read.value) || {};
    if (header_hex === '') return;
    const known = said.get(header_hex) ?? { fees: new Set() };
    said.set(header_hex, known);
    known.fees.add(fees);
  }

  test(
    'between a node and a bridge that knows its identity: nothing is mined on that the node did not say, no verdict on a block is believed that it did not give, and work goes on when it stops',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      const fatal = fatalErrors();
      const { bed, liar } = await startMiningBed({ genesis: { initialWork: 256n, minimumWork: 256n } }, identity);
      const mangler = new Mangler(seed + 5, tally);
      const said = new Map<string, Said>();
      const rounds = count({ full: 2, deep: 10 });
      const blocks = count({ full: 10, deep: 40 });
      for (let round = 0; round < rounds; round++) {
        // A new one every time: what the first answers say counts for a long time.
        const [bridge, client] = [followNodes(bed, [liar.url], 2_000, PIN), httpNode(liar.url, 2_000, PIN)];
        liar.lie = mangling(mangler, said, round % 2 === 0 ? 2 : 8);
        for (let made = 0; made < blocks; made++) {
          await bed.pay([bed.treasury(made % 60)], [{ address: alice, amount: 5n }]);
          const { header, body } = bed.make(alice, 1_000, made);
          const verdict = await client.submit(header, body).catch((error: Error) => error);
          const name = verdict instanceof Error ? 'no verdict' : verdict.state;
          tally.verdicts.add('mining: candidates', name);
          const isThere = bed.node.chain.block(blockId(header)) !== undefined;
          if (name !== 'no verdict')
            expect({ name, isThere }, repeat(5)).toEqual({
              name: expect.stringMatching(/accepted|known/),
              isThere: true,
            });
          const template = await client.template(made).catch(() => undefined);
          tally.verdicts.add('mining: templates', template === undefined ? 'refused' : 'taken');
          if (template !== undefined)
            expect(said.get(toHex(template.header))?.fees).toContain(template.fees.toString());
          await bed.seal();
        }
        for (const { templates } of bridge.sets) {
          tally.verdicts.add('mining: sets of templates', 'taken');
          for (const { headerBytes, fees } of templates)
            expect(said.get(toHex(headerBytes))?.fees).toContain(fees.toString());
        }
        // Nobody is sent away: what was changed before must not matter any more.
        liar.lie = {};
        const { height } = (await bed.seal()).header;
        await until(() => bridge.states.healthy && (bridge.sets.at(-1)?.templates[0]?.anchorHeight ?? 0) >= height);
        const { header, body } = bed.make(alice, 1_000, 5_000);
        await until(() =>
          client.submit(header, body).then(
            ({ state }) => state === 'accepted' || state === 'known',
            () => false,
          ),
        );
        await bridge.upstream.close();
        expect(fatal, repeat(5)).toEqual([]);
      }
    },
  );

  test(
    'between a node and a pool that knows its identity: no reward is believed, or missed, that the node did not state',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      const { bed, base } = await ApiBed.forTest();
      const liar = await LyingNode.start(base);
      onTestFinished(() => liar.close());
      const [paid, unpaid] = [toHex(await bed.mine(alice)), '77'.repeat(48)];
      await bed.seal(REGISTRATION_WINDOW + 1);
      const mangler = new Mangler(seed + 6, tally);
      const pin = { identity: toHex(apiIdentity.identity) };
      const chainOf = () =>
        chainOfApi(createApiClient({ baseUrl: liar.url, attempts: 1, pin }, nodeTransport()), nodeTransport());
      const truths = await Promise.all([paid, unpaid].map((id) => statementOf(chainOf(), id, REGISTRATION_WINDOW)));
      expect(truths).toMatchObject([{ kind: 'paid' }, { kind: 'unpaid' }]);
      const asks = count({ full: 60, deep: 1_000 });
      let chain = chainOf();
      for (let asked = 0; asked < asks; asked++) {
        // A new one now and then: what the first answers say counts for a long time.
        if (asked % 20 === 0) chain = chainOf();
        liar.lie = mangling(mangler, new Map(), 3);
        const which = asked % 2;
        const said = await statementOf(chain, [paid, unpaid][which] as string, REGISTRATION_WINDOW).catch(
          () => undefined,
        );
        tally.verdicts.add('pool: statements', said?.kind ?? 'none');
        if (said !== undefined) expect(said, repeat(6)).toEqual(truths[which]);
        if (asked % 20 < 19) continue;
        liar.lie = {};
        expect(await statementOf(chain, paid, REGISTRATION_WINDOW)).toEqual(truths[0]);
      }
    },
  );
});
