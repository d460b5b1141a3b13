/**
 * What blocks carry costs validators signature checks, executed or not (ledger rule 43). Counted where they are made:
 * no cut needs more than the rule allows, no execution makes one again, and what a proposer chooses every receiver
 * accepts.
 */
import { afterEach, expect, test } from 'vitest';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentGenesis, developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { carriedSignatures, chooseBlocks } from '../../node/ledger/registration.ts';
import type { CommitteeMember } from '../../node/ledger/staking/committee.ts';
import { readTransaction, readWorkBlock } from '../../node/ledger/work-block.ts';
import { CheckedSignatures } from '../../node/mempool/checked-signatures.ts';
import { VerifiedTransactions } from '../../node/mempool/witness-check.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { encodeBody, MAX_BODY_BYTES, transactionsRoot } from '../../protocol/ledger/body.ts';
import { MAX_CUT_SIGNATURES } from '../../protocol/ledger/cut.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import { BLOCKS_PER_CUT } from '../../protocol/network.ts';
import { encodeOperation, type StakingOperation } from '../../protocol/staking/operation.ts';
import {
  encodeTransaction,
  type Output,
  SIGNATURE_BYTES,
  type Witness,
} from '../../protocol/transactions/transaction.ts';
import { repeats, seed } from '../level.ts';
import { groupOf } from '../multisig/members.ts';
import { Bed, START_MILLIS, searchNonce } from '../node/bed.ts';
import { MemoryLedger } from '../node/memory-ledger.ts';
import { type Random, randomOf } from '../random.ts';
import { anEndpoint } from '../staking/signed.ts';
import { PER_BLOCK } from './costly-blocks.ts';

const treasury = developmentKey(TREASURY);
const GROUPS = [groupOf(2), groupOf(3, 'five')];
const COIN = 100_000_000n;
const FUND: readonly Output[] = GROUPS.flatMap(({ address }) => Array(8).fill({ address, amount: COIN }));
const GENESIS = developmentGenesis({ timestampMillis: START_MILLIS, validators: 1, fund: FUND });

/** Signatures are not made: the first byte says whether one is good, the rest makes it one of a kind. */
const GOOD = 1;
const FALSE = 0;
function marked(mark: number, salt: number): Uint8Array<ArrayBuffer> {
  const signature = new Uint8Array(SIGNATURE_BYTES);
  new DataView(signature.buffer).setUint32(1, salt);
  signature[0] = mark;
  return signature;
}

