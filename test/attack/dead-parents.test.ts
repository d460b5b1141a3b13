/**
 * A block whose parent no cut registers can never be registered itself. A miner makes such a parent at will: it sends
 * it when the last cut that may take it is being certified. Blocks of others must not build on what hangs from it, and
 * payments must not wait for it.
 */
import { afterEach, expect, test } from 'vitest';
import { certifyWith } from '../../node/chain/certificate.ts';
import type { Template } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { DRAW_MILLIS } from '../../node/mining/template.ts';
import { BlockRelay } from '../../node/network/relay/block-relay.ts';
import { encodeShortBlock } from '../../node/network/relay/relay-messages.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { type Bytes, compareBytes, toHex } from '../../protocol/bytes.ts';
import type { ProposedCut } from '../../protocol/consensus/proposal.ts';
import { decodeBody, encodeBody, parentsRoot, transactionsRoot } from '../../protocol/ledger/body.ts';
import { blockId, decodeHeader, encodeHeader, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetToBytes } from '../../protocol/ledger/target.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { Bed, developmentKeys, quickHash, searchNonce } from '../node/bed.ts';

const mallory = developmentKey('mallory').address;
const miner = developmentKey('miner').address;

let bed: Bed;
afterEach(() => bed.close());

/** A block on the template's anchor with other parents, transactions or time. */
function remade(
  template: Template,
  {
    parents = [],
    transactions = [],
    aheadMillis = 0,
  }: Partial<Parameters<typeof encodeBody>[0]> & { aheadMillis?: number },
) {
  const { payout, extranonce, target } = template;
  const header = decodeHeader(template.header);
  const changed = encodeHeader({
    ...header,
    parentsRoot: parentsRoot({ parents }),
    transactionsRoot: transactionsRoot({ transactions }),
    timestampMillis: header.timestampMillis + aheadMillis,
  });
  const sealed = searchNonce(changed, target);
  return { id: blockId(sealed), header: sealed, body: encodeBody({ payout, extranonce, parents, transactions }) };
}

type Remade = ReturnType<typeof remade>;

const send = async ({ header, body }: Remade) =>
  expect(await bed.node.submitBlock(header, body)).toMatchObject({ status: 'accepted' });
const templateOf = (payout: Bytes) => bed.node.template({ payout, maxTransactions: 100 });

