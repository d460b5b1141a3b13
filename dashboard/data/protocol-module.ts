/** The protocol module in the page: loaded once, when something is to be signed or derived here. */

import { isStarted, startWith } from '../../module/wasm.ts';
import { word } from '../words/language.ts';

/** A bundler takes the file as an asset because of the form of this URL. */
const WASM = new URL('../../build/svc-wasm/svc_wasm_bg.wasm', import.meta.url);

export async function startModule(): Promise<void> {
  if (isStarted()) return;
  const answer = await fetch(WASM);
  if (!answer.ok) throw new Error(word('module.not_loaded', { status: answer.status }));
  startWith(await WebAssembly.compile(await answer.arrayBuffer()));
}
