/**
 * The package as its users have it: packed by `npm pack`, unpacked elsewhere, and its examples run from Node, at the deep level from a page and from a worker in Chromium too,
 * each paying on a real node.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { expect, onTestFinished, test } from 'vitest';
import { parseAddress } from '../../protocol/address.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { Keyring } from '../../wallet/keys/keyring.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { ApiBed } from '../api/api-bed.ts';
import { serveBuilt } from '../chromium.ts';
import { open, withBrowser } from '../dashboard/browser.ts';
import { level } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { PACKAGE } from './load.ts';

if (level === 'deep') withBrowser();
const COIN = 100_000_000n;
const wallet = () => {
  const words = phraseOfEntropy(randomBytes(32));
  return {
    words,
    address: new Keyring(new WalletRoot(words, '', 'development')).addressRecord('receive', 0, 0).address,
  };
};

/** Unpacked into node_modules of a project of its own. */
function unpacked(): { readonly project: string; readonly folder: string } {
  const project = temporaryDirectory();
  const packed = spawnSync('npm', ['pack', '--silent', '--pack-destination', project, '--offline'], {
    cwd: fileURLToPath(PACKAGE),
    encoding: 'utf8',
  });
  const name = packed.stdout.trim().split('\n').at(-1) as string;
  expect([packed.status, name]).toEqual([0, expect.stringMatching(/^svc-wasm-.*\.tgz$/)]);
  const folder = join(project, 'node_modules/svc-wasm');
  mkdirSync(folder, { recursive: true });
  expect(spawnSync('tar', ['-xzf', join(project, name), '-C', folder, '--strip-components=1']).status).toBe(0);
  return { project, folder };
}

