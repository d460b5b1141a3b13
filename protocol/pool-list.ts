/** The whole list of a slice's credits, put together from the pages that a pool's API gives. */
import type { PoolList, PoolListPage } from './pool-proof.ts';

type LeavesPage = { readonly leaves: PoolList['window'][number]['leaves']; readonly next_cursor?: string };

/** More pages than any list has: a pool that names a next one for ever is not followed. */
const MAX_PAGES = 100_000;

async function pages<P extends { readonly next_cursor?: string }>(
  read: (path: string) => Promise<unknown>,
  path: string,
): Promise<P[]> {
  const all: P[] = [];
  for (let query = '?limit=200'; all.length < MAX_PAGES; ) {
    const page = (await read(`${path}${query}`)) as P;
    all.push(page);
    if (page.next_cursor === undefined) return all;
    query = `?limit=200&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
  throw new Error(`${path} has no end`);
}

/** `read` fetches a path below the API's prefix. Nothing is checked here: checkPoolList does that. */
export async function readPoolList(
  service: PoolList['service'],
  slice: number,
  read: (path: string) => Promise<unknown>,
): Promise<PoolList> {
  const lists = await pages<PoolListPage>(read, `/proofs/${service}/${slice}/list`);
  const { next_cursor: _, ...head } = lists[0] as PoolListPage;
  const window: PoolList['window'][number][] = [];
  for (const part of head.window) {
    const leaves = await pages<LeavesPage>(read, `/slices/${service}/${part.slice}/leaves`);
    window.push({ ...part, leaves: leaves.flatMap((page) => page.leaves) });
  }
  return { ...head, window, credits: lists.flatMap((page) => page.credits) };
}
