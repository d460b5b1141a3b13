/**
 * The proof that an address is somebody's, with svc-wasm alone: no node is needed. The asker makes a request and keeps it, the holder of the address answers it, the asker checks the answer. From a shell:
 *   node proof.mjs request ADDRESS "payout address of customer 17" > request.json   # the asker
 *   node proof.mjs show request.json                                                # the holder: for whom, for what and until when; read it before you prove
 *   node proof.mjs prove request.json < words.txt > proof.json                      # the holder; signs nothing but this request
 *   node proof.mjs verify request.json proof.json                                   # the asker, with the request it kept
 */
import init, * as svc from '../svc_wasm.js';
import { standardInput, startFromShell } from './shell.mjs';

const VALID_MILLIS = 10 * 60_000;

/** The network follows from the address. A request is good for ten minutes: what was signed long ago proves little. */
export async function request(address, purpose, now = Date.now()) {
  await init();
  const { network } = JSON.parse(svc.parseAddress(address));
  return svc.addressProofRequest(address, network, now, now + VALID_MILLIS, purpose);
}

/** What a request asks for, one field in a line. Its purpose is free text of the asker: as JSON it cannot end its line or move the cursor. */
export async function show(asked) {
  await init();
  const { address, network, expires_millis, purpose } = JSON.parse(asked);
  return [
    `address  ${address}`,
    `network  ${network}`,
    `until    ${new Date(Number(expires_millis)).toISOString()}`,
    `purpose  ${inAscii(purpose)}`,
  ].join('\n');
}

const inAscii = (text) =>
  JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** `show` the request to the person before this: it says what the answer will be used for. The address is that of account 0, receive, 0. */
export async function prove(asked, words) {
  await init();
  const root = svc.WalletRoot.fromMnemonic(words, '', JSON.parse(asked).network);
  try {
    return root.proveAddress(0, 'receive', 0, asked);
  } finally {
    root.free();
  }
}

/** The address that is proven. Throws where the proof does not hold; `error.code` says why. */
export async function verify(asked, proof, now = Date.now()) {
  await init();
  return JSON.parse(svc.verifyAddressProof(asked, proof, JSON.parse(asked).network, now)).address;
}

await startFromShell(import.meta.filename, async ([act, ...words]) => {
  const { readFileSync } = await import('node:fs');
  const text = (file) => readFileSync(file, 'utf8');
  if (act === 'request') return await request(words[0], words[1]);
  if (act === 'show') return await show(text(words[0]));
  if (act === 'prove') {
    const asked = text(words[0]);
    console.error(`what is signed:\n${await show(asked)}`);
    return await prove(asked, await standardInput());
  }
  if (act === 'verify') return await verify(text(words[0]), text(words[1]));
  throw new Error('usage: node proof.mjs request|show|prove|verify ..., see the top of this file');
});
