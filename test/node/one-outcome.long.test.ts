/**
 * One outcome for the same bytes, by whichever way a node gets to them. Random payments and operations, good ones and spoiled ones, in blocks of any shape,
 * are executed by a node that makes the cuts, one that saw some of it before and in another order, one that only gets what the cuts name, with no result
 * remembered, one that began with a snapshot, and by the rebuilding of the index. None finds another state; what the mempool says of a transaction is what a cut does with it; a block made
 * from a node's template is accepted by it; and coins come from the emission only.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { adoptInto } from '../../node/chain/adopted-cut.ts';
import { type Certify, certifyWith, isQuorum } from '../../node/chain/certificate.ts';
import type { CutRecord, UnspentOutput } from '../../node/full-node.ts';
import { type DevelopmentKey, developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { rebuildIndex } from '../../node/index/rebuild.ts';
import type { CutEffects } from '../../node/ledger/effects.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { installSnapshot } from '../../node/snapshot/install-snapshot.ts';
import { SnapshotWriter } from '../../node/snapshot/snapshot-writer.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { burnAddressPayload } from '../../protocol/address.ts';
import { type Bytes, compareBytes, concat, toHex } from '../../protocol/bytes.ts';
import { decodeProposedCut } from '../../protocol/consensus/proposal.ts';
import { voteMessage } from '../../protocol/consensus/vote.ts';
import { merkleRoot } from '../../protocol/crypto/merkle.ts';
import { encodeBody, MAX_BODY_BYTES, transactionsRoot } from '../../protocol/ledger/body.ts';
import type { Certificate } from '../../protocol/ledger/cut.ts';
import { GENESIS_SUPPLY } from '../../protocol/ledger/emission.ts';
import { blockId, decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { endpointMessage, possessionMessage, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import { bondedBy, encodeOperation, OPERATION_TYPES, type StakingOperation } from '../../protocol/staking/operation.ts';
import { minimumFee, transactionMass } from '../../protocol/transactions/fee.ts';
import {
  decodeTransaction,
  encodeTransaction,
  encodeTransactionBody,
  MAX_TRANSACTION_BYTES,
  type Output,
  operationMessage,
  spendMessage,
  type TransactionBody,
  transactionIdOfWire,
  type Witness,
} from '../../protocol/transactions/transaction.ts';
import { count, repeats, seed } from '../level.ts';
import { type Group, groupOf } from '../multisig/members.ts';
import { quietLog } from '../quiet-log.ts';
import { type Random, randomOf } from '../random.ts';
import { anEndpoint } from '../staking/signed.ts';
import { lasts } from '../watch/limits.ts';
import { Bed, searchNonce } from './bed.ts';

const COIN = 100_000_000n;
/** The shortest that may be: ten epochs of unbonding fit into the test. */
const INTERVAL = 24;
const GENESIS_VALIDATORS = 3;
const SNAPSHOT_EVERY = 192;

const treasury = developmentKey(TREASURY);
const people = ['ann', 'ben', 'cy'].map(developmentKey);
const groups = [groupOf(2, 'two'), groupOf(3, 'three')];
const consensus = [
  ...Array.from({ length: GENESIS_VALIDATORS }, (_, i) => developmentKey(validatorName(i))),
  ...Array.from({ length: 40 }, (_, i) => developmentKey(`consensus ${i}`)),
];
const hexOf = (bytes: Bytes): string => toHex(bytes);
const keyByAddress = new Map(
  [treasury, ...people, ...consensus, ...groups.flatMap(({ members }) => members)].map((key) => [
    hexOf(key.address),
    key,
  ]),
);
const groupByAddress = new Map(groups.map((group) => [hexOf(group.address), group]));
const keyByPublic = new Map(consensus.map((key) => [hexOf(key.publicKey), key]));

const FUND: Output[] = [...people, ...groups].flatMap(({ address }) =>
  Array.from({ length: 8 }, () => ({ address, amount: 200_000n * COIN })),
);