function run(words: string[], options: { cwd?: string; input?: string } = {}): Promise<string> {
  const child = spawn(process.execPath, words, { cwd: options.cwd, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(options.input ?? '');
  let text = '';
  child.stdout.on('data', (data) => (text += String(data)));
  child.stderr.on('data', (data) => (text += String(data)));
  return new Promise((resolve) => child.once('close', () => resolve(text.trim())));
}

async function nodeFor(address: string, origin?: string): Promise<ApiBed> {
  const fund = Array.from({ length: 2 }, () => ({
    address: parseAddress(address, 'development').payload,
    amount: 10n * COIN,
  }));
  const bed = await ApiBed.open({ bed: { genesis: { fund } }, ...(origin && { api: { browserOrigins: [origin] } }) });
  onTestFinished(() => bed.close());
  return bed;
}

const balanceOf = async (bed: ApiBed, address: string): Promise<bigint> => {
  await bed.bed.mine(parseAddress(address, 'development').payload);
  await bed.bed.seal();
  return BigInt((await bed.client.addressBalance({ address })).balance);
};

test('packed, unpacked, imported by its name, and paid with from Node', async () => {
  const { project, folder } = unpacked();
  writeFileSync(
    join(project, 'use.mjs'),
    "import init, { burnAddress } from 'svc-wasm';\nawait init();\nconsole.log(burnAddress('mainnet'));\n",
  );
  expect(await run(['use.mjs'], { cwd: project })).toMatch(/^svc1/);
  const [payer, recipient] = [wallet(), wallet()];
  const bed = await nodeFor(payer.address);
  const id = await run([join(folder, 'examples/payment.mjs'), bed.base, recipient.address, '1.25'], {
    input: `${payer.words}\n`,
  });
  expect(id).toMatch(/^[0-9a-f]{96}$/);
  expect(await balanceOf(bed, recipient.address)).toBe(125_000_000n);
  // As `npm install FOLDER` leaves it: the package is a link.
  const link = join(project, 'linked');
  symlinkSync(folder, link);
  const refused = await run([join(link, 'examples/payment.mjs'), bed.base, recipient.address, '1,25'], {
    input: payer.words,
  });
  expect(refused).toMatch(/^amount_text .*such as 1\.25$/);
  for (const name of ['payment', 'multisig', 'chat', 'deposits', 'proof'])
    expect(await run([join(link, `examples/${name}.mjs`)])).toMatch(`usage: node ${name}.mjs `);
  expect(await run([join(link, 'examples/multisig.mjs'), 'key', 'development'], { input: payer.words })).toMatch(
    /^[0-9a-f]{3904}$/,
  );
});

// In a page of this project: test/dashboard/pages-in-process.slow.test.ts; the examples in process: examples.long.test.ts.
if (level === 'deep')
  test('a 2-of-3 payment: proposed and sent from Node, signed by one member in Node and by another in a page', async () => {
    const { folder } = unpacked();
    const script = join(folder, 'examples/multisig.mjs');
    const members = [wallet(), wallet(), wallet()] as const;
    const keys = await Promise.all(members.map(({ words }) => run([script, 'key', 'development'], { input: words })));
    const group = JSON.parse(await run([script, 'descriptor', 'development', '2', ...keys])) as {
      descriptor: string;
      address: string;
    };
    const base = await serveBuilt(folder, false);
    const bed = await nodeFor(group.address, new URL(base).origin);
    const recipient = wallet();
    const proposal = await run([script, 'propose', bed.base, group.descriptor, recipient.address, '1.25']);
    const review = JSON.parse(await run([script, 'review', bed.base, proposal])) as { template_digest: string };
    const digest = review.template_digest;
    const signed = (words: string, over: string) => run([script, 'sign', bed.base, proposal, over], { input: words });
    const first = await signed(members[2].words, digest);
    expect(await run([script, 'send', bed.base, first])).toContain('package_incomplete');
    expect(await signed(members[1].words, 'ab'.repeat(48))).toContain('package_digest');
    const { page } = await open(`${base}examples/multisig.html`);
    await page.fill('[name=api]', bed.base);
    await page.fill('[name=proposal]', proposal);
    await page.click('[value=review]');
    await page.waitForFunction(() => document.querySelector('pre')?.textContent !== '');
    expect(JSON.parse((await page.textContent('pre')) as string)).toEqual(review);
    await page.fill('[name=words]', members[0].words);
    await page.click('[value=sign]');
    await page.waitForFunction(() => document.querySelector('output')?.textContent !== '');
    const second = (await page.textContent('output')) as string;
    expect(await run([script, 'send', bed.base, second, first])).toMatch(/^[0-9a-f]{96}$/);
    expect(await balanceOf(bed, recipient.address)).toBe(125_000_000n);
  });

/** A page that shows the address of the words behind its #. */
const pageWith = (
  specifier: string,
): string => `<!doctype html><meta charset="utf-8"><title>module</title><link rel="icon" href="data:,">
<script type="module">
  import init, { addressFromPublicKey, WalletRoot } from '${specifier}';
  await init();
  const root = WalletRoot.fromMnemonic(decodeURIComponent(location.hash.slice(1)), '', 'development');
  const key = root.derivePublicKey(0, 'receive', 0);
  root.free();
  document.body.textContent = addressFromPublicKey(key, 'development');
</script>`;

async function shownBy(site: string, words: string): Promise<string | null> {
  const { page, complaints } = await open(`${await serveBuilt(site, false)}#${encodeURIComponent(words)}`);
  await page.waitForFunction(() => document.body.textContent.trim() !== '');
  expect(complaints).toEqual([]);
  return page.textContent('body');
}

if (level === 'deep')
  test('the example page pays from its worker', async () => {
    const { folder } = unpacked();
    const [payer, recipient] = [wallet(), wallet()];
    const base = await serveBuilt(folder, false);
    const bed = await nodeFor(payer.address, new URL(base).origin);
    const { page } = await open(`${base}examples/payment.html`);
    await page.fill('[name=api]', bed.base);
    await page.fill('[name=words]', payer.words);
    await page.fill('[name=recipient]', recipient.address);
    await page.click('button');
    await expect.poll(() => page.textContent('output')).toMatch(/^paid: [0-9a-f]{96}$/);
    expect(await balanceOf(bed, recipient.address)).toBe(125_000_000n);
  });

if (level === 'deep')
  test('a page uses the module as it is, and one that a bundler made', async () => {
    const { project, folder } = unpacked();
    const { words, address } = wallet();
    const plain = temporaryDirectory();
    cpSync(folder, plain, { recursive: true });
    writeFileSync(join(plain, 'index.html'), pageWith('./svc_wasm.js'));
    expect(await shownBy(plain, words)).toBe(address);
    writeFileSync(join(project, 'index.html'), pageWith('svc-wasm'));
    const settings = { outDir: join(project, 'out'), target: 'es2022', assetsInlineLimit: 0 };
    await build({ configFile: false, root: project, logLevel: 'silent', base: './', build: settings });
    expect(await shownBy(settings.outDir, words)).toBe(address);
  });

test('the package is small: 250 KB by gzip for all, 60 KB for a page that only verifies', () => {
  const size = (name: string) => spawnSync('gzip', ['-9', '-c', fileURLToPath(new URL(name, PACKAGE))]).stdout.length;
  // A page that only verifies loads both files too: all of it is smaller than what that page may have.
  expect(size('svc_wasm.js') + size('svc_wasm_bg.wasm')).toBeLessThan(60_000);
  expect(JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8'))).not.toHaveProperty('dependencies');
});
