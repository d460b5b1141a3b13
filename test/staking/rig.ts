/**
 * The bare ledger with operations by hand: every cut is one block of transactions that need no signatures, so that thousands of epochs fit into a
 * test. All payments come from one purse, whose outputs the rig keeps track of.
 */
import type { CutEffects } from '../../node/ledger/effects.ts';
import type { ReadTransaction, WorkBlock } from '../../node/ledger/work-block.ts';
import { keyAddressPayload } from '../../protocol/address.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { id } from '../../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { GENESIS_SUPPLY } from '../../protocol/ledger/emission.ts';
import { type Genesis, genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { encodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { bondedBy, type StakingOperation } from '../../protocol/staking/operation.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import { MemoryLedger } from '../node/memory-ledger.ts';

export const COIN = 100_000_000n;
export const FEE = 2_000n;
const GENESIS_MILLIS = 1_800_000_000_000;

/** Bytes that look like a key; nothing is signed with them. */
export function keyOf(name: string): Uint8Array<ArrayBuffer> {
  const key = new Uint8Array(PUBLIC_KEY_BYTES);
  key.set(id('TEST_KEY', utf8(name)));
  return key;
}
export const addressOf = (name: string): Uint8Array<ArrayBuffer> => keyAddressPayload(keyOf(`address ${name}`));
export const endpointOf = (name: string): Uint8Array<ArrayBuffer> =>
  encodeEndpoint({ overlayKey: id('TEST_OVERLAY', utf8(name)).slice(0, 32), routes: [] });
export const NO_SIGNATURE = new Uint8Array(SIGNATURE_BYTES);
export const PURSE = addressOf('purse');
export const MINER = addressOf('miner');

export type RigValidator = { readonly name: string; readonly amount: bigint; readonly commission?: number };

export function genesisOf(intervalCuts: number, validators: readonly RigValidator[], purses = 40): Genesis {
  let left = GENESIS_SUPPLY;
  for (const { amount } of validators) left -= amount;
  const part = left / BigInt(purses);
  return {
    network: 'development',
    timestampMillis: GENESIS_MILLIS,
    powEpochLength: 1_000_000_000,
    initialWork: 1n,
    minimumWork: 1n,
    intervalCuts,
    validators: validators.map(({ name, amount, commission = 0 }) => ({
      publicKey: keyOf(name),
      principal: amount,
      owner: addressOf(name),
      rewardAddress: addressOf(`${name} rewards`),
      commission,
      endpoint: endpointOf(name),
    })),
    outputs: Array.from({ length: purses }, (_, i) => ({
      address: PURSE,
      amount: i === 0 ? left - part * BigInt(purses - 1) : part,
    })),
  };
}

type Spendable = { readonly outpoint: Outpoint; readonly amount: bigint };

export class Rig {
  readonly ledger: MemoryLedger;
  readonly genesis: Genesis;
  readonly #purse: Spendable[] = [];
  readonly #spends = new Map<string, readonly Spendable[]>();
  #counter = 0;

  constructor(genesis: Genesis) {
    this.genesis = genesis;
    this.ledger = new MemoryLedger(genesis);
    for (const [i, { amount }] of genesis.outputs.entries())
      this.#purse.push({ outpoint: genesisOutpoint(this.ledger.state.chainId, i), amount });
  }

  get height(): number {
    return this.ledger.state.height;
  }

  get epoch(): number {
    return Math.floor((this.height + 1) / this.genesis.intervalCuts);
  }

  /** Undefined when eight outputs of the purse cannot pay for it. */
  transaction(operation?: StakingOperation): ReadTransaction | undefined {
    const needed = bondedBy(operation) + FEE;
    const spends: Spendable[] = [];
    let held = 0n;
    while (held <= needed && spends.length < 8 && this.#purse.length > 0) {
      const richest = this.#purse.reduce((most, each) => (each.amount > most.amount ? each : most));
      this.#purse.splice(this.#purse.indexOf(richest), 1);
      spends.push(richest);
      held += richest.amount;
    }
    if (held <= needed) {
      this.#purse.push(...spends);
      return undefined;
    }
    const transactionId = id('TEST_TX', utf8(`${this.#counter++}`));
    const name = Buffer.from(transactionId).toString('latin1');
    const outputs = [{ address: PURSE, amount: held - needed }];
    this.#spends.set(name, spends);
    return {
      id: transactionId,
      name,
      wire: new Uint8Array(100),
      bodyBytes: new Uint8Array(0),
      leaf: transactionId,
      leafName: name,
      mass: 200,
      signatures: 0,
      body: {
        chainId: this.ledger.state.chainId,
        validFromHeight: 0,
        validUntilHeight: Number.MAX_SAFE_INTEGER,
        inputs: spends.map(({ outpoint }) => outpoint),
        outputs,
        payload: new Uint8Array(0),
      },
      witnesses: [],
      ...(operation && { operation }),
    };
  }

  next(transactions: readonly ReadTransaction[], signers: bigint): CutEffects {
    const { state } = this.ledger;
    const effects = this.ledger.next({
      signers,
      blocks: transactions.length === 0 ? [] : [blockOf(state.height, transactions)],
    });
    // A transaction that failed has not spent anything.
    for (const transaction of effects.transactions)
      if (transaction.outcome === 'failed')
        this.#purse.push(...(this.#spends.get(Buffer.from(transaction.id).toString('latin1')) ?? []));
    // Nothing is signed here: whatever comes to anybody but the miner can be bonded again.
    for (const { outpoint, amount, source } of effects.created)
      if (source !== 'work_reward') this.#purse.push({ outpoint, amount });
    this.#spends.clear();
    return effects;
  }
}

function blockOf(anchorHeight: number, transactions: readonly ReadTransaction[]): WorkBlock & { hash: Uint8Array } {
  const name = id('TEST_BLOCK', utf8(`${anchorHeight}`));
  return {
    id: name,
    hash: new Uint8Array(32),
    bodyId: name,
    header: { anchorHeight } as WorkBlock['header'],
    headerBytes: new Uint8Array(312),
    body: { payout: MINER, extranonce: new Uint8Array(1), parents: [], transactions: [] },
    bodyBytes: new Uint8Array(0),
    work: 4n,
    transactions,
    signatures: 0,
  };
}
