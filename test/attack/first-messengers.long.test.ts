/** A stranger that hands genuine messages on before their senders' own copies arrive, with real ledgers, stores, logs and signatures: it takes nobody's place. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import { servedOf } from '../../node/consensus/driver/catch-up.ts';
import { decodeMessage, encodeMessage } from '../../node/consensus/driver/messages.ts';
import { BLOCK_MESSAGE_TYPES, MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { decodeProposedCut } from '../../protocol/consensus/proposal.ts';
import { type Driven, DrivenNetwork, MEMBERS, mineOn } from '../consensus/driven.ts';
import { until } from '../until.ts';

const alice = developmentKey('alice').address;
const STRANGER = 'stranger';
const VICTIM = 'm3';
/** Of cuts or blocks: enough that the right neighbour is not asked by chance. */
const TIMES = 6;

let network: DrivenNetwork;
beforeEach(async () => {
  network = new DrivenNetwork();
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
  network.network.strangers.add(STRANGER);
});
afterEach(() => network.close());

const driven = (name: string) => network.running.get(name) as Driven;
const heightOf = (name: string) => driven(name).node.chain.head().height;

function joinStranger(): void {
  network.network
    .transport(STRANGER)
    .start({ joined: () => undefined, left: () => undefined, message: () => undefined });
}

test('a validator that is behind asks members for the next cut, also where a stranger brought the last one', async () => {
  await until(() => heightOf('m0') >= 1);
  await network.stop(VICTIM);
  const from = heightOf('m0');
  await until(() => heightOf('m0') >= from + TIMES + 2);
  joinStranger();
  const source = driven('m0').node;
  /** By height, who was told first that the victim is there. */
  const told = new Map<number, unknown>();
  const brought = new Set<number>();
  network.network.carries = (sender, to, bytes) => {
    if (to === VICTIM) return bytes[0] !== MESSAGE_TYPES.finalized;
    if (sender !== VICTIM || bytes[0] !== MESSAGE_TYPES.have) return true;
    const message = decodeMessage(bytes);
    if (message.type !== 'have') return true;
    const { height } = message.have;
    if (!told.has(height)) told.set(height, to);
    const served = servedOf(source.ledger, height, driven('m0').driver.state);
    if (served.type === 'finalized') {
      brought.add(height);
      network.network.deliver(STRANGER, VICTIM, encodeMessage(served));
    }
    return true;
  };
  await network.start(VICTIM, MEMBERS - 1);
  const first = heightOf(VICTIM) + 1;
  await until(() => heightOf(VICTIM) >= first + TIMES);
  const heights = [...told.keys()].filter((height) => height > first && brought.has(height - 1));
  expect(heights.length).toBeGreaterThanOrEqual(TIMES - 1);
  expect(heights.map((height) => told.get(height))).not.toContain(STRANGER);
});

const isRegistered = (id: Bytes) => (node: ConsensusNode) => node.chain.block(id)?.registeredHeight !== undefined;

test('blocks of a proposal that a stranger hands on first are asked of its proposer, or of another member that handed it on', async () => {
  await until(() => heightOf(VICTIM) >= 2);
  joinStranger();
  /** By block, its proposer and the members that brought a proposal with it. */
  const bringers = new Map<string, Set<unknown>>();
  /** Whom it asked first; not where it heard of the cut when it was final already. */
  const asked = new Map<string, unknown>();
  const nameOf = (member: number) => [...network.running].find(([, { driver }]) => driver.state.self === member)?.[0];
  network.network.carries = (sender, to, bytes) => {
    if (sender === VICTIM && bytes[0] === BLOCK_MESSAGE_TYPES.want) {
      const message = decodeBlockMessage(bytes);
      if (message?.type === 'want')
        for (const id of message.ids.map(toHex)) if (!asked.has(id) && bringers.has(id)) asked.set(id, to);
    }
    if (to !== VICTIM || sender === STRANGER) return true;
    if (bytes[0] === MESSAGE_TYPES.proposal) {
      const message = decodeMessage(bytes);
      if (message.type !== 'proposal') return true;
      const { height, round, content } = message.proposal;
      const proposer = nameOf(driven(VICTIM).driver.state.committee.proposer(height, round));
      for (const id of decodeProposedCut(content).blockIds.map(toHex))
        bringers.set(id, (bringers.get(id) ?? new Set()).add(sender).add(proposer));
      network.network.deliver(STRANGER, VICTIM, bytes);
    }
    // It learns of blocks by proposals alone.
    return bytes[0] !== BLOCK_MESSAGE_TYPES.offer;
  };
  await until(async () => {
    const id = await mineOn(driven('m0').node, alice);
    await until(() => [...network.running.values()].every(({ node }) => isRegistered(id)(node)));
    return asked.size >= TIMES;
  });
  for (const [id, to] of asked) expect([...(bringers.get(id) ?? [])]).toContain(to);
});
