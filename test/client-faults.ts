/** No test may leave a client behind that a defect ended, unless it made the defect itself and took the count. */
import { afterAll, expect } from 'vitest';
import { clientFaults } from '../runtime/clients/client-fault.ts';

export const expectNoClientFaults = (): void =>
  afterAll(() => {
    const { last } = clientFaults;
    const reason = last instanceof Error ? last.stack : String(last);
    expect(clientFaults.take(), `clients were ended by a defect (runtime/clients/client-fault.ts): ${reason}`).toBe(0);
  });
