/**
 * The durable step of every payment (docs/wallet.md, Payments 1): reserve the outputs, sign, write request, signed
 * transactions and reservations as one, and only then send.
 */
import { fromHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { WallClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Keyring } from '../keys/keyring.ts';
import type { Book } from '../state/book.ts';
import type { Journal } from '../state/journal.ts';
import {
  type MergeProgress,
  type OperationRecord,
  type OutgoingRecord,
  outputKey,
  type RequestRecord,
} from '../state/records.ts';
import type { Answers } from './answers.ts';
import { type Draft, type Signed, signDraft } from './build.ts';
import type { Submitter } from './submitter.ts';

export type CommitmentDependencies = {
  readonly book: Book;
  readonly journal: Journal;
  readonly keyring: Keyring;
  readonly submitter: Submitter;
  readonly answers: Answers;
  readonly network: NetworkName;
  readonly log: Logger;
  readonly now: WallClock;
};

export class Commitment {
  /** Requests with `compound_first` whose payment is still to come, as they were last written. */
  readonly merging = new Map<string, RequestRecord>();
  readonly #with: CommitmentDependencies;

  constructor(dependencies: CommitmentDependencies) {
    this.#with = dependencies;
  }

  /** What no other one holds: of those that were rolled back, several may spend one output. */
  reserve({ transaction, requestId, purpose, inputs }: OutgoingRecord): void {
    const { book } = this.#with;
    // The output of a merge belongs to its request from the moment it exists, for as long as the request merges.
    const made = purpose === 'merge' && this.merging.has(requestId) ? [outputKey(transaction, 0)] : [];
    book.reserve(
      [...inputs, ...made].filter((key) => book.holderOf(key) === undefined),
      requestId,
    );
  }

  /** There must be no await between choosing outputs and this call. */
  async commit(
    request: RequestRecord,
    drafts: readonly Draft[],
    purpose: OutgoingRecord['purpose'],
    merge: Omit<MergeProgress, 'round'> | null = null,
  ): Promise<void> {
    const { book, journal, submitter, answers, log } = this.#with;
    const { requestId } = request;
    const inputs = drafts.flatMap((draft) => draft.inputs.map(({ key }) => key));
    book.reserve([...inputs, ...(merge?.held ?? [])], requestId);
    let records: readonly OutgoingRecord[];
    try {
      const signed = await this.#sign(drafts);
      records = drafts.map((draft, i) => this.#recordOf(draft, signed[i] as Signed, requestId, purpose));
    } catch (error) {
      if (!this.merging.has(requestId)) book.release([...inputs, ...(merge?.held ?? [])]);
      throw error;
    }
    const fee = records.reduce((total, record) => total + record.fee, request.fee);
    const last = drafts.at(-1);
    const names = records.map(({ transaction }) => transaction);
    const written: RequestRecord = {
      ...request,
      fee,
      transactions: [...request.transactions, ...names],
      recipients: purpose === 'pay' && drafts.length === 1 && last !== undefined ? last.recipients : request.recipients,
      state: purpose === 'merge' ? 'merging' : 'sent',
      merge: merge === null ? null : { ...merge, round: names },
    };
    if (purpose === 'merge') this.merging.set(requestId, written);
    else this.merging.delete(requestId);
    for (const record of records) this.reserve(record);
    await journal.commit({ requests: [written], outgoing: records }, true);
    for (const name of names)
      submitter.send(name, true).then(
        () => answers.changed(),
        (error) => log.error('submission failed', { transaction: name, error }),
      );
  }

  #sign(drafts: readonly Draft[]): Promise<Signed[]> {
    const { book, keyring, network } = this.#with;
    const terms = { network, chainId: fromHex(book.meta.chainId as string) };
    const keyOf = (address: string, operation: OperationRecord | undefined) => {
      const record = book.address(address);
      if (record !== undefined) return keyring.key(record);
      // A consensus key has no address in the book.
      if (operation?.owner === address && operation.keyIndex !== undefined)
        return keyring.key({ branch: 'receive', index: operation.keyIndex });
      throw new Error(`no key for ${address}`);
    };
    return Promise.all(
      drafts.map((draft) => signDraft(draft, terms, (address) => keyOf(address, draft.operation?.record))),
    );
  }

  #recordOf(
    draft: Draft,
    { transaction, wire }: Signed,
    requestId: string,
    purpose: OutgoingRecord['purpose'],
  ): OutgoingRecord {
    const spent = draft.inputs.reduce((total, input) => total + input.amount, 0n);
    const operation = draft.operation?.record;
    const made = draft.recipients.reduce((total, one) => total + one.amount, operation?.bonded ?? 0n);
    return {
      transaction,
      requestId,
      purpose,
      state: 'signed',
      wireHex: Buffer.from(wire.buffer).toString('hex'),
      inputs: draft.inputs.map(({ key }) => key),
      recipients: draft.recipients,
      change: draft.change,
      fee: spent - made - draft.change,
      validUntilHeight: draft.validUntilHeight,
      createdMillis: this.#with.now(),
      finalHeight: null,
      reason: null,
      ...(operation && { operation }),
    };
  }
}
