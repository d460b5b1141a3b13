/** Reads a pool's public API. */
import { apiClientDependencies } from '../runtime/api-client.ts';

const READ_MILLIS = 15_000;

export const publishedApi =
  (api: string) =>
  async (path: string): Promise<unknown> => {
    const url = `${api.replace(/\/+$/, '')}/api/v1/${path}`;
    const signal = AbortSignal.timeout(READ_MILLIS);
    const answer = await apiClientDependencies().fetch(url, { method: 'GET', headers: {}, signal });
    if (answer.status !== 200) throw new Error(`${url}: status ${answer.status}`);
    return JSON.parse(new TextDecoder().decode(await answer.arrayBuffer()));
  };
