/** Files of evidence of `vectors/evidence.json`, as `svc-pool verify-evidence` reads them (books rules 20a and 29). */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyEvidence } from '../../pool/evidence/verify-evidence.ts';
import { isUnread, silenceOf } from '../../protocol/books/pool-silence.ts';
import { highestThreshold, judgeUnpaid } from '../../protocol/evidence/unpaid-evidence.ts';
import { temporaryDirectory } from '../temporary.ts';

type Vectors = {
  readonly lists: readonly { says: string; evidence: object; verdict: string; exit: number }[];
  readonly unpaid: readonly { says: string; evidence: object; readable: boolean }[];
  readonly owed: readonly {
    says: string;
    facts: {
      credited: string;
      paid: string;
      unlisted?: string;
      minimum: string;
      earlier: { amount: string; until_millis: number }[];
      is_paused: boolean;
      at_millis: number;
      bound_millis: number;
    };
    threshold: string;
    verdict: string;
  }[];
  readonly readings: readonly {
    says: string;
    status: number;
    retry_after: string | null;
    unread: boolean;
    wait_millis: number | null;
  }[];
};
const { lists, unpaid, owed, readings } = JSON.parse(
  readFileSync(new URL('../../vectors/evidence.json', import.meta.url), 'utf8'),
) as Vectors;

async function verified(evidence: object) {
  const path = join(temporaryDirectory(), 'evidence.json');
  writeFileSync(path, JSON.stringify(evidence));
  const said: string[] = [];
  const say = (line: string) => void said.push(line);
  const values = { poolKey: undefined, poolApi: undefined, nodeApi: undefined, json: true };
  const exit = await verifyEvidence(path, values, { out: say, err: say } as never);
  return { exit, ...(JSON.parse(said.join('')) as { verdict: string }) };
}

test('files about two lists of one slice: the verdict and the exit code', async () => {
  expect(new Set(lists.map(({ exit }) => exit))).toEqual(new Set([4, 1]));
  for (const { says, evidence, verdict, exit } of lists)
    expect(await verified(evidence), says).toMatchObject({ verdict, exit });
});

test('a file that names no kind of evidence is none, whatever name it has', async () => {
  for (const format of [undefined, null, 1, '', 'constructor', '__proto__', 'svc-pool-evidence-2'])
    expect(await verified({ format }), String(format)).toMatchObject({ why: 'malformed', exit: 1 });
});

test('files about credits that were not paid: what can be read takes a pool and a node, the rest is malformed', async () => {
  expect(unpaid.length).toBeGreaterThan(2);
  for (const { says, evidence, readable } of unpaid)
    expect(await verified(evidence), says).toMatchObject({ verdict: readable ? 'unchecked' : 'malformed', exit: 1 });
});

test('what is owed, by the highest threshold of its time', () => {
  expect(new Set(owed.map(({ verdict }) => verdict))).toEqual(
    new Set(['unpaid', 'paid', 'below', 'paused', 'unlisted']),
  );
  for (const { says, facts, threshold, verdict } of owed) {
    const earlier = facts.earlier.map(({ amount, until_millis }) => ({
      atoms: BigInt(amount),
      untilMillis: until_millis,
    }));
    const thresholds = { minimum: BigInt(facts.minimum), earlier };
    const highest = highestThreshold(thresholds, facts.at_millis, facts.bound_millis);
    expect(String(highest), says).toBe(threshold);
    const sums = { credited: BigInt(facts.credited), paid: BigInt(facts.paid), unlisted: BigInt(facts.unlisted ?? 0) };
    expect(judgeUnpaid({ ...sums, threshold: highest, advanced: 0n, isPaused: facts.is_paused }), says).toBe(verdict);
  }
});

test('answers that are unread, and how long to wait', () => {
  for (const { says, status, retry_after, unread, wait_millis } of readings) {
    const silence = silenceOf(status, retry_after);
    expect([isUnread(silence), silence.retryAfterMillis ?? null], says).toEqual([unread, wait_millis]);
  }
});
