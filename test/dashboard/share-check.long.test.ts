/** 'Check my share' as the page runs it, against pools that lie in every way that test/protocol knows: none is called proven. */
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { checkShare } from '../../dashboard/view/share-check.tsx';
import { loadPageWords } from '../../dashboard/words/language.ts';
import type { CreditDocument } from '../../pool/api/documents.ts';
import { checkPoolProof } from '../../protocol/books/pool-proof.ts';
import { addressOf } from '../../vectors/generate/honest-books.ts';
import { LEDGER_LIES } from '../protocol/books-ledger-lies.ts';
import { honest, type Lie, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { LIES } from '../protocol/books-lies.ts';
import { nodeAnswers, poolAnswer } from '../protocol/books-sources.ts';

beforeAll(loadPageWords);

const NODE = 'http://127.0.0.1:28701';

/** Pool and node over the page's own fetch. */
function serve(lie: Lie): void {
  const node = nodeAnswers(lie);
  const answerOf = (url: URL, body: string | undefined): unknown => {
    if (url.origin !== NODE) return poolAnswer(lie, url.pathname.replace('/api/v1/', '') + url.search);
    const part = url.pathname.split('/');
    if (url.pathname === '/v1/cuts') return node.cuts({ before: Number(url.searchParams.get('before')) });
    if (url.pathname.endsWith('/transactions')) return node.cutTransactions({ height: Number(part[3]) });
    if (url.pathname.startsWith('/v1/blocks/')) return node.block({ id: part[3] as string });
    return body === undefined ? undefined : node.addressChanges();
  };
  vi.stubGlobal('document', { baseURI: 'http://pool.example/' });
  vi.stubGlobal('fetch', async (url: URL | string, init: RequestInit = {}) => {
    const answer = answerOf(new URL(url), init.body as string | undefined);
    return answer === undefined ? new Response('{}', { status: 404 }) : Response.json(answer);
  });
}
afterEach(() => vi.unstubAllGlobals());

async function outcomeOf(lie: Lie) {
  serve(lie);
  const { proof } = lie;
  const verdict = checkPoolProof(proof);
  const credit = { service: 'pplns', slice: proof.slice, amount: String(verdict.valid ? verdict.credit : 0n) };
  return checkShare(addressOf(VICTIM), credit as CreditDocument, NODE);
}

test('an honest share is proven, and the page says what it rests on', async () => {
  const outcome = await outcomeOf({ proof: honest.proof(SLICE, VICTIM), evidence: honest.evidence(SLICE) });
  expect(outcome).toMatchObject({ tone: 'good' });
  expect(outcome.text).toMatch(/^Proven: .* wrote these books to the ledger.* pay dsvc1/s);
});

test('a pool that answers without the records that a proof rests on: that is said, and is no proof', async () => {
  const proof = honest.proof(SLICE, VICTIM);
  for (const evidence of [
    { ...honest.evidence(SLICE), records: [] },
    { ...honest.evidence(SLICE), otherRecords: [] },
  ]) {
    const outcome = await outcomeOf({ proof, evidence });
    expect(outcome).toMatchObject({ tone: 'bad', text: expect.stringMatching(/^Not proven: .* records of/) });
  }
});

for (const [name, lie] of Object.entries({ ...LIES, ...LEDGER_LIES }))
  test(`never proven: ${name}`, async () => {
    // Whom the page's reader mines for is not known to it: it shows the address.
    if (name.startsWith('an address')) return;
    const { tone, text } = await outcomeOf(lie()).catch((error: Error) => ({ tone: 'bad', text: error.message }));
    expect([tone, text]).not.toContain('good');
    expect(text).not.toMatch(/^Proven/);
  });
