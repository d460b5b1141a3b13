/** Cuts of one height that are executed before one of them is decided: whichever it is can be committed, and nothing is executed while it is written. */
import { afterEach, expect, test, vi } from 'vitest';
import type { CutLedger } from '../../node/chain/cut-ledger.ts';
import { CutMaker } from '../../node/chain/cut-maker.ts';
import { CutDesk } from '../../node/consensus/driver/cut-desk.ts';
import type { Proposal } from '../../node/consensus/engine/effects.ts';
import type { CutName } from '../../node/consensus/engine/votes.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import type { AppliedCut } from '../../node/ledger/apply-cut.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import { concat, toHex } from '../../protocol/bytes.ts';
import { decodeProposedCut } from '../../protocol/consensus/proposal.ts';
import { blocksRoot, cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { blockId, HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { randomOf } from '../random.ts';
import { until } from '../until.ts';
import { CUT_MILLIS, DrivenNetwork, mineOn } from './driven.ts';

const UNSIGNED = { round: 0, signatures: [] };
const payout = developmentKey('alice').address;
let network: DrivenNetwork | undefined;
afterEach(() => network?.close());

const deskOn = (
  ledger: CutLedger,
  verdict: (height: number, cut: CutName, valid: boolean) => void = () => undefined,
  want: () => void = () => undefined,
): CutDesk =>
  new CutDesk({
    ledger,
    cutMillis: CUT_MILLIS,
    verdict,
    want,
    blame: () => undefined,
    lost: (error) => {
      throw error;
    },
  });

test('the decided cut need not be the one that was executed last', async () => {
  network = new DrivenNetwork();
  const { node } = await network.start('a');
  const other = await network.start('b');
  const random = randomOf(3);
  for (let height = 1; height <= 12; height++) {
    const desk = deskOn(node.ledger);
    const proposals: Proposal[] = [];
    for (let i = 0; i < 3; i++) {
      await mineOn(node, payout);
      // Each has a block more than the one before.
      const millis = node.chain.head().timestampMillis + 2 * CUT_MILLIS + i;
      proposals.push(await desk.build(height, i, undefined, () => millis));
    }
    const chosen = proposals[random(3)] as Proposal;
    const decided = desk.decided(chosen) as AppliedCut;
    await node.ledger.commit(decided, UNSIGNED);
    expect(toHex(node.chain.head().cutId)).toBe(toHex(decided.effects.cutId));
    // A node that executes that cut alone comes to the same state.
    const { blockIds } = decodeProposedCut(chosen.content);
    for (const id of blockIds) {
      const [header, body] = [node.chain.block(id)?.header, node.chain.blockBody(id)];
      if (header !== undefined && body !== undefined) await other.node.submitBlock(header, body, 'relayed');
    }
    const executed = other.node.ledger.execute(decodeProposedCut(chosen.content));
    if (typeof executed !== 'object') throw new Error(executed);
    await other.node.ledger.commit(executed, UNSIGNED);
    expect(toHex(other.node.chain.head().cutId)).toBe(toHex(node.chain.head().cutId));
  }
});

test('on its way from the proposal to the store a cut is executed once, by its proposer and by those who check it', async () => {
  network = new DrivenNetwork();
  const { node } = await network.start('a');
  const other = await network.start('b');
  const executions = vi.spyOn(CutMaker.prototype, 'execute');
  for (let height = 1; height <= 3; height++) {
    const millis = node.chain.head().timestampMillis + 2 * CUT_MILLIS;
    const desk = deskOn(node.ledger);
    const proposal = await desk.build(height, 0, undefined, () => millis);
    await node.ledger.commit(desk.decided(proposal) as AppliedCut, UNSIGNED);
    const checking = deskOn(other.node.ledger);
    checking.check(proposal);
    await until(() => executions.mock.calls.length >= 2 * height);
    await other.node.ledger.commit(checking.decided(proposal) as AppliedCut, UNSIGNED);
    expect(executions).toHaveBeenCalledTimes(2 * height);
    expect(toHex(other.node.chain.head().cutId)).toBe(toHex(node.chain.head().cutId));
  }
  executions.mockRestore();
});

test('a cut whose blocks come while another is written is not executed any more', async () => {
  network = new DrivenNetwork();
  const { node } = await network.start('a');
  const maker = await network.start('b');
  const id = await mineOn(maker.node, payout);
  const nowMillis = node.chain.head().timestampMillis + 2 * CUT_MILLIS;
  const late = await deskOn(maker.node.ledger).build(1, 1, undefined, () => nowMillis);
  const desk = deskOn(node.ledger);
  const chosen = await desk.build(1, 0, undefined, () => nowMillis);
  desk.check(late);
  expect([desk.names(id), desk.names(new Uint8Array(48))]).toEqual([true, false]);
  const [header, body] = [maker.node.chain.block(id)?.header, maker.node.chain.blockBody(id)];
  if (header === undefined || body === undefined) throw new Error('the block is not there');
  desk.arrived({ id, header, body, from: 'b' });
  const writing = node.ledger.commit(desk.decided(chosen) as AppliedCut, UNSIGNED);
  desk.arrived({ id, header, body, from: 'b' });
  desk.tick();
  await writing;
  expect(node.chain.head().height).toBe(1);
});

test('made-up blocks of one cut take no room of another cut’s, which lacks a block, and the cut is refused before all of them are here', async () => {
  network = new DrivenNetwork();
  const { node } = await network.start('a');
  const maker = await network.start('b');
  const id = await mineOn(maker.node, payout);
  const nowMillis = node.chain.head().timestampMillis + 2 * CUT_MILLIS;
  const honest = await deskOn(maker.node.ledger).build(1, 0, undefined, () => nowMillis);
  const [header, body] = [maker.node.chain.block(id)?.header, maker.node.chain.blockBody(id)];
  if (header === undefined || body === undefined) throw new Error('the block is not there');
  // Each of a block that nobody worked for, both together as large as may wait, and another one that never comes.
  const headers = [1, 2, 3, 4].map((byte) => new Uint8Array(HEADER_BYTES).fill(byte));
  const made = [headers.slice(0, 2), headers.slice(2)].map((named) => {
    const [ids, { header: before }] = [named.map(blockId), decodeProposedCut(honest.content)];
    const cut = encodeCutHeader({ ...before, blockCount: ids.length, blocksRoot: blocksRoot(ids) });
    return { ...honest, cut: nameOf(cutId(cut)), content: concat(cut, ...ids) };
  });
  const verdicts = new Map<CutName, boolean>();
  const desk = deskOn(node.ledger, (_, cut, valid) => void verdicts.set(cut, valid));
  for (const proposal of [honest, ...made]) desk.check(proposal);
  const large = new Uint8Array(36 * 1024 * 1024);
  const bring = (each = new Uint8Array(HEADER_BYTES)) =>
    desk.arrived({ id: blockId(each), header: each, body: large, from: 'liar' });
  bring(headers[0]);
  bring(headers[2]);
  desk.arrived({ id, header, body, from: 'b' });
  await until(() => verdicts.size === 2);
  // The first made-up one gave way before it was looked at.
  bring(headers[0]);
  await until(() => verdicts.size === 3);
  expect([honest, ...made].map(({ cut }) => verdicts.get(cut))).toEqual([true, false, false]);
});

test('a cut that names a block of the cut before is refused, and the block is asked for once', async () => {
  network = new DrivenNetwork();
  const { node } = await network.start('a');
  const id = await mineOn(node, payout);
  const body = node.chain.blockBody(id) as Uint8Array;
  const timeOf = () => node.chain.head().timestampMillis + 2 * CUT_MILLIS;
  const first = await deskOn(node.ledger).build(1, 0, undefined, timeOf);
  await node.ledger.commit(node.ledger.execute(decodeProposedCut(first.content)) as AppliedCut, UNSIGNED);
  const next = await deskOn(node.ledger).build(2, 0, undefined, timeOf);
  const header = { ...decodeProposedCut(next.content).header, blockCount: 1, blocksRoot: blocksRoot([id]) };
  const bytes = encodeCutHeader(header);
  const again = { ...next, cut: nameOf(cutId(bytes)), content: concat(bytes, id) };
  const verdicts: boolean[] = [];
  let asked = 0;
  const desk = deskOn(
    node.ledger,
    (_, cut, valid) => void (cut === again.cut && verdicts.push(valid)),
    () => void asked++,
  );
  desk.check(again);
  desk.arrived({ id, header: node.chain.block(id)?.header as Uint8Array, body, from: 'b' });
  await until(() => verdicts.length > 0 || asked > 1);
  expect({ verdicts, asked }).toEqual({ verdicts: [false], asked: 1 });
});

test('blocks that are doubted while a cut with them is written stay on record', async () => {
  network = new DrivenNetwork();
  const { node } = await network.start('a');
  for (let height = 1; height <= 3; height++) {
    const id = await mineOn(node, payout);
    const desk = deskOn(node.ledger);
    const proposal = await desk.build(height, 0, undefined, () => node.chain.head().timestampMillis + 2 * CUT_MILLIS);
    const writing = node.ledger.commit(desk.decided(proposal) as AppliedCut, UNSIGNED);
    await undefined;
    await node.ledger.forget([id]);
    await writing;
    expect(node.chain.block(id)?.registeredHeight).toBe(height);
    expect(node.chain.blockBody(id)).toBeDefined();
  }
});
