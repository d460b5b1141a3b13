/**
 * Evidence that a pool showed two credit lists of one slice (books rule 20a). The pool signs no list, so the file alone convicts nobody: it shows that both are
 * lists, and what each says. Which of the two the pool shows to others, and which one its payouts commit, is looked up by `svc-pool verify-evidence`.
 */
import type { BooksService } from '../books/books-slice.ts';
import { type CreditHead, type ProofPart, poolListId } from '../books/pool-proof.ts';
import { ProtocolError } from '../errors.ts';

export const LIST_EVIDENCE_FORMAT = 'svc-pool-list-evidence-1';

/** The data that `list_id` covers. */
export type ListHead = CreditHead & { readonly window: readonly ProofPart[] };

/** A list as it was shown: the page of slices shows the root of its credits alone. */
export type ShownList = {
  readonly list_id: string | null;
  readonly credit_root: string;
  /** Null where it was not kept or not shown. */
  readonly head: ListHead | null;
};

export type ListEvidence = {
  readonly format: typeof LIST_EVIDENCE_FORMAT;
  readonly service: BooksService;
  readonly slice: number;
  readonly before: ShownList;
  readonly now: ShownList;
};

export const LIST_EVIDENCE_VERDICTS = ['two_lists', 'same_list', 'other_list', 'malformed'] as const;
export type ListEvidenceVerdict = (typeof LIST_EVIDENCE_VERDICTS)[number];

const HASH = /^[0-9a-f]{96}$/;

/** The head of a list or of a proof, without the account's own part. */
export function listHead(document: ListHead): ListHead {
  const { version, list_id, network, service, slice, blocks, reward, fee_ppm, fee, credited } = document;
  const { window_work, credit_accounts, credit_root } = document;
  const window = document.window.map(({ slice: number, accounts, total, counted, root }) => ({
    slice: number,
    accounts,
    total,
    counted,
    root,
  }));
  return {
    version,
    list_id,
    network,
    service,
    slice,
    blocks,
    reward,
    fee_ppm,
    fee,
    credited,
    window_work,
    credit_accounts,
    credit_root,
    window,
  };
}

/** Whether a head matches the identifiers it was shown with. */
function isOwnHead({ head, list_id, credit_root }: ShownList, { service, slice }: ListEvidence): boolean {
  if (head === null) return true;
  return (
    head.service === service && head.slice === slice && head.credit_root === credit_root && poolListId(head) === list_id
  );
}

function judge(evidence: ListEvidence): ListEvidenceVerdict {
  const { before, now, service, slice } = evidence;
  const isNamed = (list: ShownList) =>
    HASH.test(list.credit_root) && (list.list_id === null ? list.head === null : HASH.test(list.list_id));
  const isService = service === 'pplns' || service === 'solo';
  if (evidence.format !== LIST_EVIDENCE_FORMAT || !isService || !Number.isSafeInteger(slice)) return 'malformed';
  if (![before, now].every(isNamed)) return 'malformed';
  if (![before, now].every((list) => isOwnHead(list, evidence))) return 'other_list';
  const isSameId = before.list_id === null || now.list_id === null || before.list_id === now.list_id;
  return isSameId && before.credit_root === now.credit_root ? 'same_list' : 'two_lists';
}

export function judgeListEvidence(evidence: ListEvidence): ListEvidenceVerdict {
  try {
    return judge(evidence);
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError) return 'malformed';
    throw error;
  }
}
