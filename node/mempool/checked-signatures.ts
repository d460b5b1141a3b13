/**
 * Results of signature checks, valid and false, by key, message and signature: whoever executes a cut again, in another
 * round or from other blocks, checks nothing twice. A false signature is remembered as well: a block that carries some
 * is paid like any other, and every execution of it would check them again.
 */
import { createHash } from 'node:crypto';
import type { SignatureCheck } from '../../protocol/transactions/witness-check.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { verifyMessage } from '../ml-dsa.ts';

/** Fifty cuts at the limit of ledger rule 43, in about 8 MB. */
const REMEMBERED = 65_536;

/** Checks in other threads. `known`: the result, if it is known by the time that the check would begin. */
export interface ChecksAside {
  /** Before all that others wait for. */
  readonly isFirst?: boolean;
  verify(check: SignatureCheck, known: () => boolean | undefined): Promise<boolean>;
}

export class CheckedSignatures {
  readonly #results = new BoundedMap<string, boolean>(REMEMBERED);
  readonly #running = new Map<string, { readonly verdict: Promise<boolean>; readonly isFirst: boolean }>();
  readonly #verify: typeof verifyMessage;

  constructor(verify = verifyMessage) {
    this.#verify = verify;
  }

  /** On this thread, unless the result is known. */
  readonly isValid = (check: SignatureCheck): boolean => {
    const name = nameOfCheck(check);
    return this.#results.use(name) ?? this.#keep(name, this.#verify(check.publicKey, check.message, check.signature));
  };

  /** Whether all are valid. A check that is under way is shared. */
  async areValid(checks: readonly SignatureCheck[], aside: ChecksAside): Promise<boolean> {
    const verdicts = await Promise.all(checks.map((check) => this.#aside(check, aside)));
    return verdicts.every((valid) => valid);
  }

  #aside(check: SignatureCheck, aside: ChecksAside): Promise<boolean> | boolean {
    const name = nameOfCheck(check);
    const known = this.#results.use(name);
    if (known !== undefined) return known;
    const isFirst = aside.isFirst === true;
    const before = this.#running.get(name);
    // One that waits behind others is begun anew; when its turn comes the result is there.
    if (before !== undefined && (before.isFirst || !isFirst)) return before.verdict;
    const verdict = aside
      .verify(check, () => this.#results.get(name))
      .then((valid) => this.#keep(name, valid))
      .finally(() => this.#running.get(name) === running && this.#running.delete(name));
    const running = { verdict, isFirst };
    this.#running.set(name, running);
    return verdict;
  }

  #keep(name: string, valid: boolean): boolean {
    this.#results.set(name, valid);
    return valid;
  }
}

/** All three have a fixed length, so no two checks have the same bytes. */
const nameOfCheck = ({ publicKey, message, signature }: SignatureCheck): string =>
  createHash('sha256').update(publicKey).update(message).update(signature).digest('binary');
