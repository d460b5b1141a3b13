/** A session that waits to be resumed comes back as it was, with every nonce that was judged. */
import { expect, test } from 'vitest';
import { packRecord, unpackRecord } from '../../bridge/session/packed-record.ts';
import { waiting } from '../pool/waiting-session.ts';

test('a record comes back as it was', () => {
  const record = waiting('a');
  expect(unpackRecord(packRecord(record))).toEqual(record);
});

test('any number of nonces, also the largest, and none', () => {
  const record = waiting('a');
  for (const nonces of [[], [0], [2 ** 48 - 1, 7, 2 ** 47], Array.from({ length: 25_000 }, (_, i) => i * 11_111_111)]) {
    const jobs = record.jobs as NonNullable<typeof record.jobs>;
    const terms = jobs.log.terms.map((each) => ({ ...each, seen: [[65, Float64Array.from(nonces)]] as const }));
    const back = unpackRecord(packRecord({ ...record, jobs: { ...jobs, log: { ...jobs.log, terms } } }));
    expect([...(back.jobs?.log.terms[0]?.seen[0]?.[1] ?? [])]).toEqual(nonces);
  }
});