/** A validator: its ledger, what it remembers, and how many signatures it has checked. */
class Validator {
  checks = 0;
  readonly ledger: MemoryLedger;
  readonly #verified = new VerifiedTransactions(
    new CheckedSignatures((_, __, signature) => {
      this.checks++;
      return signature[0] === GOOD;
    }),
  );

  constructor() {
    this.ledger = new MemoryLedger(GENESIS);
    // From here on the treasury's key and those of the groups are registered.
    const wires = [[output(this, 79)], [output(this, 0)], [output(this, 8)]].map((spends, i) =>
      transaction(this, spends, i === 0 ? [inline(GOOD, 0)] : [ofGroup(i - 1, 'multisig_inline', GOOD, 0)], 0),
    );
    this.ledger.next({ blocks: [block(this, wires, 0)] });
  }

  execute(blocks: readonly TestBlock[]): string {
    return toHex(this.ledger.apply({ blocks }, this.#verified.check).effects.cutId);
  }

  choose(waiting: readonly TestBlock[]): TestBlock[] {
    return chooseBlocks(waiting, this.ledger.state.height + 1, () => false, new Set());
  }
}

type TestBlock = ReturnType<typeof block>;

/** The 80 outputs of genesis: 8 of each group, 64 of the treasury. */
function output({ ledger }: Validator, index: number): UnspentOutput {
  const outpoint = genesisOutpoint(ledger.state.chainId, index);
  return { ...(GENESIS.outputs[index] as Output), outpoint, source: 'genesis' };
}

const referenced = (mark: number, salt: number): Witness => ({ profile: 'referenced', signature: marked(mark, salt) });
const inline = (mark: number, salt: number): Witness => ({
  profile: 'inline',
  publicKey: treasury.publicKey,
  signature: marked(mark, salt),
});
function ofGroup(which: number, profile: 'multisig_inline' | 'multisig_referenced', last: number, salt: number) {
  const { descriptor, members } = GROUPS[which] as (typeof GROUPS)[number];
  const { threshold } = descriptor;
  const signatures = Array.from({ length: threshold }, (_, member) => ({
    member,
    signature: marked(member === threshold - 1 ? last : GOOD, salt * 8 + member),
  }));
  const keyHashes = members.map(({ address }) => address.subarray(1));
  return profile === 'multisig_inline'
    ? ({ profile, descriptor, signatures } as const)
    : ({ profile, threshold, keyHashes, signatures } as const);
}

/** Pays half of what it spends as its fee. */
function transaction(
  { ledger }: Validator,
  spends: readonly UnspentOutput[],
  witnesses: readonly Witness[],
  salt: number,
  operation?: StakingOperation,
): Bytes {
  const sum = spends.reduce((all, { amount }) => all + amount, 0n);
  const body = {
    chainId: ledger.state.chainId,
    validFromHeight: 0,
    validUntilHeight: 1_000 + salt,
    inputs: spends.map(({ outpoint }) => outpoint),
    outputs: [{ address: treasury.address, amount: sum / 2n }],
    payload: new Uint8Array(0),
    ...(operation && { operation: encodeOperation(operation) }),
  };
  return encodeTransaction({ body, witnesses });
}

function block({ ledger }: Validator, transactions: readonly Bytes[], salt: number, parents: readonly Bytes[] = []) {
  const payout = developmentKey('mallory').address;
  const extranonce = new Uint8Array(8);
  new DataView(extranonce.buffer).setUint32(4, salt);
  const body = { payout, extranonce, parents, transactions };
  const zero = new Uint8Array(48);
  const header = encodeHeader({
    networkId: 4,
    anchorHeight: ledger.state.height,
    timestampMillis: START_MILLIS + 1,
    anchorId: zero,
    parentsRoot: zero,
    transactionsRoot: transactionsRoot(body),
    rewardRoot: rewardRoot(payout, extranonce),
    stateRoot: zero,
    target: 2n ** 250n,
    nonce: new Uint8Array(8),
  });
  const read = readWorkBlock(header, encodeBody(body), (wire) => readTransaction(wire, ledger.state.chainId));
  return { ...read, hash: targetToBytes(BigInt(salt) * 0x9e37_79b9_7f4a_7c15n) };
}

/** Seven good signatures and a false eighth over the same outputs, again and again. */
function costly(validator: Validator, which: number): TestBlock {
  const spends = Array.from({ length: 8 }, (_, i) => output(validator, 20 + i));
  const wires = Array.from({ length: PER_BLOCK }, (_, i) => {
    const salt = (which * PER_BLOCK + i) * 8;
    return transaction(
      validator,
      spends,
      spends.map((_, input) => referenced(input < 7 ? GOOD : FALSE, salt + input)),
      salt,
    );
  });
  return block(validator, wires, which);
}

test('a cut of blocks with false signatures needs no more checks than the rule allows, and its second execution none', () => {
  const validator = new Validator();
  const waiting = Array.from({ length: 16 }, (_, which) => costly(validator, which + 1));
  const chosen = validator.choose(waiting);
  expect(chosen.length).toBe(Math.floor(MAX_CUT_SIGNATURES / (PER_BLOCK * 8)));
  const cut = validator.execute(chosen);
  expect(validator.checks).toBe(chosen.length * PER_BLOCK * 8);
  expect(validator.checks).toBeLessThanOrEqual(MAX_CUT_SIGNATURES);
  expect(validator.execute(chosen)).toBe(cut);
  // Another round, with other blocks of the same.
  validator.execute(chosen.slice(1));
  expect(validator.checks).toBe(chosen.length * PER_BLOCK * 8);
});

test('a cut with more signatures is refused before one is checked', () => {
  const validator = new Validator();
  const blocks = Array.from({ length: 5 }, (_, which) => costly(validator, which + 1));
  expect(() => validator.execute(blocks)).toThrow('the blocks of a cut carry at most 1280 signatures, these 1520');
  expect(validator.checks).toBe(0);
});

test('copies with other witnesses have only their new signatures checked, whether the old ones are good or false', () => {
  const validator = new Validator();
  const spends = Array.from({ length: 8 }, (_, i) => output(validator, 20 + i));
  const copy = (old: number, salt: number) =>
    transaction(
      validator,
      spends,
      spends.map((_, input) => (input < 7 ? referenced(old, input) : referenced(FALSE, salt))),
      5,
    );
  validator.execute([10, 11, 12].map((salt) => block(validator, [copy(GOOD, salt)], salt)));
  expect(validator.checks).toBe(7 + 3);
  validator.execute([20, 21, 22].map((salt) => block(validator, [copy(FALSE, salt)], salt)));
  expect(validator.checks).toBe(7 + 3 + 1);
});

test('a body always fits a cut, and so do the blocks that the target aims at', () => {
  // Every signature that counts takes its own bytes of the body.
  const most = Math.floor(MAX_BODY_BYTES / SIGNATURE_BYTES);
  expect(most * Number(BLOCKS_PER_CUT)).toBeLessThan(MAX_CUT_SIGNATURES);
});

/** Anything that the wire admits, and its signatures by hand. */
function anything(validator: Validator, random: Random, salt: number): { wire: Bytes; signatures: number } {
  const mark = () => (random(4) === 0 ? FALSE : GOOD);
  const kind = random(10);
  if (kind < 6) {
    const [count, start] = [1 + random(8), random(60)];
    const spends = Array.from({ length: count }, (_, i) => output(validator, 16 + ((start + i) % 60)));
    const nowhere = { transactionId: new Uint8Array(48).fill(salt), outputIndex: 0 };
    if (kind === 0) spends[0] = { ...(spends[0] as UnspentOutput), outpoint: nowhere };
    const witnesses = spends.map((_, i) => (random(2) === 0 ? referenced : inline)(mark(), salt * 8 + i));
    return { wire: transaction(validator, spends, witnesses, salt), signatures: count };
  }
  if (kind < 8) {
    const which = random(2);
    const spends = [output(validator, which * 8 + 1 + random(7))];
    const witness = ofGroup(which, random(2) === 0 ? 'multisig_inline' : 'multisig_referenced', mark(), salt);
    return { wire: transaction(validator, spends, [witness], salt), signatures: which + 2 };
  }
  const { operation, inside } = operations(validator, salt, mark)[random(4)] as ReturnType<typeof operations>[number];
  const wire = transaction(
    validator,
    [output(validator, 16 + random(60))],
    [referenced(mark(), salt * 8), referenced(mark(), salt * 8 + 1)],
    salt,
    operation,
  );
  return { wire, signatures: 2 + inside };
}

function operations({ ledger }: Validator, salt: number, mark: () => number) {
  const { validatorId: id } = ledger.state.stake.committee.members[0] as CommitteeMember;
  const vote = (round: number) =>
    ({ kind: 'prevote', height: 0, round: 0, cutId: new Uint8Array(48).fill(round) }) as const;
  const signed = (n: number) => ({ vote: vote(n), signature: marked(mark(), salt * 8 + 4 + n) });
  const key = new Uint8Array(treasury.publicKey);
  new DataView(key.buffer).setUint32(0, salt);
  const own = { owner: treasury.address, rewardAddress: treasury.address };
  return [
    { inside: 2, operation: { name: 'evidence', validator: id, votes: [signed(1), signed(2)] } },
    {
      inside: 1,
      operation: {
        name: 'register',
        consensusKey: key,
        possession: marked(mark(), salt * 8 + 4),
        ...own,
        amount: 100_000n * COIN,
        commission: 0,
        endpoint: anEndpoint(1),
      },
    },
    { inside: 0, operation: { name: 'heartbeat', validator: id, epoch: 0 } },
    {
      inside: 1,
      operation: { name: 'endpoint', validator: id, endpoint: anEndpoint(2), signature: marked(mark(), salt * 8 + 4) },
    },
  ] as const satisfies readonly { inside: number; operation: StakingOperation }[];
}

test('whatever blocks carry: checks stay below the count of the rule, and receivers accept what a proposer chose', () => {
  for (let round = 0; round < repeats({ quick: 2, full: 3, deep: 200 }); round++) {
    const random = randomOf(seed + round);
    const proposer = new Validator();
    const waiting: TestBlock[] = [];
    const all: { wire: Bytes; signatures: number }[] = [];
    for (let i = 0; i < 40; i++) {
      const carried = new Map<string, { wire: Bytes; signatures: number }>();
      let bytes = 0;
      // Full bodies, light ones, and transactions that other blocks carry too.
      for (let left = random(4) === 0 ? random(3) : random(60); left > 0 && bytes < MAX_BODY_BYTES - 100_000; left--) {
        const old = all[random(all.length * 3)];
        const one = old ?? anything(proposer, random, 1 + round * 10_000 + all.length);
        if (old === undefined) all.push(one);
        carried.set(toHex(readTransaction(one.wire, proposer.ledger.state.chainId).id), one);
        bytes += one.wire.length;
      }
      const parents = waiting
        .filter(() => random(12) === 0)
        .slice(0, 8)
        .map(({ id }) => id)
        .sort(Buffer.compare);
      const made = block(
        proposer,
        [...carried.values()].map(({ wire }) => wire),
        1 + random(2 ** 30),
        parents,
      );
      expect(made.signatures).toBe([...carried.values()].reduce((sum, { signatures }) => sum + signatures, 0));
      expect(made.signatures * SIGNATURE_BYTES).toBeLessThan(made.bodyBytes.length);
      waiting.push(made);
    }
    const chosen = proposer.choose(waiting);
    expect(carriedSignatures(waiting)).toBeGreaterThan(MAX_CUT_SIGNATURES);
    expect(carriedSignatures(chosen)).toBeLessThanOrEqual(MAX_CUT_SIGNATURES);
    // No block that is left would have fitted by itself.
    const room = MAX_CUT_SIGNATURES - carriedSignatures(chosen);
    for (const left of waiting.filter((each) => !chosen.includes(each) && each.body.parents.length === 0))
      expect(left.signatures).toBeGreaterThan(room);
    const cut = proposer.execute(chosen);
    expect(proposer.checks).toBeLessThanOrEqual(carriedSignatures(chosen));
    const checks = proposer.checks;
    expect(checks).toBeGreaterThan(0);
    expect(proposer.execute(chosen)).toBe(cut);
    expect(proposer.checks).toBe(checks);
    const receiver = new Validator();
    expect(receiver.execute(chosen)).toBe(cut);
    expect(receiver.checks).toBe(checks);
  }
});

let bed: Bed | undefined;
afterEach(() => bed?.close());

test('a node takes what fits into its cut, and the rest into the next: every block is paid', async () => {
  bed = await Bed.open();
  const { node } = bed;
  await bed.seal();
  const payout = developmentKey('mallory').address;
  const template = node.template({ payout, maxTransactions: 0 });
  const spends = Array.from({ length: 8 }, (_, i) => (bed as Bed).treasury(i));
  const inBlock = 24;
  const blocks = Math.floor(MAX_CUT_SIGNATURES / (inBlock * 8)) + 1;
  for (let b = 0; b < blocks; b++) {
    const transactions = Array.from({ length: inBlock }, (_, i) => {
      const salt = b * inBlock + i;
      const body = {
        chainId: node.chain.chainId,
        validFromHeight: 0,
        validUntilHeight: 1_000 + salt,
        inputs: spends.map(({ outpoint }) => outpoint),
        outputs: [{ address: treasury.address, amount: 1n }],
        payload: new Uint8Array(0),
      };
      return encodeTransaction({ body, witnesses: spends.map((_, input) => inline(FALSE, salt * 8 + input)) });
    });
    const extranonce = Uint8Array.of(0, b);
    const header = encodeHeader({
      ...decodeHeader(template.header),
      transactionsRoot: transactionsRoot({ transactions }),
      rewardRoot: rewardRoot(payout, extranonce),
    });
    const body = encodeBody({ payout, extranonce, parents: [], transactions });
    expect(await node.submitBlock(searchNonce(header, template.target), body)).toMatchObject({ status: 'accepted' });
  }
  // Parents that the next cut may not take would delay their child.
  expect(node.template({ payout, maxTransactions: 0 }).body).toHaveLength(template.body.length);
  expect((await bed.seal()).registered).toHaveLength(blocks - 1);
  const { registered, transactions } = await bed.seal();
  expect(registered).toHaveLength(1);
  expect(new Set(transactions.map((each) => each.outcome === 'failed' && each.detail))).toEqual(
    new Set(['signature_invalid']),
  );
});
