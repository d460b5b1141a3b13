/** The page of wasm-backend-browser.deep.slow.test.ts: searches a range and hands the hits to the test. */
import type { Hit } from '../../../kernels/backend.ts';
import { createWasmBackend } from '../../../kernels/cpu/wasm-backend.ts';
import { fromHex, toHex } from '../../../protocol/bytes.ts';
import type { Network } from '../../../protocol/network.ts';

export type PageSearch = {
  readonly network: Network;
  readonly mode: 'full' | 'light';
  readonly header: string;
  readonly target: string;
  readonly nonces: number;
};
export type PageResult = { readonly isolated: boolean; readonly name: string; readonly hits: string[] };

declare global {
  interface Window {
    search(what: PageSearch): Promise<PageResult>;
  }
}

window.search = async ({ network, mode, header, target, nonces }) => {
  const hits: Hit[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const backend = createWasmBackend(
    { network, mode, threads: 2 },
    { onHit: (hit) => hits.push(hit), onExhausted: () => resolve(), onFailure: reject },
  );
  await backend.prepare(0);
  backend.setJob({
    id: 1,
    epoch: 0,
    header: fromHex(header),
    target: fromHex(target),
    prefixBytes: 2,
    nonces: { from: 0n, to: BigInt(nonces) },
  });
  await promise;
  await backend.close();
  const shown = hits.map(({ nonce, hash }) => `${toHex(nonce)} ${toHex(hash)}`).sort();
  return { isolated: globalThis.crossOriginIsolated, name: backend.name, hits: shown };
};
