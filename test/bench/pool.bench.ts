/**
 * The pool's books under load, with a real PostgreSQL and a real Redis. `npm run bench -- pool` measures everything;
 * `npm run bench -- pool shares credits` some of it. The soak lasts SVC_SOAK_MINUTES, one minute unless it says otherwise.
 */
import { bench } from './harness.ts';
import { benchApi } from './pool/api.ts';
import { benchCredits } from './pool/credits.ts';
import { benchIntake } from './pool/intake.ts';
import { benchReceipts } from './pool/receipts.ts';
import { benchShares, benchSoak } from './pool/shares.ts';
import { benchStart } from './pool/start.ts';

const SECONDS = 10;

export default bench('the pool: shares into the books, credits, the API with 30 days of history, memory', async (b) => {
  const isAsked = (name: string) => b.words.length === 0 || b.words.includes(name);
  if (isAsked('shares')) {
    await benchShares(b, 'none', SECONDS);
    await benchShares(b, 'development', SECONDS);
  }
  if (isAsked('intake')) await benchIntake(b);
  if (isAsked('credits')) await benchCredits(b);
  if (isAsked('receipts')) await benchReceipts(b);
  if (isAsked('api')) await benchApi(b);
  if (isAsked('start')) await benchStart(b);
  if (isAsked('soak')) await benchSoak(b, Number(process.env.SVC_SOAK_MINUTES ?? 1));
});