test('blocks that hang from one whose window closed are no parents of honest ones and hold no payment back', async () => {
  const certify = certifyWith(developmentKeys(1));
  let meanwhile = async (): Promise<void> => undefined;
  bed = await Bed.open({
    dependencies: {
      certify: async (cut) => {
        await meanwhile();
        return await certify(cut);
      },
    },
  });
  // Made on the first anchor, and kept back until its window closes.
  const dead = remade(templateOf(mallory), {});
  await bed.seal(REGISTRATION_WINDOW - 1);
  expect(await bed.pay([bed.treasury(0)], [{ address: miner, amount: 1n }])).toMatchObject({ status: 'accepted' });
  const template = templateOf(mallory);
  expect(template.transactionCount).toBe(1);
  const { transactions } = template;
  const child = remade(template, { parents: [dead.id], transactions });
  const grandchild = remade(templateOf(mallory), { parents: [child.id] });
  const beforeItCloses: Bytes[] = [];
  meanwhile = async () => {
    for (const block of [dead, child, grandchild]) await send(block);
    beforeItCloses.push(...templateOf(miner).parents);
  };
  expect((await bed.seal()).expired.map(({ id }) => toHex(id))).toEqual([toHex(dead.id)]);
  meanwhile = async () => undefined;
  expect(beforeItCloses).toEqual([]);
  const honest = templateOf(miner);
  expect(honest.parents).toEqual([]);
  expect(honest.transactionCount).toBe(1);
  const mined = await bed.mine(miner);
  const cut = await bed.seal();
  expect(cut.registered.map(({ id }) => toHex(id))).toEqual([toHex(mined)]);
  expect(cut.transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
  // What hangs from it stays on record until its own window closes.
  expect(bed.node.chain.block(grandchild.id)).toMatchObject({ reward: { state: 'waiting' } });
  await bed.seal(REGISTRATION_WINDOW - 3);
  expect((await bed.seal()).expired).toHaveLength(2);
});

test('a block that no cut of now may take is no parent, and holds no payment back', async () => {
  bed = await Bed.open();
  await bed.seal();
  await bed.pay([bed.treasury(0)], [{ address: miner, amount: 1n }]);
  const template = templateOf(mallory);
  const { transactions } = template;
  const ahead = remade(template, { transactions, aheadMillis: 9_000 });
  await send(ahead);
  const mined = await bed.mine(miner, 0);
  expect(templateOf(miner).parents).toEqual([mined]);
  bed.now += DRAW_MILLIS;
  expect(templateOf(miner).transactionCount).toBe(1);
});

test('of two blocks with one body, the one that cuts may not take any more is no parent', async () => {
  bed = await Bed.open();
  await bed.seal();
  const template = templateOf(mallory);
  // The time is not part of the body. A validator takes the one that it has; a proposed cut names the other.
  const [named, other] = [1, 2]
    .map((aheadMillis) => remade(template, { aheadMillis }))
    .sort((a, b) => compareBytes(quickHash(a.header), quickHash(b.header))) as [Remade, Remade];
  await send(other);
  const child = remade(templateOf(mallory), { parents: [other.id] });
  await send(child);
  const proposed = { header: { height: bed.node.chain.head().height + 1, timestampMillis: bed.now + 100 } };
  const { ledger } = bed.node as ConsensusNode;
  expect(await ledger.admit(named.header, named.body, proposed as ProposedCut)).toBe('here');
  expect((await bed.seal()).registered.map(({ id }) => toHex(id))).toEqual([toHex(named.id)]);
  expect(templateOf(miner).parents).toEqual([]);
  const mined = await bed.mine(miner);
  expect((await bed.seal()).registered.map(({ id }) => toHex(id))).toEqual([toHex(mined)]);
});

test('of two blocks with one body that are both seen, neither is a parent, nor what hangs from one; without work a second one changes nothing', async () => {
  bed = await Bed.open({ genesis: { initialWork: 16n, minimumWork: 16n } });
  await bed.seal();
  const template = templateOf(mallory);
  const [first, second] = [1, 2].map((aheadMillis) => remade(template, { aheadMillis })) as [Remade, Remade];
  bed.now += 10;
  await send(first);
  const child = remade(templateOf(mallory), { parents: [first.id] });
  await send(child);
  const before = templateOf(miner).parents.map(toHex);
  expect(before).toContain(toHex(first.id));
  const refused = (header: Bytes) => bed.node.submitBlock(header, second.body, 'relayed');
  const idle = withoutWork(second.header, template.target);
  expect(await refused(idle)).toMatchObject({ status: 'refused', error: { code: 'pow_above_target' } });
  expect(templateOf(miner).parents.map(toHex)).toEqual(before);
  // The next peers learn of it too.
  const faults: string[] = [];
  const nobody = {
    ask: async () => new Uint8Array(0),
    fault: (peer: string) => void faults.push(peer),
    publish: () => undefined,
  };
  const relay = new BlockRelay({ node: bed.node as ConsensusNode, network: nobody, isSynced: () => true });
  expect(await relay.judge('peer', encodeShortBlock(second.header, decodeBody(second.body)))).toBe('accept');
  relay.close();
  expect(faults).toEqual([]);
  expect(await refused(second.header)).toMatchObject({ status: 'refused', error: { code: 'body_used' } });
  expect(templateOf(miner).parents).toEqual([]);
  await bed.reopen();
  expect(templateOf(miner).parents).toEqual([]);
  const mined = await bed.mine(miner);
  // A cut decides: honest work does not depend on how.
  expect((await bed.seal()).registered.map(({ id }) => toHex(id))).toContain(toHex(mined));
  const next = await bed.mine(miner);
  expect(templateOf(miner).parents.map(toHex)).toEqual([toHex(next)]);
});

function withoutWork(header: Bytes, target: bigint): Bytes {
  const idle = new Uint8Array(header);
  for (let nonce = 0n; ; nonce++) {
    new DataView(idle.buffer).setBigUint64(NONCE_OFFSET, nonce, true);
    if (!meetsTarget(quickHash(idle), targetToBytes(target))) return idle;
  }
}