let beds: Bed[] = [];
afterEach(async () => {
  for (const bed of beds) await bed.close();
  beds = [];
});

/** Whose signature is under an address, if it is one of the test's. */
type Owner = DevelopmentKey | Group;
const ownerOf = (address: Bytes): Owner | undefined =>
  keyByAddress.get(hexOf(address)) ?? groupByAddress.get(hexOf(address));

class World {
  readonly #random: Random;
  readonly outputs = new Map<string, UnspentOutput>();
  readonly validators = new Map<string, { id: Bytes; owner: Bytes; key: Bytes }>();
  readonly positions = new Map<string, { id: Bytes; owner: Bytes }>();
  /** All that were ever made: they come again. */
  readonly made: Bytes[] = [];
  readonly registered: Bytes[] = [];
  readonly chainId: Bytes;

  constructor(random: Random, { node }: Bed) {
    this.#random = random;
    this.chainId = node.chain.chainId;
    for (const { publicKey, address } of consensus.slice(0, GENESIS_VALIDATORS)) {
      const id = validatorId(publicKey);
      this.validators.set(hexOf(id), { id, owner: address, key: publicKey });
      this.positions.set(hexOf(selfBondId(id)), { id: selfBondId(id), owner: address });
    }
  }

  note(effects: CutEffects): void {
    for (const output of effects.created) {
      const { transactionId, outputIndex } = output.outpoint;
      if (ownerOf(output.address) !== undefined) this.outputs.set(`${hexOf(transactionId)} ${outputIndex}`, output);
    }
    for (const { outpoint } of effects.spent)
      this.outputs.delete(`${hexOf(outpoint.transactionId)} ${outpoint.outputIndex}`);
    for (const validator of effects.staking.validators) this.validators.set(hexOf(validator.id), validator);
    for (const { before, after } of effects.staking.positions)
      if (after !== undefined) this.positions.set(hexOf(after.id), after);
      else if (before !== undefined && this.#random(3) > 0) this.positions.delete(hexOf(before.id));
    this.registered.push(...effects.registered.map(({ id }) => id));
  }

  pick<T>(list: readonly T[]): T {
    return list[this.#random(list.length)] as T;
  }

  chance(one: number): boolean {
    return this.#random(one) === 0;
  }

  #address(): Bytes {
    if (this.chance(12)) return burnAddressPayload();
    return this.pick<Owner>([treasury, ...people, ...groups]).address;
  }

  #signed(key: DevelopmentKey, message: Bytes): Bytes {
    const signature = signMessage(key.privateKey, message);
    if (this.chance(25)) signature[this.#random(signature.length)] = this.#random(256);
    return signature;
  }

  operation(height: number): StakingOperation | undefined {
    const epoch = Math.floor(height / INTERVAL);
    const validator = this.pick([...this.validators.values()]);
    const position = this.pick([...this.positions.values()]);
    const owner = this.pick<Owner>([...people, ...groups]).address;
    const amount = (least: number) => BigInt(least + this.#random(least)) * COIN + BigInt(this.#random(99));
    const key = this.pick(consensus);
    const endpoint = anEndpoint(this.#random(256));
    switch (this.#random(14)) {
      case 0:
        return {
          name: 'register',
          consensusKey: key.publicKey,
          possession: this.#signed(key, possessionMessage(this.chainId, owner, key.publicKey)),
          owner,
          rewardAddress: this.#address(),
          amount: amount(100_000),
          commission: 10 * this.#random(101),
          endpoint,
        };
      case 1:
      case 2:
        return {
          name: 'bond',
          validator: validator.id,
          owner,
          rewardAddress: this.#address(),
          amount: amount(100),
        };
      case 3:
        return { name: 'unbond', position: position.id, amount: this.chance(2) ? 0n : amount(100) };
      case 13:
        return { name: 'unbond', position: position.id, amount: 0n };
      case 4:
      case 5:
        return { name: 'withdraw', position: position.id };
      case 6:
        return { name: 'reward_address', position: position.id, address: this.#address() };
      case 7:
      case 8:
        return { name: 'heartbeat', validator: validator.id, epoch: this.chance(8) ? epoch + 1 : epoch };
      case 9:
        return {
          name: 'rotate',
          validator: validator.id,
          consensusKey: key.publicKey,
          possession: this.#signed(key, possessionMessage(this.chainId, validator.owner, key.publicKey)),
          endpoint,
        };
      case 10: {
        const active = keyByPublic.get(hexOf(validator.key)) as DevelopmentKey;
        const signature = this.#signed(active, endpointMessage(this.chainId, validator.id, endpoint));
        return { name: 'endpoint', validator: validator.id, endpoint, signature };
      }
      case 11:
        return this.chance(2)
          ? { name: 'commission', validator: validator.id, commission: 10 * this.#random(101) }
          : this.chance(6)
            ? { name: 'exit', validator: validator.id }
            : undefined;
      default: {
        if (!this.chance(8)) return undefined;
        const vote = {
          kind: this.pick(['prevote', 'precommit'] as const),
          height: Math.max(0, height - this.#random(this.chance(2) ? 12 * INTERVAL : 30)),
          round: this.#random(3),
        };
        const liar = keyByPublic.get(hexOf(validator.key)) as DevelopmentKey;
        const cast = (first: number) => {
          const one = { ...vote, cutId: new Uint8Array(48).fill(first) };
          return { vote: one, signature: this.#signed(liar, voteMessage(this.chainId, one)) };
        };
        return { name: 'evidence', validator: validator.id, votes: [cast(1), cast(2)] };
      }
    }
  }

  /** Whose signature the operation needs, as the test knows it. */
  #signer(operation: StakingOperation, payer: Bytes): Owner | undefined {
    switch (operation.name) {
      case 'register':
      case 'bond':
        return ownerOf(operation.owner);
      case 'unbond':
      case 'withdraw':
      case 'reward_address':
        return ownerOf(this.positions.get(hexOf(operation.position))?.owner ?? payer);
      case 'heartbeat':
        return keyByPublic.get(hexOf(this.validators.get(hexOf(operation.validator))?.key ?? payer));
      case 'evidence':
        return ownerOf(payer);
      default:
        return ownerOf(this.validators.get(hexOf(operation.validator))?.owner ?? payer);
    }
  }

  #witness(owner: Owner, message: Bytes): Witness {
    if (this.chance(40)) return { profile: 'referenced', signature: new Uint8Array(3_309).fill(this.#random(256)) };
    const isInline = this.chance(2);
    if ('privateKey' in owner) {
      const signature = this.#signed(owner, message);
      const { publicKey } = this.chance(40) ? this.pick(people) : owner;
      return isInline ? { profile: 'inline', publicKey, signature } : { profile: 'referenced', signature };
    }
    const { descriptor, members } = owner;
    const members2 = [...members.keys()].sort(() => this.#random(3) - 1).slice(0, descriptor.threshold);
    const signatures = members2
      .sort((a, b) => a - b)
      .map((member) => ({ member, signature: this.#signed(members[member] as DevelopmentKey, message) }));
    if (isInline) return { profile: 'multisig_inline', descriptor, signatures };
    const keyHashes = members.map(({ address }) => address.subarray(1));
    return { profile: 'multisig_referenced', threshold: descriptor.threshold, keyHashes, signatures };
  }

  transaction(height: number, spendable: readonly UnspentOutput[]): Bytes | undefined {
    if (this.made.length > 0 && this.chance(15)) return this.pick(this.made);
    const operation = this.chance(2) ? this.operation(height) : undefined;
    const spends: UnspentOutput[] = [];
    for (let left = 1 + this.#random(this.chance(4) ? 8 : 2); left > 0; left--) {
      const one = this.pick(spendable);
      const other = this.pick(spendable);
      // Bonds need much.
      const spend = operation !== undefined && other.amount > one.amount ? other : one;
      if (!spends.includes(spend)) spends.push(spend);
    }
    const encoded = operation && encodeOperation(operation);
    const outputs: Output[] = Array.from({ length: this.#random(this.chance(4) ? 8 : 3) }, () => ({
      address: this.#address(),
      amount: BigInt(1 + this.#random(1_000_000)),
    }));
    const paidIn = spends.reduce((sum, { amount }) => sum + amount, 0n);
    const bodyOf = (fee: bigint): TransactionBody | undefined => {
      const change = paidIn - fee - bondedBy(operation) - outputs.reduce((sum, { amount }) => sum + amount, 0n);
      const all =
        change > 0n ? [...outputs.slice(0, 7), { address: spends[0]?.address as Bytes, amount: change }] : outputs;
      return {
        chainId: this.chainId,
        validFromHeight: this.chance(30) ? height + this.#random(3) : 0,
        validUntilHeight: this.chance(15) ? height + this.#random(3) - 1 : height + 50,
        inputs: spends.map(({ outpoint }) => outpoint),
        outputs: all,
        payload: this.chance(5)
          ? Uint8Array.of(this.#random(3), ...new Uint8Array(this.#random(2_000)))
          : new Uint8Array(0),
        ...(encoded && { operation: encoded }),
      };
    };
    const signer = operation && this.#signer(operation, (spends[0] as UnspentOutput).address);
    if (operation !== undefined && signer === undefined) return undefined;
    // The most that it can weigh, once in a while too little.
    const fee = this.chance(20)
      ? BigInt(this.#random(200_000))
      : minimumFee(transactionMass(this.chance(2) ? 60_000 : 120_000, 8));
    const body = bodyOf(fee) as TransactionBody;
    if (body.validUntilHeight < body.validFromHeight) return undefined;
    const bytes = encodeTransactionBody(body);
    const witnesses = spends.map((spend, i) =>
      this.#witness(ownerOf(spend.address) as Owner, spendMessage(bytes, i, spend)),
    );
    if (signer !== undefined) witnesses.push(this.#witness(signer, operationMessage(bytes)));
    try {
      const wire = encodeTransaction({ body, witnesses });
      if (wire.length > MAX_TRANSACTION_BYTES) return undefined;
      this.made.push(wire);
      return wire;
    } catch {
      return undefined;
    }
  }

  /** A block by hand on any open anchor, with any parents. */
  block(bed: Bed, transactions: readonly Bytes[], waiting: readonly Bytes[]): { header: Bytes; body: Bytes } {
    const { chain } = bed.node;
    const head = chain.head();
    const anchorHeight = Math.max(0, head.height - (this.chance(3) ? this.#random(95) : 0));
    const anchor = chain.cut(anchorHeight);
    if (anchor === undefined) throw new Error('no anchor');
    const parents = [
      ...new Set([
        ...(this.chance(2) ? waiting.slice(-2) : []),
        ...(this.chance(4) && this.registered.length > 0 ? [this.pick(this.registered)] : []),
      ]),
    ].sort(compareBytes);
    const payout = this.#address();
    const extranonce = encodeExtranonce(
      '',
      Uint8Array.from({ length: 12 }, () => this.#random(256)),
    );
    const body = { payout, extranonce, parents, transactions };
    const template = decodeHeader(bed.node.template({ payout, maxTransactions: 0 }).header);
    const header = encodeHeader({
      ...template,
      anchorHeight,
      anchorId: anchor.cutId,
      stateRoot: anchor.header.stateRoot,
      target: anchor.target,
      timestampMillis: Math.max(bed.now, anchor.header.timestampMillis + 1),
      parentsRoot: merkleRoot(parents),
      transactionsRoot: transactionsRoot(body),
      rewardRoot: rewardRoot(payout, extranonce),
    });
    return { header: searchNonce(header, anchor.target), body: encodeBody(body) };
  }
}

const byAll = certifyWith(consensus.map(({ privateKey }) => privateKey));
/** One member stays away for an epoch, where the others are enough. */
const certify: Certify = async (cut) => {
  const whole = await byAll(cut);
  const away = Math.floor(cut.height / INTERVAL) % cut.committee.length;
  const without = { ...whole, signatures: whole.signatures.filter(({ member }) => member !== away) };
  return isQuorum(without, cut.committee) ? without : whole;
};

async function open(): Promise<Bed> {
  const bed = await Bed.open({
    genesis: { validators: GENESIS_VALIDATORS, intervalCuts: INTERVAL, fund: FUND },
    options: { signatureThreads: 1 },
    dependencies: { certify },
  });
  beds.push(bed);
  return bed;
}

const nodeOf = ({ node }: Bed): ConsensusNode => node as ConsensusNode;

/** The outputs that a transaction makes when it is executed, for another one to spend in the same cut. */
function madeBy(wire: Bytes): UnspentOutput[] {
  const transactionId = transactionIdOfWire(wire);
  return decodeTransaction(wire).body.outputs.flatMap((output, outputIndex) =>
    ownerOf(output.address) === undefined
      ? []
      : [{ ...output, outpoint: { transactionId, outputIndex }, source: 'regular' as const }],
  );
}

/** Takes a cut as a node does that follows: blocks that are not here are brought. */
async function follow(bed: Bed, maker: Bed, effects: CutEffects): Promise<void> {
  const { ledger } = nodeOf(bed);
  const { chain } = maker.node;
  const { headerBytes, registered, header } = effects;
  const cut = decodeProposedCut(concat(headerBytes, ...registered.map(({ id }) => id)));
  for (const id of cut.blockIds) {
    if (ledger.isHere(id)) continue;
    const admitted = await ledger.admit(chain.block(id)?.header as Bytes, chain.blockBody(id) as Bytes, cut);
    expect(admitted).toBe('here');
  }
  expect(await adoptInto(ledger)(cut, chain.certificate(header.height) as Certificate)).toBe('final');
}

/** Withdrawals need ten epochs. */
const CUTS = count({ full: 206, deep: 330 });

test.each(Array.from({ length: repeats({ full: 1, deep: 12 }) }, (_, i) => seed + i))(
  'the same bytes have one outcome everywhere: seed %i',
  lasts(120, 'five nodes write two hundred cuts each'),
  async (from) => {
    const random = randomOf(from);
    const [maker, early, cold, asked] = [await open(), await open(), await open(), await open()];
    const world = new World(random, maker);
    for (const [i] of maker.node.chain.genesis.outputs.entries()) {
      const output = maker.genesisOutput(i);
      if (ownerOf(output.address) !== undefined) world.outputs.set(`${hexOf(output.outpoint.transactionId)} 0`, output);
    }
    const directory = join(maker.directory, 'snapshots');
    const writer = new SnapshotWriter({ directory, everyCuts: SNAPSHOT_EVERY, node: nodeOf(maker), log: quietLog });
    const outcomes = new Map<string, number>();
    let issued = maker.node.chain.cut(0)?.subsidy as bigint;
    let begun: Bed | undefined;
    for (let at = 0; at < CUTS; at++) {
      const { chain } = maker.node;
      const height = chain.head().height + 1;
      const all = [maker, early, cold, asked, ...(begun ? [begun] : [])];
      const isLonely = world.chance(2);
      const wires: Bytes[] = [];
      for (let left = isLonely ? 1 : 1 + random(8); left > 0; left--) {
        const spendable = [...world.outputs.values()];
        const fresh = world.chance(3) ? wires.flatMap(madeBy) : [];
        const wire = world.transaction(height, fresh.length > 0 && !isLonely ? fresh : spendable);
        if (wire !== undefined) wires.push(wire);
      }
      const answer = isLonely && wires[0] ? await asked.node.submitTransaction(wires[0]) : undefined;
      if (!isLonely)
        for (const bed of [maker, early])
          for (const wire of wires)
            if (world.chance(2)) await bed.node.submitTransaction(wire, world.pick(['own', 'relayed']));
      const blocks: { header: Bytes; body: Bytes }[] = [];
      const waiting: Bytes[] = [];
      for (let left = isLonely ? 1 : 1 + random(5); left > 0; left--) {
        const chosen = isLonely
          ? wires
          : [
              ...new Map(
                wires.filter(() => world.chance(2)).map((wire) => [hexOf(transactionIdOfWire(wire)), wire]),
              ).values(),
            ];
        const block = world.block(maker, chosen, waiting);
        expect(block.body.length).toBeLessThan(MAX_BODY_BYTES);
        expect(await maker.node.submitBlock(block.header, block.body)).toMatchObject({ status: 'accepted' });
        blocks.push(block);
        waiting.push(blockId(block.header));
      }
      if (!isLonely) {
        // What a node offers to its miners it takes.
        if (world.chance(3)) await maker.mine(people[0]?.address as Bytes, 1_000, random(3));
        for (const { header, body } of blocks.sort(() => random(3) - 1))
          if (world.chance(2)) await early.node.submitBlock(header, body, 'relayed');
        if (world.chance(3)) await early.mine(people[1]?.address as Bytes, 1_000, random(3));
        // A cut of its own that nobody takes.
        if (world.chance(3)) nodeOf(early).ledger.make({ timestampMillis: early.now + 9_000, signers: 1n });
      }
      if (world.chance(12)) await early.reopen();
      if (world.chance(8)) await cold.reopen();
      const effects = await maker.seal();
      for (const bed of all) bed.now = maker.now;
      for (const bed of all) if (bed !== maker) await follow(bed, maker, effects);
      issued += effects.subsidy;
      world.note(effects);
      for (const each of effects.transactions) {
        const name = each.outcome === 'failed' ? each.detail : each.outcome;
        const { operation } = each.body;
        for (const counted of [name, `${each.outcome} ${operation?.type ?? 0}`])
          outcomes.set(counted, (outcomes.get(counted) ?? 0) + 1);
      }
      const [only] = effects.transactions;
      if (answer !== undefined && only !== undefined && effects.transactions.length === 1) {
        const said = answer.status === 'refused' ? answer.error.code : answer.status;
        const done = only.outcome === 'failed' ? only.detail : only.outcome;
        const same = { accepted: 'executed', known: 'repeated' } as Record<string, string>;
        expect([height, same[said] ?? said]).toEqual([height, done]);
      }
      if (height === SNAPSHOT_EVERY - 1) {
        await writer.idle();
        begun = await open();
        begun.now = maker.now;
        await begun.node.close();
        const storeDirectory = join(begun.directory, 'store');
        rmSync(storeDirectory, { recursive: true });
        const file = join(directory, `snapshot-${height}`);
        const { genesis } = chain;
        await installSnapshot({
          file,
          trust: effects.cutId,
          storeDirectory,
          network: 'development',
          genesis,
          nowMillis: maker.now,
        });
        await begun.openNode();
      }
      const { figures } = chain.cut(height) as CutRecord;
      const held = figures.outputs + figures.bonded + figures.unbonding + figures.workReserve + figures.stakeReserve;
      expect(held + figures.burned).toBe(GENESIS_SUPPLY + issued);
    }
    await writer.stop();
    for (const bed of beds) expect(bed.node.chain.head()).toEqual(maker.node.chain.head());
    // And once more from the blocks in the store.
    const height = maker.node.chain.head().height;
    await maker.node.close();
    const store = await LedgerStore.open(join(maker.directory, 'store'));
    const scratch = await LedgerStore.open(join(maker.directory, 'scratch'), { durable: false });
    expect(await rebuildIndex(store, scratch, () => undefined)).toBe(height);
    await scratch.close();
    await store.close();
    await maker.openNode();
    const isExecuted = (type: number) => outcomes.has(`executed ${type}`);
    // Payments and most kinds of operations.
    expect(isExecuted(0)).toBe(true);
    expect(Object.values(OPERATION_TYPES).filter(isExecuted).length).toBeGreaterThan(6);
  },
);
