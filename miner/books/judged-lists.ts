/**
 * Credit lists that a miner is done with, each with what names it. A list is made once (books rule 7): a pool that shows another one of the same slice later has shown one
 * of the two to this miner alone, or its books fell back.
 */
import type { BooksService } from '../../protocol/books-slice.ts';
import type { PoolProof } from '../../protocol/pool-proof.ts';
import type { Suspicions } from './suspicions.ts';

const MAX_KEPT = 256;
const HASH = /^[0-9a-f]{96}$/;

/** `list_id` names everything that is in a list; the page of slices shows the root of its credits alone. */
export type ListName = Pick<PoolProof, 'list_id' | 'credit_root'>;

type Alarm = (kind: 'list_changed', what: string, fields: Readonly<Record<string, unknown>>) => void;

export class JudgedLists {
  /** By `service/slice`; null for lists that were there before the first look, which nobody looked into. */
  readonly #lists = new Map<string, ListName | null>();

  readonly #suspicions: Suspicions;
  readonly #alarm: Alarm;

  constructor(suspicions: Suspicions, alarm: Alarm) {
    this.#suspicions = suspicions;
    this.#alarm = alarm;
  }

  has(name: string): boolean {
    return this.#lists.has(name);
  }

  add(name: string, list: ListName | null): void {
    const isNamed = HASH.test(String(list?.list_id)) && HASH.test(String(list?.credit_root));
    this.#lists.set(name, isNamed && list !== null ? { list_id: list.list_id, credit_root: list.credit_root } : null);
    for (const oldest of this.#lists.keys())
      if (this.#lists.size > MAX_KEPT) this.#lists.delete(oldest);
      else break;
  }

  /**
   * Whatever the pool shows of a list. Another one than was judged is a suspicion: after a fall of its books an honest pool may make a list anew, with a finder that it did
   * not know before.
   */
  shown(service: BooksService, slice: number, list: Partial<ListName>): void {
    const name = `${service}/${slice}`;
    const known = this.#lists.get(name) ?? undefined;
    const isOther =
      known !== undefined &&
      ((list.list_id ?? known.list_id) !== known.list_id ||
        (list.credit_root ?? known.credit_root) !== known.credit_root);
    const what = `${list.list_id === undefined ? 'shown' : 'given'} ${name}`;
    if (!this.#suspicions.isSure(what, isOther) || !isOther) return;
    this.add(name, null);
    this.#alarm('list_changed', name, { service, slice, before: known, now: list });
  }

  save(): unknown {
    return [...this.#lists].map(([name, list]) => (list === null ? name : [name, list.list_id, list.credit_root]));
  }

  /** What it cannot read is ignored. */
  restore(saved: readonly unknown[]): void {
    for (const each of saved) {
      const [name, list_id, credit_root] = Array.isArray(each) ? each : [each];
      if (typeof name === 'string') this.add(name, { list_id, credit_root } as ListName);
    }
  }
}
