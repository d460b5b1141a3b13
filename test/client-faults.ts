/** No test may leave a client behind that a defect ended, unless it made the defect itself and took the count. */
import { afterAll, expect } from 'vitest';
import { clientFaults } from '../runtime/client-fault.ts';

afterAll(() => {
  expect(clientFaults.take(), 'clients were ended by a defect (runtime/client-fault.ts)').toBe(0);
});
