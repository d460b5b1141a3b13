import { expect, test } from 'vitest';
import { route } from '../../pool/api/route.ts';
import { object } from '../../protocol/api/schema.ts';
import { webBed } from './web-bed.ts';

test('a database that does not answer within its time is unavailable for the moment, and no defect of the pool', async () => {
  const common = { method: 'GET', group: 'test', summary: 'test', answer: object({}) } as const;
  const routes = ['57014', '55P03'].map((code) =>
    route({
      ...common,
      path: `/${code}`,
      handle: async () => {
        throw Object.assign(new Error('canceling statement due to statement timeout'), { code });
      },
    }),
  );
  const port = await webBed([], { live: () => undefined, routes });
  for (const { path } of routes) {
    const { status, headers } = await fetch(`http://127.0.0.1:${port}/api/v1${path}`);
    expect([status, headers.get('retry-after')]).toEqual([503, '5']);
  }
});
