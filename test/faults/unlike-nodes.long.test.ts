/**
 * Nodes that hold more or less of the sets in memory, read ahead or not, execute proposals that are dropped, are started again or killed: fed the same cuts, all have the same roots, proofs
 * and answers at every one of them.
 */
import { rmSync, statSync, truncateSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { ApiContext } from '../../node/api/api-context.ts';
import { proofRoutes } from '../../node/api/proof-routes.ts';
import { stakingRoutes } from '../../node/api/staking-routes.ts';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentGenesis, developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { INDEX_NAME } from '../../node/index/index-keys.ts';
import { IndexReader } from '../../node/index/index-reader.ts';
import type { AppliedCut, StakingTries } from '../../node/ledger/apply-cut.ts';
import { KEY_LAYOUT, OUTPUT_LAYOUT } from '../../node/ledger/output-set.ts';
import { POSITION_LAYOUT } from '../../node/ledger/staking/position.ts';
import { USED_KEY_LAYOUT, VALIDATOR_LAYOUT } from '../../node/ledger/staking/validator.ts';
import { type EntryLayout, Trie, type TrieLimits } from '../../node/ledger/trie.ts';
import { type ConsensusNode, createNode } from '../../node/node.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, concat, toHex } from '../../protocol/bytes.ts';
import { decodeProposedCut, type ProposedCut } from '../../protocol/consensus/proposal.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { bondedBy, type StakingOperation } from '../../protocol/staking/operation.ts';
import { count, seed } from '../level.ts';
import { KNOWN_SEED, payment, quickHash, START_MILLIS, searchNonce, silentLog } from '../node/bed.ts';
import { copyOpenStore, logOf } from '../open-store.ts';
import { type Random, randomOf } from '../random.ts';
import { evidenceOf, operationTransaction, registration } from '../staking/signed.ts';
import { temporaryDirectory } from '../temporary.ts';

const COIN = 100_000_000n;
const INTERVAL = 24;
const VALIDATORS = 2;
const UNSIGNED = { round: 0, signatures: [] };
const treasury = developmentKey(TREASURY);
const dora = developmentKey('dora');
const miner = developmentKey('miner').address;

type Manner = { readonly limits?: TrieLimits; readonly readsAhead: boolean };
const MANNERS: Readonly<Record<string, Manner>> = {
  usual: { readsAhead: true },
  forgetful: { limits: { nodes: 10, leaves: 3 }, readsAhead: true },
  blind: { limits: { nodes: 0, leaves: 0 }, readsAhead: false },
  killed: { limits: { nodes: 100_000, leaves: 4 }, readsAhead: true },
};

const open = LedgerStore.open;
afterEach(() => {
  LedgerStore.open = open;
});

/** A store is opened with the limits that its directory's name selects. */
function unlikeStores(): void {
  LedgerStore.open = async (directory, options) => {
    // Without waiting for the disk: the process is what is killed here, not the machine.
    const store = await open.call(LedgerStore, directory, { ...options, durable: false });
    const { limits, readsAhead } = MANNERS[basename(directory).split('-')[0] as string] as Manner;
    const trie = (layout: EntryLayout) => new Trie(layout, (key) => store.get(key), limits);
    const tries: StakingTries = {
      validators: trie(VALIDATOR_LAYOUT),
      positions: trie(POSITION_LAYOUT),
      usedKeys: trie(USED_KEY_LAYOUT),
    };
    Object.assign(store, { outputTrie: trie(OUTPUT_LAYOUT), keyTrie: trie(KEY_LAYOUT) });
    Object.assign(store.staking, { tries });
    if (!readsAhead) store.readAhead = async () => undefined;
    return store;
  };
}

type Sent = { readonly id: Bytes; readonly header: Bytes; readonly body: Bytes };
type Decided = { readonly cut: ProposedCut; readonly blocks: readonly Sent[] };

class Unlike {
  node!: ConsensusNode;
  readonly name: string;
  readonly #directory: string;
  readonly #random: Random;
  readonly #given = new Set<Sent>();
  #store: string;
  #lives = 0;

  constructor(name: string, directory: string, random: Random) {
    this.name = name;
    this.#directory = directory;
    this.#random = random;
    this.#store = join(directory, `${name}-0`);
  }

  async open(): Promise<void> {
    this.node = await createNode(
      {
        storeDirectory: this.#store,
        genesis: developmentGenesis({
          timestampMillis: START_MILLIS,
          seed: KNOWN_SEED,
          initialWork: 1n,
          minimumWork: 1n,
          validators: VALIDATORS,
          intervalCuts: INTERVAL,
        }),
        cutMillis: 0,
        makesCuts: false,
        signatureThreads: 1,
      },
      {
        verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
        certify: async () => UNSIGNED,
        now: () => this.node.chain.head().timestampMillis + 2_500,
        random: this.#random,
        log: silentLog,
        indexers: [addressIndex],
      },
    );
  }

  async take(blocks: readonly Sent[]): Promise<void> {
    for (const block of blocks) {
      if (this.#given.has(block)) continue;
      this.#given.add(block);
      const outcome = await this.node.submitBlock(block.header, block.body, 'relayed');
      if (outcome.status === 'refused') throw new Error(`${this.name}: ${outcome.error.code}`);
    }
  }

  execute(cut: ProposedCut): AppliedCut {
    const executed = this.node.ledger.execute(cut);
    if (typeof executed !== 'object') throw new Error(`${this.name}: ${executed}`);
    return executed;
  }

  async follow({ cut, blocks }: Decided): Promise<void> {
    await this.take(blocks);
    await this.node.ledger.commit(this.execute(cut), UNSIGNED);
  }

  /** As a process that is killed leaves its store, at any moment of what is done meanwhile: the log has been written up to some byte. */
  async killedWhile(doing: Promise<void>, turns: number): Promise<void> {
    for (let i = 0; i < turns; i++) await turn();
    const left = join(this.#directory, `${this.name}-${++this.#lives}`);
    copyOpenStore(this.#store, left);
    await doing;
    await this.close();
    rmSync(this.#store, { recursive: true });
    this.#store = left;
    const log = logOf(left);
    // The last record may be torn on top of that.
    if (this.#random(2) === 0) truncateSync(log, Math.max(0, statSync(log).size - this.#random(3_000)));
    this.#given.clear();
    await this.open();
  }

  async restart(): Promise<void> {
    await this.close();
    this.#given.clear();
    await this.open();
  }

  async close(): Promise<void> {
    await this.node.close();
  }

  /** What it tells of the chain. */
  async answers(outputs: readonly UnspentOutput[], positions: readonly Bytes[], validators: readonly Bytes[]) {
    const { node } = this;
    const index = new IndexReader(node.chain.reader(INDEX_NAME), () => node.chain.head().height);
    const context = { node, index } as unknown as ApiContext;
    const addresses = [treasury, dora, developmentKey('miner')].map(({ address }) =>
      formatAddress(address, 'development'),
    );
    const outpoints = outputs.map(({ outpoint: { transactionId, outputIndex } }) => ({
      transaction_id: toHex(transactionId),
      output_index: outputIndex,
    }));
    const [position_ids, validator_ids] = [positions.map(toHex), validators.map(toHex)];
    const none = { params: {}, query: {} };
    return {
      head: node.chain.head(),
      supply: node.chain.supply(),
      balances: index.balances([treasury.address, dora.address, miner]).value,
      outputs: await proofRoutes.utxoProofs(context, { ...none, body: { outpoints } }),
      staking: await proofRoutes.stakingProofs(context, { ...none, body: { position_ids, validator_ids } }),
      positions: await stakingRoutes.stakingPositions(context, { ...none, body: { addresses } }),
      validators: await stakingRoutes.stakingValidators(context, { ...none, body: {} }),
    };
  }
}

test('whatever a node holds in memory, executed in vain or lost with its process, its cuts are those of the others', async () => {
  const random = randomOf(seed);
  unlikeStores();
  const directory = temporaryDirectory();
  const nodes = Object.keys(MANNERS).map((name, i) => new Unlike(name, directory, randomOf(seed + i)));
  for (const node of nodes) await node.open();
  const [usual, , , killed] = nodes as [Unlike, Unlike, Unlike, Unlike];
  const { chain } = usual.node;
  const purse: UnspentOutput[] = chain.genesis.outputs
    .map((output, i) => ({ outpoint: genesisOutpoint(chain.chainId, i), ...output, source: 'genesis' as const }))
    .filter(({ address }) => Buffer.compare(address, treasury.address) === 0);
  const all: UnspentOutput[] = [...purse];
  const positions: Bytes[] = [];
  const decided: Decided[] = [];
  /** Blocks that no cut has taken yet. */
  let blocks: Sent[] = [];
  usual.node.on('cut', ({ created, staking }) => {
    for (const output of created) {
      all.push(output);
      if (Buffer.compare(output.address, treasury.address) === 0 && output.amount > 10n * COIN) purse.push(output);
    }
    for (const { before, after } of staking.positions)
      if (before === undefined && after !== undefined) positions.push(after.id);
  });
  /** An output that pays for so much and more. */
  const richer = (amount: bigint): UnspentOutput =>
    purse.splice(
      purse.findIndex((output) => output.amount > amount + COIN),
      1,
    )[0] as UnspentOutput;
  const validators = Array.from({ length: VALIDATORS }, (_, i) =>
    validatorId(developmentKey(validatorName(i)).publicKey),
  );
  const send = async (wire: Uint8Array) =>
    expect(await usual.node.submitTransaction(wire)).toMatchObject({ status: 'accepted' });
  const operate = (operation: StakingOperation, signer = dora) =>
    send(operationTransaction(chain, { key: treasury, spend: richer(bondedBy(operation)) }, operation, { signer }));

  const bert = developmentKey('bert');
  const bertId = validatorId(bert.publicKey);
  const cuts = count({ quick: 44, full: 48, deep: 600 });
  for (let height = 1; height <= cuts; height++) {
    // Many outputs, so that the set is several records deep; some go again.
    for (let i = random(4); i > 0; i--) {
      const spend = purse.splice(random(purse.length), 1)[0];
      if (spend === undefined || spend.amount < 100n * COIN) continue;
      const part = spend.amount / 16n;
      await send(
        payment(
          chain,
          [spend],
          Array.from({ length: 7 }, () => ({ address: treasury.address, amount: part })),
        ),
      );
    }
    const small = purse.filter(({ amount }) => amount < 3_000n * COIN).slice(0, 8);
    if (small.length === 8 && random(3) === 0) {
      for (const each of small) purse.splice(purse.indexOf(each), 1);
      await send(payment(chain, small, []));
    }
    const owner = { owner: dora.address, rewardAddress: dora.address };
    if (height === 3) await operate(registration(chain, bert, bert, 100_000n * COIN), bert);
    if (height > 3 && height < 40 && random(2) === 0)
      await operate({
        name: 'bond',
        validator: random(2) === 0 ? bertId : (validators[0] as Bytes),
        ...owner,
        amount: 150n * COIN,
      });
    if (height % 16 === 8 && height < 41) {
      const position = positions.at(-1) as Bytes;
      if (usual.node.chain.staking().position(position)?.kind === 'delegation')
        await operate({ name: 'unbond', position, amount: 0n });
    }
    if (height === 41)
      await operate(evidenceOf(chain, bertId, bert, { kind: 'precommit', height: 30, round: 1 }), treasury);

    // Proposals of several rounds: each with a block more, or the same ones at another time.
    const proposals: Decided[] = [];
    for (let round = 0; round <= random(3); round++) {
      if (random(4) > 0) {
        const template = usual.node.template({ payout: miner, maxTransactions: 1 + random(6), draw: random(1_000) });
        const [header, { body }] = [searchNonce(template.header, template.target), template];
        const outcome = await usual.node.submitBlock(header, body);
        if (outcome.status === 'accepted') blocks.push({ id: outcome.id, header, body });
      }
      const { effects } = usual.node.ledger.make({
        timestampMillis: chain.head().timestampMillis + 2_500 + round,
        signers: 3n,
      });
      const content = concat(effects.headerBytes, ...effects.registered.map(({ id }) => id));
      proposals.push({ cut: decodeProposedCut(content), blocks: [...blocks] });
    }
    const chosen = proposals[random(proposals.length)] as Decided;
    decided.push(chosen);
    const taken = new Set(chosen.cut.blockIds.map(toHex));
    blocks = blocks.filter(({ id }) => !taken.has(toHex(id)));
    for (const node of nodes) {
      // Others before it and after it, with what is read ahead for their blocks under way.
      let executed: AppliedCut | undefined;
      for (const proposal of proposals.filter((each) => each === chosen || random(2) === 0)) {
        if (node !== usual) await node.take(proposal.blocks);
        if (random(2) === 0) await turn();
        const cut = node.execute(proposal.cut);
        if (proposal === chosen) executed = cut;
      }
      const committed = node.node.ledger.commit(executed as AppliedCut, UNSIGNED);
      if (node === killed && random(3) === 0) await node.killedWhile(committed, random(4));
      else await committed;
      if (node === killed && random(6) === 0) await node.restart();
      while (node.node.chain.head().height < height)
        await node.follow(decided[node.node.chain.head().height] as Decided);
    }
    const ids = nodes.map(({ node }) => toHex(node.chain.head().cutId));
    expect(new Set(ids).size).toBe(1);
    if (height % 4 > 0) continue;
    const asked = [...all.slice(-3), ...Array.from({ length: 5 }, () => all[random(all.length)] as UnspentOutput)];
    const [first, ...others] = await Promise.all(
      nodes.map((node) => node.answers(asked, positions.slice(-20), [...validators, bertId])),
    );
    for (const other of others) expect(other).toEqual(first);
  }
  expect(chain.supply().outputCount).toBeGreaterThan(cuts);
  expect(chain.supply().burned).toBeGreaterThan(0n);
  for (const node of nodes) await node.close();
});
