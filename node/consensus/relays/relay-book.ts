/** Known records of validators without an open port: one for each validator that the chain lists now. */
import type { Bytes } from '../../../protocol/bytes.ts';
import { Buckets } from '../../../runtime/clients/buckets.ts';
import type { LedgerClock, SteadyClock } from '../../../runtime/clock/clock.ts';
import { nameOf } from '../../ledger/registration.ts';
import { RECORD } from './relay-limits.ts';
import { decodeRecord, isSigned, judgeRecord, type RecordVerdict, type SignedRecord } from './relay-record.ts';

export type BookDependencies = {
  readonly chainId: Bytes;
  /** Milliseconds since 1970. */
  readonly now: LedgerClock;
  readonly steady: SteadyClock;
};

export type BookVerdict = RecordVerdict | 'unknown_validator' | 'too_often';

export class RelayBook {
  readonly #with: BookDependencies;
  /** Overlay keys by validator. */
  #keys: ReadonlyMap<string, readonly Bytes[]> = new Map();
  readonly #records = new Map<string, SignedRecord>();
  readonly #taken = new Buckets(RECORD.ofOne);

  constructor(dependencies: BookDependencies) {
    this.#with = dependencies;
  }

  /** Sets the validators whose records are accepted. Records of others, and of replaced keys, are dropped. */
  know(overlayKeys: ReadonlyMap<string, readonly Bytes[]>): void {
    const before = this.#keys;
    this.#keys = overlayKeys;
    for (const name of this.#taken.keys()) if (!overlayKeys.has(name)) this.#taken.delete(name);
    for (const [name, signed] of this.#records) {
      const keys = overlayKeys.get(name) ?? [];
      const isSame = String(keys) === String(before.get(name));
      if (!isSame && !keys.some((overlayKey) => isSigned(signed, overlayKey))) this.#records.delete(name);
    }
  }

  /**
   * 'take' if it is new: it is stored, and should be forwarded. Throws a ProtocolError if it is malformed. `mayCheck`:
   * whether a signature may be checked for its sender.
   */
  take(bytes: Bytes, mayCheck: () => boolean = () => true): BookVerdict {
    this.#expire();
    const signed = decodeRecord(bytes);
    const name = nameOf(signed.record.validator);
    const overlayKeys = this.#keys.get(name);
    if (overlayKeys === undefined) return 'unknown_validator';
    const { chainId, now, steady } = this.#with;
    const held = this.#records.get(name)?.record;
    if (held !== undefined && signed.record.sequence <= held.sequence) return 'not_newer';
    if (!mayCheck()) return 'too_often';
    const verdict = judgeRecord(signed, held, { chainId, now: now(), overlayKeys });
    if (verdict !== 'take') return verdict;
    // Charged after the signature check, so that nobody else can use up a validator's limit.
    if (!this.#taken.take(name, steady())) return 'too_often';
    this.#records.set(name, signed);
    return 'take';
  }

  /** The relays of this validator; none without a currently valid record. */
  relaysOf(name: string): readonly Bytes[] {
    this.#expire();
    return this.#records.get(name)?.record.relays ?? [];
  }

  /** Currently valid records. */
  all(): readonly Bytes[] {
    this.#expire();
    return [...this.#records.values()].map(({ bytes }) => bytes);
  }

  #expire(): void {
    const now = BigInt(this.#with.now());
    for (const [name, { record }] of this.#records) if (record.expiry <= now) this.#records.delete(name);
  }
}
