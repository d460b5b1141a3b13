/**
 * `svc-pool verify-evidence` on a file about two credit lists of one slice (books rule 20a). The pool signs no list:
 * the file contains both lists, and the pool's API shows which of them it publishes now.
 */
import type { ShownRecord } from '../../protocol/books/books-slice.ts';
import {
  judgeListEvidence,
  type ListEvidence,
  type ListEvidenceVerdict,
} from '../../protocol/evidence/list-evidence.ts';
import type { EvidenceSources, Judged } from './judged-evidence.ts';

const WORDS: Readonly<Record<ListEvidenceVerdict, string>> = {
  two_lists:
    'The file holds two different credit lists of one slice. The pool signs no list, so this convicts nobody by itself: compare both with what the pool shows to others.',
  same_list: 'Both lists of the file are one: it shows nothing.',
  other_list: 'A list of the file is not the one that it is named as: it shows nothing.',
  malformed: 'The file is not evidence of this form.',
};

type PublishedList = 'before' | 'now' | 'neither' | null;

const PUBLISHED: Readonly<Record<'before' | 'now' | 'neither', string>> = {
  before:
    'The pool publishes the first of the two. If the file is true, it showed the other one to this miner alone, or for a time.',
  now: 'The pool publishes the later one of the two. If the file is true, it changed the list, or showed the first one to this miner alone.',
  neither:
    'The pool at that address publishes neither of the two now. The file does not say whose lists they are: it may be about another pool.',
};

/** Which of the two the pool publishes; null if it could not be queried. */
async function publishedOf(evidence: ListEvidence, pool: EvidenceSources['pool']): Promise<PublishedList> {
  if (pool === undefined) return null;
  const path = `slices/${evidence.service}?limit=1&cursor=${evidence.slice + 1}-0`;
  const page = (await pool(path).catch(() => undefined)) as { slices?: (ShownRecord | null)[] } | null;
  if (!Array.isArray(page?.slices)) return null;
  const root = page.slices.find((each) => each?.slice === evidence.slice)?.credits?.root;
  if (root === evidence.now.credit_root) return root === evidence.before.credit_root ? null : 'now';
  return root === evidence.before.credit_root ? 'before' : 'neither';
}

/** 4: two lists, of which nothing is signed; 1: not even that. */
export async function verifyListEvidence(file: unknown, { pool }: EvidenceSources): Promise<Judged> {
  const evidence = file as ListEvidence;
  const verdict = judgeListEvidence(evidence);
  if (verdict !== 'two_lists') return { exit: 1, document: { verdict, published: null }, words: [WORDS[verdict]] };
  const published = await publishedOf(evidence, pool);
  const { service, slice, before, now } = evidence;
  const [first, later] = [before, now].map((list) => `${list.list_id ?? 'a list'} with credits ${list.credit_root}`);
  return {
    exit: 4,
    document: { verdict, published },
    words: [
      WORDS[verdict],
      `${service}, slice ${slice}. First ${first}, later ${later}.`,
      ...(published === null ? [] : [PUBLISHED[published]]),
    ],
  };
}
