/**
 * Every message of consensus, block exchange, sync, relay and gossip, changed on its way by one that lies: no honest node ends, blames
 * an honest one, or disagrees with the others, and the chain goes on. The property is the same whatever is changed; the
 * changes come from a seed (mangler.ts).
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { adoptInto } from '../../node/adopted-cut.ts';
import { BLOCK_MESSAGE_TYPES, decodeBlockMessage, encodeBlockMessage } from '../../node/consensus/block-exchange.ts';
import type { Peer } from '../../node/consensus/effects.ts';
import type { Transport } from '../../node/consensus/transport.ts';
import { developmentKey } from '../../node/development.ts';
import { answerSync } from '../../node/network/cut-server.ts';
import { CutSync } from '../../node/network/cut-sync.ts';
import {
  decodeBlocksAnswer,
  decodeSyncQuestion,
  encodeBlocksAnswer,
  type SyncQuestion,
} from '../../node/network/sync-messages.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { steadyMillis } from '../../runtime/clock.ts';
import { DrivenNetwork, MEMBERS, mineOn } from '../consensus/driven.ts';
import { count, seed } from '../level.ts';
import { PayingChain } from '../network/paying-chain.ts';
import { type NetNode, treasuryOutput } from '../network/peers.ts';
import { RawPeer, topicName } from '../network/raw-peer.ts';
import { payment } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { Mangler } from './mangler.ts';

const alice = developmentKey('alice').address;
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

  /** What is sent in place of a message: something else, or a block with a body that can be read and is not its own. */
  function changedBy(mangler: Mangler, bytes: Bytes): Bytes[] {
    if (bytes[0] !== BLOCK_MESSAGE_TYPES.block || mangler.random(4) === 0) return mangler.mangle(bytes);
    const message = decodeBlockMessage(bytes);
    if (message?.type !== 'block') return mangler.mangle(bytes);
    return [encodeBlockMessage({ ...message, body: mangler.spoilBody(message.body) })];
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
      const mangler = new Mangler(seed);
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
      const cuts = count({ quick: 20, full: 60, deep: 3_000 });
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
      expect([...mangler.counts.keys()].length).toBeGreaterThan(10);
    },
  );
});

describe('between peers', () => {
  const TOPICS = ['cuts', 'blocks', 'transactions'] as const;
  let chain: PayingChain;
  beforeEach(() => {
    chain = new PayingChain();
  });
  afterEach(() => chain.bed.close());

  /** What a peer that lies answers to a question about the chain: a block with a body that is not its own, or anything. */
  function liesAbout({ chain }: ConsensusNode, mangler: Mangler, question: SyncQuestion): Uint8Array {
    const answer = truthAbout(chain, question);
    if (question.type !== 'blocks' || mangler.random(2) === 0)
      return mangler.random(4) === 0 ? answer : (mangler.mangle(answer, question.type.length)[0] ?? NOTHING);
    return encodeBlocksAnswer(
      decodeBlocksAnswer(answer).map((block) => block && { ...block, body: mangler.spoilBody(block.body) }),
    );
  }

  const NOTHING = new Uint8Array(0);
  const truthAbout = (of: ConsensusNode['chain'], question: SyncQuestion): Uint8Array =>
    question.type === 'snapshots' || question.type === 'part' ? NOTHING : answerSync(of, question);

  test(
    'of five peers four change their answers, and are never sent away: a node ends on the honest head and blames only them',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      const { node } = await chain.start();
      for (let cut = 0; cut < 12; cut++) await chain.seal({ node } as NetNode);
      const head = node.chain.head();
      const mangler = new Mangler(seed + 1);
      const rounds = count({ quick: 5, full: 20, deep: 2_000 });
      for (let round = 0; round < rounds; round++) {
        const faults: string[] = [];
        const blamed = new Set<string>();
        const follower = await chain.bed.openChain(`alone-${round}`);
        watchFaults(follower, 'follower', faults);
        const sync = new CutSync({
          ledger: follower.ledger,
          adopt: adoptInto(follower.ledger),
          hasNeighbours: false,
          network: {
            ask: async (peer, _, bytes) => {
              const question = decodeSyncQuestion(bytes);
              return peer === 'honest' ? truthAbout(node.chain, question) : liesAbout(node, mangler, question);
            },
            fault: (peer) => void blamed.add(peer),
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
        expect(blamed, repeat(0)).not.toContain('honest');
        await sync.close();
        await follower.close();
      }
      expect(mangler.total).toBeGreaterThan(rounds * 3);
    },
  );

  test(
    'announcements that are repeated changed, live, keep a node from neither the head nor its honest peer',
    lasts(120, 'thousands of messages are changed'),
    async () => {
      const source = await chain.start();
      const mangler = new Mangler(seed + 2);
      const faults: string[] = [];
      const follower = await chain.bed.start('live', {
        follows: true,
        bootstrap: [source.view.addresses[0] as string],
      });
      watchFaults(source.node, 'source', faults);
      watchFaults(follower.node, 'follower', faults);
      const liar = await RawPeer.open(source.node.chain.chainId, { height: () => source.node.chain.head().height });
      const topics = new Map(TOPICS.map((topic) => [topicName(source.node.chain.chainId, topic), topic]));
      liar.host.services.gossip.addEventListener('message', ({ detail: { topic, data } }) => {
        const name = topics.get(topic);
        if (name !== undefined)
          // A peer that is barred by then cannot publish.
          for (const changed of mangler.mangle(data, name.length))
            void liar.publish(name, changed).catch(() => undefined);
      });
      for (const { view } of [source, follower]) await liar.join(view.addresses[0] as string);
      await until(() => liar.isHeard('cuts'));
      const cuts = count({ quick: 10, full: 20, deep: 1_000 });
      for (let cut = 0; cut < cuts; cut++) {
        await chain.seal(source);
        const head = source.node.chain.head();
        await until(() => faults.length > 0 || follower.node.chain.head().height >= head.height);
        expect(faults, repeat(0)).toEqual([]);
        expect(toHex(follower.node.chain.cut(head.height)?.cutId as Bytes)).toBe(toHex(head.cutId));
      }
      // Figures come from the network's thread now and then.
      const known = (of: typeof source) => of.view.figures().peers.filter(({ peer }) => peer !== liar.name);
      await expect.poll(() => known(follower)).toMatchObject([{ lostScore: 0 }]);
      await expect.poll(() => known(source)).toMatchObject([{ lostScore: 0 }]);
      await liar.close();
    },
  );
});
