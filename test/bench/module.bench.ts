/**
 * The protocol module svc-wasm: signing and verification against noble and node:crypto in one run, in Node and in Chromium (there against noble alone); multisig and messenger; its start; its size. Words: `node` leaves
 * Chromium out.
 */

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { gzipSync } from 'node:zlib';
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { build } from 'vite';
import { signMessage } from '../../node/ml-dsa.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { phraseOfEntropy } from '../../protocol/crypto/phrase.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { signingKey, verifySignature } from '../../wallet/keys/signing.ts';
import { launch } from '../chromium.ts';
import { acquaint, Party, say } from '../module/chat-bed.ts';
import { loadModule, PACKAGE } from '../module/load.ts';
import { MANIFEST, paymentOf } from '../module/payment.ts';
import { type Bench, bench, median, rates } from './harness.ts';

const ROOT = join(import.meta.dirname, '../..');
const against = (ours: number, theirs: number, yardstick: string) => ({ ratio: ours / theirs, yardstick });
const SHORT = { seconds: 0.6, rounds: 5 };

async function inNode(b: Bench): Promise<void> {
  const module = await loadModule();
  const entropy = randomBytes(32);
  const seed = new WalletRoot(phraseOfEntropy(entropy), '', 'development').seed({
    account: 0,
    branch: 'receive',
    index: 0,
  });
  const { publicKey, secretKey } = ml_dsa65.keygen(seed);
  const native = signingKey(seed);
  const payment = paymentOf(module, toHex(entropy));
  const message = fromHex(payment.message);
  const signature = fromHex(payment.signature);
  const root = module.WalletRoot.fromEntropy(toHex(entropy), '', 'development');
  const sign = await rates(
    {
      module: () => root.sign(0, 'receive', 0, payment.message, true),
      noble: () => ml_dsa65.sign(message, secretKey),
      node: () => signMessage(native.privateKey, message),
    },
    SHORT,
  );
  b.figure('sign', sign.module, 'op/s', against(sign.module, sign.noble, 'noble'));
  b.figure('sign', sign.module, 'op/s', against(sign.module, sign.node, 'node:crypto'));
  const verify = await rates(
    {
      module: () => module.verifyTransaction(payment.wire, payment.spends, null, MANIFEST),
      noble: () => ml_dsa65.verify(signature, message, publicKey),
      node: () => verifySignature(publicKey, message, signature),
    },
    SHORT,
  );
  b.figure(
    'verify a transaction',
    verify.module,
    'op/s',
    against(verify.module, verify.noble, 'noble, signature alone'),
  );
  b.figure(
    'verify a transaction',
    verify.module,
    'op/s',
    against(verify.module, verify.node, 'node:crypto, signature alone'),
  );
  const key = await rates(
    { module: () => root.derivePublicKey(0, 'receive', 0), noble: () => ml_dsa65.keygen(seed) },
    SHORT,
  );
  b.figure('derive a public key', key.module, 'op/s', against(key.module, key.noble, 'noble, key alone'));
  root.free();
  const roots = await rates(
    { module: () => module.WalletRoot.fromEntropy(toHex(entropy), '', 'development').free() },
    SHORT,
  );
  b.figure('open a root', roots.module, 'op/s');
}

/** Multisig and messenger: what a member, and a reader of many chats, waits for. */
async function several(b: Bench): Promise<void> {
  const module = await loadModule();
  const members = Array.from({ length: 3 }, () => {
    const root = module.WalletRoot.fromEntropy(toHex(randomBytes(32)), '', 'development');
    return { root, key: root.derivePublicKey(0, 'receive', 0) };
  });
  const descriptor = module.createMultisigDescriptor('2', JSON.stringify(members.map(({ key }) => key)));
  const address = module.multisigAddress(descriptor, 'development');
  const body = module.encodeTransactionBody(
    JSON.stringify({
      valid_from_height: '1',
      valid_until_height: '1000',
      payload_hex: '',
      inputs: [{ transaction_id: 'ab'.repeat(48), output_index: '0' }],
      outputs: [{ address, amount: '100000000' }],
    }),
    MANIFEST,
  );
  const made = module.createMultisigPackage(descriptor, body, JSON.stringify(['200000000']), MANIFEST);
  const { template_digest: digest } = JSON.parse(module.reviewMultisigPackage(made, MANIFEST));
  const signed = members.map(({ root, key }) => {
    const messages = JSON.parse(module.multisigPackageSigningMessages(made, digest, MANIFEST)) as string[];
    const signatures = messages.map((message) => root.sign(0, 'receive', 0, message, true));
    return module.addMultisigPackageSignatures(made, key, JSON.stringify(signatures), MANIFEST);
  });
  const two = JSON.stringify(signed.slice(0, 2));
  const [a, c] = [new Party(module), new Party(module)];
  const entries = acquaint(a, c);
  const chat = a.with(c, entries);
  const talk = [...entries, ...Array.from({ length: 100 }, (_, i) => say(a, c, entries, `line ${i}`))];
  const request = toHex(randomBytes(48));
  const asked = JSON.stringify({ ...JSON.parse(c.with(a, entries.slice(0, 1))), request_transaction: request });
  const json = [JSON.stringify(talk), JSON.stringify([c.address])] as const;
  const found = await rates(
    {
      review: () => module.reviewMultisigPackage(signed[0] as string, MANIFEST),
      combine: () => module.combineMultisigPackages(two, MANIFEST),
      request: () => a.root.messengerRequest(a.address),
      accept: () => c.root.messengerAccept(asked),
      write: () => a.root.messengerMessage(chat, 'see you at noon', 1),
      read: () => c.root.messengerChats(...json),
    },
    SHORT,
  );
  b.figure('2-of-3: review a package with one signature', found.review, 'op/s');
  b.figure('2-of-3: combine two packages', found.combine, 'op/s');
  b.figure('messenger: request', found.request, 'op/s');
  b.figure('messenger: accept', found.accept, 'op/s');
  b.figure('messenger: write a message', found.write, 'op/s');
  b.figure('messenger: rebuild a chat of 100 messages', found.read, 'op/s');
}

