/**
 * Credit lists that a miner has judged, each with its identifier. A list is made once (books rule 7): a pool that later
 * shows another one for the same slice has shown one of the two only to this miner, or its database was replaced by an
 * older copy.
 */
import type { BooksService } from '../../protocol/books/books-slice.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import {
  LIST_EVIDENCE_FORMAT,
  type ListEvidence,
  type ListHead,
  listHead,
} from '../../protocol/evidence/list-evidence.ts';
import type { Suspicions } from './suspicions.ts';

const MAX_KEPT = 256;
/** Characters of all heads that are kept for evidence, the newest lists first: a page has little room. */
const HEADS_CHARS = 200_000;
const HASH = /^[0-9a-f]{96}$/;

/** `list_id` identifies the whole contents of a list; the page of slices shows only the root of its credits. */
export type ListName = Pick<PoolProof, 'list_id' | 'credit_root'>;

type Alarm = (
  kind: 'list_changed',
  what: string,
  fields: Readonly<Record<string, unknown>>,
  evidence: ListEvidence,
) => void;

export class JudgedLists {
  /** By `service/slice`; null for lists that existed before the first round and were not checked. */
  readonly #lists = new Map<string, ListName | null>();

  /** By `service/slice`: the whole head of the newest lists, as text. */
  readonly #heads = new Map<string, string>();

  readonly #suspicions: Suspicions;
  readonly #alarm: Alarm;

  constructor(suspicions: Suspicions, alarm: Alarm) {
    this.#suspicions = suspicions;
    this.#alarm = alarm;
  }

  has(name: string): boolean {
    return this.#lists.has(name);
  }

  /** `document` is the proof that was judged. */
  add(name: string, list: ListName | null, document?: PoolProof): void {
    const isNamed = HASH.test(String(list?.list_id)) && HASH.test(String(list?.credit_root));
    this.#lists.set(name, isNamed && list !== null ? { list_id: list.list_id, credit_root: list.credit_root } : null);
    for (const oldest of this.#lists.keys())
      if (this.#lists.size > MAX_KEPT) this.#lists.delete(oldest);
      else break;
    if (isNamed && document !== undefined) this.#keepHead(name, JSON.stringify(listHead(document)));
  }

  #keepHead(name: string, text: string): void {
    if (text.length > HEADS_CHARS) return;
    this.#heads.delete(name);
    this.#heads.set(name, text);
    let chars = [...this.#heads.values()].reduce((sum, each) => sum + each.length, 0);
    for (const [oldest, head] of this.#heads) {
      if (chars <= HEADS_CHARS) return;
      this.#heads.delete(oldest);
      chars -= head.length;
    }
  }

  /**
   * Compares what the pool shows of a list. A list that differs from the judged one is a suspicion: after its database
   * was replaced by an older copy, an honest pool may make a list again, with a finder that it did not know before.
   */
  shown(service: BooksService, slice: number, list: Partial<ListName>, document?: PoolProof): void {
    const name = `${service}/${slice}`;
    const known = this.#lists.get(name) ?? undefined;
    const isOther =
      known !== undefined &&
      ((list.list_id ?? known.list_id) !== known.list_id ||
        (list.credit_root ?? known.credit_root) !== known.credit_root);
    const what = `${list.list_id === undefined ? 'shown' : 'given'} ${name}`;
    if (!this.#suspicions.isSure(what, isOther) || !isOther) return;
    const head = this.#heads.get(name);
    const evidence: ListEvidence = {
      format: LIST_EVIDENCE_FORMAT,
      service,
      slice,
      before: { ...known, head: head === undefined ? null : (JSON.parse(head) as ListHead) },
      now: shownAs(list, known, document),
    };
    this.add(name, null);
    this.#heads.delete(name);
    this.#alarm('list_changed', name, { service, slice, before: known, now: list }, evidence);
  }

  save(): { readonly judged: unknown; readonly heads: unknown } {
    const names = [...this.#lists];
    return {
      judged: names.map(([name, list]) => (list === null ? name : [name, list.list_id, list.credit_root])),
      heads: [...this.#heads],
    };
  }

  /** Malformed entries are ignored. */
  restore(saved: readonly unknown[], heads?: unknown): void {
    for (const each of saved) {
      const [name, list_id, credit_root] = Array.isArray(each) ? each : [each];
      if (typeof name === 'string') this.add(name, { list_id, credit_root } as ListName);
    }
    for (const each of Array.isArray(heads) ? heads : [])
      if (typeof each?.[0] === 'string' && typeof each[1] === 'string') this.#keepHead(each[0], each[1]);
  }
}

/** A malformed document is identified only by its own fields. */
function shownAs(list: Partial<ListName>, known: ListName, document: PoolProof | undefined): ListEvidence['now'] {
  const [list_id, credit_root] = [list.list_id ?? null, list.credit_root ?? known.credit_root];
  try {
    return { list_id, credit_root, head: document === undefined ? null : listHead(document) };
  } catch {
    return { list_id, credit_root, head: null };
  }
}
