/**
 * A chain for the API's benchmarks: 1,000,000 outputs of 10,000 addresses, then empty cuts up to 100,000. Cuts are executed by the ledger and
 * written by the store as always; only signatures and PoW are left out, and bodies are not kept. It is made once and used again.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { certifyWith } from '../../node/chain/certificate.ts';
import { certifiable } from '../../node/chain/open-chain.ts';
import type { BlockRecord } from '../../node/full-node.ts';
import { developmentGenesis, developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { applyCut, type LedgerView } from '../../node/ledger/apply-cut.ts';
import { genesisCut } from '../../node/ledger/genesis-cut.ts';
import { findOutput } from '../../node/ledger/output-set.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import type { ReadTransaction, WorkBlock } from '../../node/ledger/work-block.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { bodyId } from '../../protocol/ledger/body.ts';
import { encodeGenesis, genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { blockId, decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { minimumFee, transactionMass } from '../../protocol/transactions/fee.ts';
import { encodeTransactionBody, type Outpoint } from '../../protocol/transactions/transaction.ts';
import { developmentKeys, KNOWN_SEED } from '../node/bed.ts';

export const BENCH_START = 1_800_000_000_000;
export type ChainSize = { readonly outputs: number; readonly cuts: number; readonly addresses: number };

export const benchAddress = (i: number): Uint8Array<ArrayBuffer> => keyAddressPayload(utf8(`bench ${i}`));
export const benchGenesis = () =>
  developmentGenesis({
    timestampMillis: BENCH_START,
    seed: KNOWN_SEED,
    initialWork: 1n,
    minimumWork: 1n,
    validators: 1,
  });

const PER_TRANSACTION = 7;
const TRANSACTIONS_PER_CUT = 1_000;
const WIRE = new Uint8Array(3_900);
const NO_BODY = new Uint8Array(0);
const PAID = 1_000_000n;

/** Spends the change of the transaction before it: one long chain of payments. */
function transactionOf(chainId: Bytes, spends: Outpoint, amount: bigint, first: number, addresses: number) {
  const mass = transactionMass(WIRE.length, PER_TRANSACTION + 1);
  const change = amount - BigInt(PER_TRANSACTION) * PAID - minimumFee(mass);
  const body = {
    chainId,
    validFromHeight: 0,
    validUntilHeight: 1_000_000_000,
    inputs: [spends],
    outputs: [
      ...Array.from({ length: PER_TRANSACTION }, (_, i) => ({
        address: benchAddress((first + i) % addresses),
        amount: PAID,
      })),
      { address: developmentKey(TREASURY).address, amount: change },
    ],
    payload: new Uint8Array(0),
  };
  const bodyBytes = encodeTransactionBody(body);
  const transactionId = id(LABELS.transaction, bodyBytes);
  const transaction: ReadTransaction = {
    body,
    witnesses: [{ profile: 'referenced', signature: NO_BODY }],
    id: transactionId,
    name: nameOf(transactionId),
    wire: WIRE,
    bodyBytes,
    leaf: NO_BODY,
    leafName: '',
    mass,
    // Nothing is signed here, and the rows are made by blocks that are larger than real ones.
    signatures: 0,
  };
  return { transaction, change };
}

function blockOf(
  anchor: { height: number; cutId: Bytes; stateRoot: Bytes; timestampMillis: number; target: bigint },
  transactions: ReadTransaction[],
) {
  const zero = new Uint8Array(48);
  const headerBytes = encodeHeader({
    networkId: 4,
    anchorHeight: anchor.height,
    timestampMillis: anchor.timestampMillis + 1,
    anchorId: anchor.cutId,
    parentsRoot: zero,
    transactionsRoot: zero,
    rewardRoot: zero,
    stateRoot: anchor.stateRoot,
    target: anchor.target,
    nonce: new Uint8Array(8),
  });
  const payout = developmentKey('miner').address;
  const extranonce = encodeExtranonce('bench', utf8(String(anchor.height)));
  const block: WorkBlock & { hash: Bytes } = {
    id: blockId(headerBytes),
    header: decodeHeader(headerBytes),
    headerBytes,
    body: { payout, extranonce, parents: [], transactions: [] },
    bodyBytes: NO_BODY,
    bodyId: bodyId(headerBytes),
    work: 1n,
    transactions,
    signatures: 0,
    hash: new Uint8Array(32),
  };
  const record: BlockRecord = {
    id: block.id,
    header: headerBytes,
    anchorHeight: anchor.height,
    dueHeight: anchor.height + REGISTRATION_WINDOW,
    acceptedMillis: anchor.timestampMillis,
    origin: 'own',
    payout,
    extranonce,
    parents: [],
    transactionCount: transactions.length,
    reward: { state: 'waiting' },
  };
  return { block, record };
}

