/**
 * Every message of consensus, block exchange, sync, relay and gossip, changed on its way by one that lies: no honest node ends, blames
 * an honest one, or disagrees with the others, and the chain goes on. The property is the same whatever is changed; the
 * changes come from a seed (mangler.ts).
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { adoptInto } from '../../node/adopted-cut.ts';
import { BLOCK_MESSAGE_TYPES, decodeBlockMessage, encodeBlockMessage } from '../../node/consensus/block-exchange.ts';
import type { Peer } from '../../node/consensus/effects.ts';
import { MESSAGE_TYPES } from '../../node/consensus/messages.ts';
import type { Transport } from '../../node/consensus/transport.ts';
import { developmentKey } from '../../node/development.ts';
import { answerSync } from '../../node/network/cut-server.ts';
import { CutSync } from '../../node/network/cut-sync.ts';
import { AskError } from '../../node/network/peer-fault.ts';
import {
  decodeBatch,
  decodeRelayQuestion,
  encodeBatch,
  encodeRelayQuestion,
  type RelayQuestion,
  SALT_BYTES,
} from '../../node/network/relay-messages.ts';
import { answerRelay } from '../../node/network/relay-server.ts';
import {
  decodeBlocksAnswer,
  decodeSyncQuestion,
  encodeBlocksAnswer,
  encodeSyncQuestion,
  type SyncQuestion,
} from '../../node/network/sync-messages.ts';
import type { Protocol, Topic } from '../../node/network/thread/host-types.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { steadyMillis } from '../../runtime/clock.ts';
import { DrivenNetwork, MEMBERS, mineOn } from '../consensus/driven.ts';
import { count, level, seed } from '../level.ts';
import { PeerRoom } from '../network/memory-peers.ts';
import { PayingChain } from '../network/paying-chain.ts';
import { treasuryOutput } from '../network/peers.ts';
import { payment } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { Mangler, Tally } from './mangler.ts';

/** Of all tests of this file. */
const tally = new Tally();
afterAll(() => {
  if (level !== 'deep' && process.env.TALLY === undefined) return;
  console.log(tally.report());
  if (level === 'deep') expect(tally.changes.total).toBeGreaterThanOrEqual(100_000);
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

  /** Every block has a payment, so that bodies can be spoiled in more than one way. */
  async function mineAndPay(at: ConsensusNode, index: number): Promise<void> {
    const wire = payment(at.chain, [treasuryOutput(at.chain, index % 64)], [{ address: alice, amount: 5n }]);
    await at.submitTransaction(wire);
    await mineOn(at, alice);
  }

  test(
    'a member that changes every block and a quarter of its votes, and a stranger that repeats everybody’s messages changed, stop and divide nobody',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      network = new DrivenNetwork();
      const mangler = new Mangler(seed, tally);
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
      const cuts = count({ quick: 15, full: 25, deep: 1_000 });
      for (let mined = 0; mined < cuts; mined++) {
        const before = (nodes[0] as ConsensusNode).chain.head().height;
        // The liar finds blocks too: others must ask it for their bodies.
        const finder = mined % MEMBERS === 3 ? network.running.get(LIAR)?.node : nodes[mined % 3];
        await mineAndPay(finder as ConsensusNode, mined).catch((error: Error) => {
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
      for (const { reason } of network.network.dropped) tally.verdicts.add('validators', `sent away: ${reason}`);
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
    case 'headers':
      return answerSync(node.chain, question);
    default:
      return answerRelay(node, question);
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
      const rounds = count({ quick: 5, full: 8, deep: 600 });
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
  const VARIANTS = 6;
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
      for (const at of NODES)
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

    /** Announcements of one transaction each are what a relay must not pass on one by one. */
    #changed(topic: Topic, data: Bytes): Bytes[] {
      const { random } = this.#mangler;
      if (topic !== 'transactions' || random(2) === 0) return this.#mangler.mangle(data, `gossip: ${topic}`);
      tally.changes.add(`gossip: ${topic}`, 'batches of their own');
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
      const cuts = count({ quick: 6, full: 10, deep: 400 });
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
            { type: 'carried', block, places: [0] },
            { type: 'block', block },
            { type: 'waiting' },
          ] as const
        ).map((question) => ['relay', question.type, encodeRelayQuestion(question)] as const),
      ];
      const mangler = new Mangler(seed + 3, tally);
      const asks = count({ quick: 500, full: 2_000, deep: 30_000 });
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
      for (const [i, [protocol, , bytes]] of QUESTIONS.entries())
        expect(await before.serve('honest too', protocol, bytes)).toEqual(truths[i]);
    },
  );
});
