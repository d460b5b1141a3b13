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
import { visible } from '../../runtime/log/visible.ts';
import type { Terminal } from '../../runtime/program.ts';
import { publishedApi } from '../audit/public-reads.ts';

export type VerifyListValues = { readonly poolApi: string | undefined; readonly json: boolean };

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
async function publishedOf(evidence: ListEvidence, api: string | undefined): Promise<PublishedList> {
  if (api === undefined) return null;
  const path = `slices/${evidence.service}?limit=1&cursor=${evidence.slice + 1}-0`;
  const page = (await publishedApi(api)(path).catch(() => undefined)) as { slices?: (ShownRecord | null)[] } | null;
  if (!Array.isArray(page?.slices)) return null;
  const root = page.slices.find((each) => each?.slice === evidence.slice)?.credits?.root;
  if (root === evidence.now.credit_root) return root === evidence.before.credit_root ? null : 'now';
  return root === evidence.before.credit_root ? 'before' : 'neither';
}

/** 4: two lists, of which nothing is signed; 1: not even that. */
export async function verifyListEvidence(
  evidence: ListEvidence,
  { poolApi, json }: VerifyListValues,
  terminal: Terminal,
): Promise<number> {
  const verdict = judgeListEvidence(evidence);
  const isShown = verdict === 'two_lists';
  const published = isShown ? await publishedOf(evidence, poolApi) : null;
  const { service, slice, before, now } = evidence;
  if (json) terminal.out(`${JSON.stringify({ verdict, published })}\n`);
  else
    terminal.out(
      `${[
        WORDS[verdict],
        ...(isShown
          ? [
              `${service}, slice ${slice}. First ${before.list_id ?? 'a list'} with credits ${before.credit_root}, later ${now.list_id ?? 'a list'} with credits ${now.credit_root}.`,
            ]
          : []),
        ...(published === null ? [] : [PUBLISHED[published]]),
      ]
        .map(visible)
        .join('\n')}\n`,
    );
  return isShown ? 4 : 1;
}