async function starts(b: Bench): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < 9; i++) {
    const from = performance.now();
    const copy = (await import(new URL(`svc_wasm.js?start=${i}`, PACKAGE).href)) as { default(): Promise<void> };
    await copy.default();
    times.push(performance.now() - from);
  }
  b.figure('import and start', median(times), 'ms');
}

function sizes(b: Bench): void {
  const of = (name: string) => gzipSync(readFileSync(new URL(name, PACKAGE)), { level: 9 }).length / 1000;
  b.figure('svc_wasm.js, gzip', of('svc_wasm.js'), 'KB');
  b.figure('svc_wasm_bg.wasm, gzip', of('svc_wasm_bg.wasm'), 'KB');
}

/** What the page runs: both under the same clock, in turns. */
const PAGE = `
import init, * as svc from '/svc_wasm.js';
import { ml_dsa65 } from '/noble.js';
const from = performance.now();
await init();
const start = performance.now() - from;
const entropy = '42'.repeat(32);
const root = svc.WalletRoot.fromEntropy(entropy, '', 'development');
const key = ml_dsa65.keygen(new Uint8Array(32).fill(7));
const message = new Uint8Array(48).fill(9);
const signature = ml_dsa65.sign(message, key.secretKey);
const own = svc.addressFromPublicKey(root.derivePublicKey(0, 'receive', 0), 'development');
const request = svc.addressProofRequest(own, 'development', 1, 2);
const proof = root.proveAddress(0, 'receive', 0, request);
const works = {
  sign: () => root.sign(0, 'receive', 0, '09'.repeat(48), true),
  nobleSign: () => ml_dsa65.sign(message, key.secretKey),
  verify: () => svc.verifyAddressProof(request, proof, 'development', 1),
  nobleVerify: () => ml_dsa65.verify(signature, message, key.publicKey),
  request: () => root.messengerRequest(own),
};
const times = Object.fromEntries(Object.keys(works).map((name) => [name, []]));
for (let round = 0; round < 6; round++)
  for (const [name, work] of Object.entries(works)) {
    const begun = performance.now();
    let runs = 0;
    while (performance.now() - begun < 500) { work(); runs++; }
    if (round > 0) times[name].push(runs / (performance.now() - begun) * 1000);
  }
globalThis.figures = { start, ...Object.fromEntries(Object.entries(times).map(([name, list]) => [name, list.sort((a, b) => a - b)[2]])) };
`;

async function inChromium(b: Bench): Promise<void> {
  const bundle = await build({
    configFile: false,
    logLevel: 'silent',
    root: ROOT,
    build: {
      write: false,
      minify: true,
      lib: { entry: join(ROOT, 'node_modules/@noble/post-quantum/ml-dsa.js'), formats: ['es'], fileName: 'noble' },
    },
  });
  const [result] = bundle as unknown as { output: { code: string }[] }[];
  const files: Record<string, [string, string | Buffer]> = {
    '/': ['text/html', `<!doctype html><title>bench</title><script type="module">${PAGE}</script>`],
    '/noble.js': ['text/javascript', result?.output[0]?.code ?? ''],
    '/svc_wasm.js': ['text/javascript', readFileSync(new URL('svc_wasm.js', PACKAGE))],
    '/svc_wasm_bg.wasm': ['application/wasm', readFileSync(new URL('svc_wasm_bg.wasm', PACKAGE))],
  };
  const server = createServer((request, response) => {
    const [type, body] = files[request.url ?? ''] ?? ['text/plain', ''];
    response.writeHead(200, { 'content-type': type }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await page.waitForFunction(() => 'figures' in globalThis, undefined, { timeout: 120_000 });
    const found = await page.evaluate(() => (globalThis as unknown as { figures: Record<string, number> }).figures);
    const { start = 0, sign = 0, nobleSign = 1, verify = 0, nobleVerify = 1, request = 0 } = found;
    b.figure('Chromium: sign', sign, 'op/s', against(sign, nobleSign, 'noble'));
    b.figure('Chromium: verify a proof', verify, 'op/s', against(verify, nobleVerify, 'noble, signature alone'));
    b.figure('Chromium: messenger request', request, 'op/s');
    b.figure('Chromium: start', start, 'ms');
  } finally {
    await browser.close();
    server.close();
  }
}

export default bench('the protocol module: sign and verify against noble and node:crypto, start, size', async (b) => {
  await inNode(b);
  await several(b);
  await starts(b);
  sizes(b);
  if (!b.words.includes('node')) await inChromium(b);
});
