/** Files of evidence of `vectors/evidence.json`, as `svc-pool verify-evidence` reads them (books rules 20a and 29). */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyEvidence } from '../../pool/verify-evidence.ts';
import { temporaryDirectory } from '../temporary.ts';

type Vectors = {
  readonly lists: readonly { says: string; evidence: object; verdict: string; exit: number }[];
  readonly unpaid: readonly { says: string; evidence: object; readable: boolean }[];
};
const { lists, unpaid } = JSON.parse(
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

test('files about credits that were not paid: what can be read takes a pool and a node, the rest is malformed', async () => {
  expect(unpaid.length).toBeGreaterThan(2);
  for (const { says, evidence, readable } of unpaid)
    expect(await verified(evidence), says).toMatchObject({ verdict: readable ? 'unchecked' : 'malformed', exit: 1 });
});
