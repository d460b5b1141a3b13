/**
 * The credit lists of a pool: which are there and wait to be judged, and which were judged, each with its identifier. A
 * list is made once (books rule 7): a pool that later shows another one for the same slice has shown one of the two only
 * to this miner, or its database was replaced by an older copy.
 */
import type { BooksService } from '../../protocol/books/books-slice.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import {
  LIST_EVIDENCE_FORMAT,
  type ListEvidence,
  type ListHead,
  listHead,
} from '../../protocol/evidence/list-evidence.ts';
import type { Finding } from './books-alarms.ts';

/** Lists that a miner judges in one round, which comes every minute. */
export const LISTS_A_ROUND = 4;
const MAX_KEPT = 256;
/** Characters of all heads that are kept for evidence, the newest lists first: a page has little room. */
const HEADS_CHARS = 200_000;
const HASH = /^[0-9a-f]{96}$/;

/** `list_id` identifies the whole contents of a list; the page of slices shows only the root of its credits. */
export type ListName = Pick<PoolProof, 'list_id' | 'credit_root'>;

/** Lists are named `service/slice`. */
export class CreditLists {
  /** Services whose first page was looked at. */
  readonly #looked = new Set<BooksService>();
  /** Lists that were judged; null for those that existed before the first round and were not checked. */
  readonly #judged = new Map<string, ListName | null>();
  /** The whole head of the newest lists, as text. */
  readonly #heads = new Map<string, string>();
  /** Lists that existed before the first round and still have to be judged, at low priority. */
  readonly #early = new Set<string>();
  readonly #tries = new Map<string, number>();
  /**
   * Lists that are there and were not judged yet, oldest first. Tracked individually: the page of the newest slices soon
   * shows others.
   */
  readonly #awaited = new Set<string>();
  /** Lists whose proofs were not delivered. They are requested until they are, also when newer slices have displaced them. */
  readonly #refused = new Set<string>();

  /** `slices` have lists, by the pool's page of the newest; `due`: the newest that is due by the miner's node. */
  listed(service: BooksService, slices: readonly number[], due: number | undefined): void {
    if (!this.#looked.has(service)) this.#lookFirst(service, slices, due);
    this.#looked.add(service);
    for (const slice of slices.toReversed()) this.await(`${service}/${slice}`);
  }

  /**
   * Of the lists that existed before, only the newest is judged, and all that are not yet due according to the node: a
   * future list must not count as an old one. Without a node only the pool says what is due (`due` is -1): then all are
   * judged. Tracked individually: with a limit by number, one false slice could exclude all others.
   */
  #lookFirst(service: BooksService, slices: readonly number[], due = -1): void {
    for (const [i, slice] of slices.entries()) {
      const name = `${service}/${slice}`;
      if (i > 0 && slice <= due) this.#add(name, null);
      else if (this.await(name) && i > 0) this.#early.add(name);
    }
  }

  /** False if there is no room: the present lists are finished first, and it is reported again (`rewards.ts`). */
  await(name: string): boolean {
    if (this.#judged.has(name) || this.#refused.has(name) || this.#awaited.has(name)) return true;
    if (this.#awaited.size + this.#refused.size >= MAX_KEPT) return false;
    this.#awaited.add(name);
    return true;
  }

  /** Slices to be judged in this round. Those that were refused come last, so that they delay no others. */
  due(service: BooksService): readonly number[] {
    const own = (names: ReadonlySet<string>) =>
      [...names].filter((name) => name.startsWith(`${service}/`)).slice(0, LISTS_A_ROUND);
    return [...own(this.#awaited), ...own(this.#refused)].map((name) => Number(name.split('/')[1]));
  }

  /** Its proof was not delivered: it is requested again, after the others. */
  refuse(name: string): void {
    this.#awaited.delete(name);
    this.#early.delete(name);
    this.#refused.delete(name);
    this.#refused.add(name);
  }

  /** Its proof was delivered: it is kept until it is settled. */
  delivered(name: string): void {
    this.#refused.delete(name);
    this.#awaited.add(name);
  }

  /** How often it could not be judged, with this time. */
  tried(name: string): number {
    const tries = (this.#tries.get(name) ?? 0) + 1;
    this.#tries.set(name, tries);
    return tries;
  }

  /** It was judged, by this document; its head is kept if the list is not false. */
  settle(name: string, document: PoolProof, isFalse: boolean): void {
    this.#tries.delete(name);
    this.#awaited.delete(name);
    this.#early.delete(name);
    this.#add(name, document, isFalse ? undefined : document);
  }

  /** More lists wait than fit into a round. */
  get isBehind(): boolean {
    return [...this.#awaited].filter((name) => !this.#early.has(name)).length > LISTS_A_ROUND;
  }

  #add(name: string, list: ListName | null, document?: PoolProof): void {
    const isNamed = HASH.test(String(list?.list_id)) && HASH.test(String(list?.credit_root));
    this.#judged.set(name, isNamed && list !== null ? { list_id: list.list_id, credit_root: list.credit_root } : null);
    for (const oldest of this.#judged.keys())
      if (this.#judged.size > MAX_KEPT) this.#judged.delete(oldest);
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

  /** Whether what the pool shows of a list differs from the one that was judged. */
  isOther(name: string, list: Partial<ListName>): boolean {
    const known = this.#judged.get(name);
    if (known === undefined || known === null) return false;
    const isSameId = (list.list_id ?? known.list_id) === known.list_id;
    return !isSameId || (list.credit_root ?? known.credit_root) !== known.credit_root;
  }

  /**
   * The finding that a list is another than the one that was judged. It is a suspicion: after its database was replaced by
   * an older copy, an honest pool may make a list again, with a finder that it did not know before.
   */
  changed(service: BooksService, slice: number, list: Partial<ListName>, document?: PoolProof): Finding {
    const name = `${service}/${slice}`;
    const known = this.#judged.get(name) as ListName;
    const head = this.#heads.get(name);
    const evidence: ListEvidence = {
      format: LIST_EVIDENCE_FORMAT,
      service,
      slice,
      before: { ...known, head: head === undefined ? null : (JSON.parse(head) as ListHead) },
      now: shownAs(list, known, document),
    };
    this.#add(name, null);
    this.#heads.delete(name);
    return ['list_changed', name, { service, slice, before: known, now: list }, evidence];
  }

  save() {
    return {
      looked: [...this.#looked],
      judged: [...this.#judged].map(([name, list]) => (list === null ? name : [name, list.list_id, list.credit_root])),
      heads: [...this.#heads],
      awaited: [...this.#refused, ...this.#awaited],
    };
  }

  /** Malformed entries are ignored. Returns false if there is nothing to restore. */
  restore({ looked, judged, heads, awaited }: Readonly<Record<string, unknown>>): boolean {
    if (!Array.isArray(judged) || !Array.isArray(looked)) return false;
    for (const each of looked as BooksService[]) this.#looked.add(each);
    for (const each of judged) {
      const [name, list_id, credit_root] = Array.isArray(each) ? each : [each];
      if (typeof name === 'string') this.#add(name, { list_id, credit_root } as ListName);
    }
    for (const each of Array.isArray(heads) ? heads : [])
      if (typeof each?.[0] === 'string' && typeof each[1] === 'string') this.#keepHead(each[0], each[1]);
    for (const each of Array.isArray(awaited) ? awaited : [])
      if (/^(pplns|solo)[/][0-9]{1,15}$/.test(String(each))) this.await(String(each));
    return true;
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