/** The directory of the store, built when it is not there yet. */
export async function benchChain(parent: string, size: ChainSize, say: (text: string) => void): Promise<string> {
  const directory = join(parent, `api-chain-certified-${size.outputs}-${size.cuts}`);
  if (existsSync(directory)) return directory;
  say(`making a chain of ${size.outputs} outputs and ${size.cuts} cuts in ${directory}; once, for a few minutes`);
  mkdirSync(parent, { recursive: true });
  const building = `${directory}.part`;
  rmSync(building, { recursive: true, force: true });
  const store = await LedgerStore.open(building, { durable: false });
  await fill(store, size);
  await store.close();
  renameSync(building, directory);
  return directory;
}

const UNSIGNED = { round: 0, signatures: [] };

async function fill(store: LedgerStore, size: ChainSize): Promise<void> {
  const genesis = benchGenesis();
  const certify = certifyWith(developmentKeys(1));
  let cut = genesisCut(genesis, store.tries);
  await store.commit(cut, UNSIGNED, [addressIndex], encodeGenesis(genesis));
  const { chainId } = cut.effects;
  let spends = genesisOutpoint(chainId, genesis.outputs.length - 1);
  let amount = (genesis.outputs.at(-1) as { amount: bigint }).amount;
  let made = 0;
  for (let height = 1; height <= size.cuts; height++) {
    const { state } = cut;
    const view: LedgerView = {
      state,
      cutId: cut.effects.cutId,
      networkId: 4,
      ...store.sets(state),
      output: (outpoint) => findOutput(store.outputTrie, state.outputs, outpoint),
      spender: () => undefined,
      isExecuted: () => false,
      publicKey: (address) => store.publicKey(address),
      isRegistered: () => false,
    };
    const blocks: (WorkBlock & { hash: Bytes })[] = [];
    if (made < size.outputs) {
      const transactions: ReadTransaction[] = [];
      for (let i = 0; i < TRANSACTIONS_PER_CUT && made < size.outputs; i++, made += PER_TRANSACTION) {
        const next = transactionOf(chainId, spends, amount, made, size.addresses);
        transactions.push(next.transaction);
        spends = { transactionId: next.transaction.id, outputIndex: PER_TRANSACTION };
        amount = next.change;
      }
      const anchor = {
        height: height - 1,
        cutId: cut.effects.cutId,
        stateRoot: cut.effects.header.stateRoot,
        timestampMillis: state.timestampMillis,
        target: cut.effects.nextTarget,
      };
      const { block, record } = blockOf(anchor, transactions);
      await store.addWaiting(record, NO_BODY, block.hash);
      blocks.push(block);
    }
    const input = { timestampMillis: BENCH_START + height * 2_500, signers: 1n, blocks, expired: [], lost: () => [] };
    cut = applyCut(view, input, () => 'valid');
    const failed = cut.effects.transactions.find((transaction) => transaction.outcome !== 'executed');
    if (failed !== undefined) throw new Error(`a payment of the benchmark failed: ${JSON.stringify(failed.outcome)}`);
    // Only the last one is looked at when the store is opened.
    const certificate =
      height < size.cuts ? UNSIGNED : await certify(certifiable(cut.state, state.stake.committee, cut.effects.cutId));
    await store.commit(cut, certificate, [addressIndex]);
  }
}
