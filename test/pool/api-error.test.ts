import { expect, test } from 'vitest';
import { ApiRefusal } from '../../pool/api/api-error.ts';

test('a wait is one of whole seconds: the header and the body of an answer say the same', () => {
  for (const millis of [1, 999, 1_000, 1_001, 59_999]) {
    const refusal = new ApiRefusal('too_many_requests', 'too many requests', millis);
    const said = refusal.document.error.retry_after_millis as number;
    expect(said).toBe(Math.ceil(millis / 1_000) * 1_000);
    expect(refusal.retryAfterMillis).toBe(said);
  }
});
