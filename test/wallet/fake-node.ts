/**
 * A chain in memory with the calls a wallet makes, for tests of one process: cuts are made by hand, and every call can be
 * made to fail. Tests of the whole use a real node (end-to-end.long.test.ts).
 */
import { formatAddress, keyAddressPayload, parseAddress } from '../../protocol/address.ts';
import type { ChangeDocument } from '../../protocol/api/address-documents.ts';
import { ApiError } from '../../protocol/api/client.ts';
import type { Manifest, TransactionDocument } from '../../protocol/api/transaction-documents.ts';
import { fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { massOf, minimumFee, shapeOf } from '../../protocol/transactions/fee.ts';
import {
  decodeTransaction,
  encodeTransactionBody,
  spendMessage,
  type Transaction,
  transactionId,
} from '../../protocol/transactions/transaction.ts';
import { shapeOfWitness } from '../../protocol/transactions/witness.ts';
import type { NodeClient } from '../../wallet/chain/node-link.ts';
import { verifySignature } from '../../wallet/keys/signing.ts';
import { outpointOf, outputKey } from '../../wallet/state/records.ts';
import { outpointDocument, outputProofs, utxoDocument } from './fake-proof.ts';
import { quietChain } from './fake-staking.ts';

type FakeOutput = { address: string; amount: bigint; source: ChangeDocument['source']; height: number };
type Cut = { changes: ChangeDocument[]; transactions: TransactionDocument[] };

const NETWORK = 'development';
const hash = (text: string): string => toHex(id('TEST', utf8(text)));

/** What happens to the next submissions: `lost` takes the transaction and loses the answer, `away` loses both. */
export type Fault = 'none' | 'lost' | 'away' | 'refuse' | 'busy';

export class FakeNode {
  readonly chainId: string;
  height = 1;
  fault: Fault = 'none';
  /** Every call fails as if nothing listened. */
  down = false;
  synced = true;
  /** Cuts by which the address index is behind the head. */
  indexLag = 0;
  minFeePerMass = 10n;
  submissions = 0;
  readonly mempool = new Map<string, Transaction>();
  readonly outputs = new Map<string, FakeOutput>();
  readonly registered = new Map<string, number>();
  readonly cuts: Cut[] = [
    { changes: [], transactions: [] },
    { changes: [], transactions: [] },
  ];
  #paid = 0;
  readonly #final = new Map<string, number>();

  constructor(chain = 'test') {
    this.chainId = toHex(id(LABELS.chain, utf8(chain)));
  }

  /** Outputs that come out of nowhere with the next cut, as rewards do. */
  reward(address: string, amount: bigint, source: ChangeDocument['source'] = 'work_reward'): void {
    this.#pending.push({ address, amount, source });
  }
  readonly #pending: { address: string; amount: bigint; source: ChangeDocument['source'] }[] = [];

  /** Makes the next cut; `only` leaves the other transactions where they are. */
  seal(only: (transaction: string) => boolean = () => true): number {
    const height = ++this.height;
    const cut: Cut = { changes: [], transactions: [] };
    this.cuts[height] = cut;
    for (const { address, amount, source } of this.#pending.splice(0)) {
      const transaction = hash(`reward ${this.#paid++}`);
      this.#make(cut, height, transaction, 0, { address, amount, source, height });
    }
    for (const [name, transaction] of [...this.mempool]) {
      if (!only(name)) continue;
      this.mempool.delete(name);
      const refusal = this.#check(transaction);
      if (refusal === undefined && height <= transaction.body.validUntilHeight)
        this.#execute(cut, height, name, transaction);
    }
    return height;
  }

  skip(cuts: number): void {
    for (let i = 0; i < cuts; i++) this.seal(() => false);
  }

  balanceOf(address: string): bigint {
    let total = 0n;
    for (const output of this.outputs.values()) if (output.address === address) total += output.amount;
    return total;
  }

  /** Spends an output behind the wallet's back, as another wallet with the same words would. */
  steal(key: string): void {
    const output = this.outputs.get(key) as FakeOutput;
    const cut: Cut = { changes: [], transactions: [] };
    this.cuts[++this.height] = cut;
    this.outputs.delete(key);
    cut.changes.push({
      finalized_height: this.height,
      address: output.address,
      kind: 'spent',
      outpoint: outpointDocument(key),
      amount: output.amount.toString(),
      source: output.source,
      transaction_id: hash(`thief ${key}`),
    });
  }

  #make(cut: Cut, height: number, transaction: string, index: number, output: FakeOutput): void {
    this.outputs.set(outputKey(transaction, index), output);
    cut.changes.push({
      finalized_height: height,
      address: output.address,
      kind: 'received',
      outpoint: { transaction_id: transaction, output_index: index },
      amount: output.amount.toString(),
      source: output.source,
      transaction_id: transaction,
    });
  }

  #spentBy({ body }: Transaction): { key: string; output: FakeOutput | undefined }[] {
    return body.inputs.map((input) => {
      const key = outputKey(toHex(input.transactionId), input.outputIndex);
      return { key, output: this.outputs.get(key) };
    });
  }

  #check(transaction: Transaction): string | undefined {
    const { body, witnesses } = transaction;
    if (toHex(body.chainId) !== this.chainId) return 'wrong_chain';
    let left = 0n;
    for (const [i, { output }] of this.#spentBy(transaction).entries()) {
      if (output === undefined) return 'conflict';
      left += output.amount;
      const witness = witnesses[i];
      const spent = { address: parseAddress(output.address).payload, amount: output.amount };
      if (witness?.profile === 'referenced' && !this.registered.has(output.address)) return 'key_not_registered';
      if (witness?.profile === 'inline') {
        if (formatAddress(keyAddressPayload(witness.publicKey), NETWORK) !== output.address) return 'wrong_key';
        if (!verifySignature(witness.publicKey, spendMessage(encodeTransactionBody(body), i, spent), witness.signature))
          return 'bad_signature';
      }
    }
    for (const { amount } of body.outputs) left -= amount;
    const mass = massOf(shapeOf(body, witnesses.map(shapeOfWitness)));
    if (left < minimumFee(mass, this.minFeePerMass)) return 'fee_too_low';
    return undefined;
  }

  #execute(cut: Cut, height: number, name: string, transaction: Transaction): void {
    const spent = this.#spentBy(transaction) as { key: string; output: FakeOutput }[];
    const { body } = transaction;
    for (const [i, { key, output }] of spent.entries()) {
      this.outputs.delete(key);
      if (transaction.witnesses[i]?.profile === 'inline') this.registered.set(output.address, height);
      const input = body.inputs[i] as (typeof body.inputs)[number];
      cut.changes.push({
        finalized_height: height,
        address: output.address,
        kind: 'spent',
        outpoint: { transaction_id: toHex(input.transactionId), output_index: input.outputIndex },
        amount: output.amount.toString(),
        source: output.source,
        transaction_id: name,
      });
    }
    const made = body.outputs.map(({ address, amount }) => ({ address: formatAddress(address, NETWORK), amount }));
    for (const [index, { address, amount }] of made.entries())
      this.#make(cut, height, name, index, { address, amount, source: 'regular', height });
    const held = spent.reduce((total, { output }) => total + output.amount, 0n);
    const paid = made.reduce((total, { amount }) => total + amount, 0n);
    cut.transactions.push({
      transaction_id: name,
      block_id: hash(`block ${height}`),
      finalized_height: height,
      outcome: 'finalized',
      fee: (held - paid).toString(),
      mass: 0,
      valid_from_height: body.validFromHeight,
      valid_until_height: body.validUntilHeight,
      inputs: spent.map(({ key, output }) => {
        const [transaction_id = '', index] = key.split(':');
        return {
          outpoint: { transaction_id, output_index: Number(index) },
          address: output.address,
          amount: output.amount.toString(),
        };
      }),
      outputs: made.map(({ address, amount }, output_index) => ({ output_index, address, amount: amount.toString() })),
      payload_hex: toHex(body.payload),
    });
    this.#final.set(name, height);
  }

  #answer<T>(value: T): Promise<T> {
    if (this.down) return Promise.reject(new ApiError('client_unreachable', 0, 'no answer'));
    return Promise.resolve(value);
  }

  readonly #cutOf = (height: number) => ({
    height,
    cut_id: this.#cutId(height),
    state_root: hash('state'),
    validator_set_id: hash('validators'),
  });

  #submit(wire: Uint8Array) {
    this.submissions++;
    const transaction = decodeTransaction(wire, fromHex(this.chainId));
    const name = toHex(transactionId(transaction.body));
    const error = (code: string, status: number, reason?: string) =>
      Promise.reject(
        new ApiError(code, status, code, { code, message: code, ...(reason === undefined ? {} : { reason }) }),
      );
    if (this.down || this.fault === 'away') return error('client_outcome_unknown', 0);
    if (this.fault === 'busy') return error('too_busy', 503);
    if (this.fault === 'refuse') return error('transaction_refused', 422, 'test_refusal');
    const known = this.mempool.has(name) || this.#final.has(name);
    if (!known) {
      const refusal = this.#check(transaction);
      if (refusal !== undefined) return error('transaction_refused', 422, refusal);
      const wanted = new Set(this.#spentBy(transaction).map(({ key }) => key));
      for (const other of this.mempool.values())
        if (this.#spentBy(other).some(({ key }) => wanted.has(key)))
          return error('transaction_refused', 422, 'conflict');
      this.mempool.set(name, transaction);
    }
    if (this.fault === 'lost') return error('client_outcome_unknown', 0);
    return Promise.resolve({
      api_version: 1 as const,
      transaction_id: name,
      status: known ? ('known' as const) : ('accepted' as const),
      lifecycle: 'processing' as const,
    });
  }

  /** Goes back to a height and on from there as another chain: what was above it is gone. */
  rollBack(height: number): void {
    const gone = this.cuts.splice(height + 1).flatMap(({ changes }) => changes);
    for (const { kind, outpoint, address, amount, source } of gone.reverse()) {
      const key = outputKey(outpoint.transaction_id, outpoint.output_index);
      if (kind === 'received') this.outputs.delete(key);
      // The height that made it is of no interest to any test.
      else this.outputs.set(key, { address, amount: BigInt(amount), source, height: 1 });
    }
    for (const table of [this.registered, this.#final])
      for (const [name, at] of table) if (at > height) table.delete(name);
    this.mempool.clear();
    this.height = height;
    this.#forkedAbove.push(height);
  }
  readonly #forkedAbove: number[] = [];

  /** The cut of a height is another one after each rollback below it. */
  #cutId(height: number): string {
    return hash(`cut ${height} of fork ${this.#forkedAbove.filter((above) => above < height).length}`);
  }

  readonly client: NodeClient = {
    ...quietChain(() => this.height),
    cuts: ({ before = Number.MAX_SAFE_INTEGER, limit = 20 } = {}) => {
      const newest = Math.min(this.height, before - 1);
      const heights = Array.from({ length: Math.min(limit, newest) }, (_, i) => newest - i);
      return this.#answer({
        api_version: 1,
        finalized_height: this.height,
        cuts: heights.map((height) => ({
          ...this.#cutOf(height),
          previous_id: this.#cutId(height - 1),
          finalized_at_millis: height,
          registered_work: 0,
          executed_work: 0,
          transactions: 0,
          subsidy: '0',
          fees: '0',
          target: 'ff'.repeat(32),
        })),
      });
    },
    nodeSync: () =>
      this.#answer({
        api_version: 1,
        synced: this.synced,
        finalized_height: this.height,
        best_peer_height: null,
        behind_by: this.synced ? 0 : 7,
        peers: 0,
      }),
    manifest: () =>
      this.#answer<Manifest>({
        api_version: 1,
        network: NETWORK,
        chain_id: this.chainId,
        protocol_version: 1,
        rule_set: 1,
        finalized_height: this.height,
        min_fee_per_mass: this.minFeePerMass.toString(),
        mass_per_output: 256,
        max_inputs: 8,
        max_outputs: 8,
        max_transaction_bytes: 65536,
        max_payload_bytes: 2048,
      }),
    addressChanges: ({ addresses, after_height, limit = 1024, cursor }) => {
      const wanted = new Set(addresses);
      const indexed = this.height - this.indexLag;
      const all = this.cuts
        .slice(after_height + 1, indexed + 1)
        .flatMap((cut) => cut.changes.filter(({ address }) => wanted.has(address)));
      const from = cursor === undefined ? 0 : Number.parseInt(cursor, 16);
      return this.#answer({
        api_version: 1,
        after_height,
        finalized_height: this.height,
        indexed_height: indexed,
        changes: all.slice(from, from + limit),
        ...(all.length > from + limit ? { next_cursor: (from + limit).toString(16) } : {}),
      });
    },
    addressesUtxos: ({ addresses }) => {
      const wanted = new Set(addresses);
      const utxos = [...this.outputs]
        .filter(([, { address, height }]) => wanted.has(address) && height === 0)
        .map(([key, output]) => utxoDocument(key, output));
      return this.#answer({ api_version: 1, finalized_height: this.height, indexed_height: this.height, utxos });
    },
    utxoProofs: ({ outpoints }) =>
      this.#answer(outputProofs(this.outputs, outpoints, { height: this.height, cut: this.#cutOf(this.height) })),
    cutChanges: ({ height }) =>
      this.#answer({
        api_version: 1,
        finalized_height: this.height,
        cut: this.#cutOf(height),
        changes: this.cuts[height]?.changes ?? [],
      }),
    cutTransactions: ({ height }) =>
      this.#answer({
        api_version: 1,
        finalized_height: this.height,
        cut: this.#cutOf(height),
        transactions: this.cuts[height]?.transactions ?? [],
      }),
    registeredKeys: ({ addresses }) =>
      this.#answer({
        api_version: 1,
        finalized_height: this.height,
        keys: addresses.map((address) => ({
          address,
          registered: this.registered.has(address),
          registered_height: this.registered.get(address) ?? null,
        })),
      }),
    mempoolPending: ({ addresses }) => {
      const wanted = new Set(addresses);
      const pending = [...this.mempool].flatMap(([name, transaction]) => {
        const one = { transaction_id: name, lifecycle: 'processing' as const, first_seen_millis: 1 };
        const made = transaction.body.outputs.map(({ address, amount }, output_index) => ({
          ...one,
          address: formatAddress(address, NETWORK),
          direction: 'incoming' as const,
          outpoint: { transaction_id: name, output_index },
          amount: amount.toString(),
        }));
        const spent = this.#spentBy(transaction).map(({ key, output }) => ({
          ...one,
          address: output?.address ?? '',
          direction: 'outgoing' as const,
          outpoint: { transaction_id: outpointOf(key).transaction, output_index: outpointOf(key).output },
          amount: String(output?.amount ?? 0n),
        }));
        return [...made, ...spent].filter(({ address }) => wanted.has(address));
      });
      return this.#answer({ api_version: 1, finalized_height: this.height, pending });
    },
    transactionStatuses: ({ transaction_ids }) => {
      const known = transaction_ids.filter((name) => this.mempool.has(name) || this.#final.has(name));
      return this.#answer({
        api_version: 1,
        finalized_height: this.height,
        statuses: known.map((transaction_id) => ({
          api_version: 1 as const,
          transaction_id,
          lifecycle: this.mempool.has(transaction_id) ? ('processing' as const) : ('finalized' as const),
          observed_work: null,
          registered_cut: null,
          finalized_cut: null,
          failure: null,
        })),
        unknown: transaction_ids.filter((name) => !known.includes(name)),
      });
    },
    submitTransaction: (wire) => this.#submit(Uint8Array.from(wire)),
  };
}
