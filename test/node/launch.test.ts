/** `svcd launch` and `svcd join`: what the coordinator and the validators send each other, what of it is refused, and what of a key leaves its machine. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { type Invitation, joiningMessage, showDocument } from '../../node/launch/documents.ts';
import { joinLaunch, validatorFiles } from '../../node/launch/join.ts';
import { FAUCET_OUTPUTS, gather, invite, type Wishes } from '../../node/launch/launch.ts';
import { joinCommand, launchCommand } from '../../node/launch/launch-commands.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { runOptions } from '../../node/node-options.ts';
import { loadValidatorKey } from '../../node/validator/validator-key.ts';
import { burnAddressPayload, formatAddress } from '../../protocol/address.ts';
import { parseCoins } from '../../protocol/amount.ts';
import { toHex } from '../../protocol/bytes.ts';
import { registrationMessage } from '../../protocol/ledger/genesis.ts';
import {
  type Registration,
  readGenesis,
  readRegistration,
  showRegistration,
} from '../../protocol/ledger/genesis-file.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import type { Command } from '../../runtime/program.ts';
import { temporaryDirectory } from '../temporary.ts';

const COIN = 100_000_000n;
const OWNER = formatAddress(developmentKey('an owner').address, 'development');
const TREASURY = formatAddress(developmentKey('a treasury').address, 'development');
/** A fast password hash. */
const PLAIN = { owner: OWNER, rewardAddress: undefined, commissionBps: 500, routes: [], peer: undefined, log2N: 10 };

const WISHES: Wishes = {
  name: 'harbour',
  network: 'development',
  seed: 'ab'.repeat(32),
  validators: 2,
  bond: 1_000_000n * COIN,
  feeCoins: 100n * COIN,
  cutMillis: 500,
  intervalCuts: 120,
  powEpochLength: 1_000,
  initialWork: 256,
  minimumWork: 64,
  fund: [],
  faucet: undefined,
  treasury: TREASURY,
};

type Doc = Record<string, unknown>;
const read = (path: string): Doc => JSON.parse(readFileSync(path, 'utf8')) as Doc;

async function run(command: Command, ...words: string[]) {
  const said = { out: '', err: '' };
  const code = await command.start(words, {
    out: (text) => {
      said.out += text;
    },
    err: (text) => {
      said.err += text;
    },
    readText: () => '',
    env: {},
  });
  return { code, ...said };
}

/** A launch of two validators on disk, with everything that was sent. */
async function begin() {
  const folder = temporaryDirectory();
  const launch = join(folder, 'harbour');
  const places = [join(folder, 'validator-1'), join(folder, 'validator-2')] as const;
  const words = ['harbour', '--out', launch, '--network', 'development', '--treasury', TREASURY];
  const terms = ['--validators', '2', '--interval-cuts', '120', '--cut-millis', '500'];
  expect(await run(launchCommand, ...words, ...terms)).toMatchObject({ code: 0, err: '' });
  const invitationFile = join(launch, 'invitation.json');
  const invitation = read(invitationFile) as Invitation;
  const ids = new Map<string, string>();
  for (const [i, place] of places.entries()) {
    const routes = [{ host: `198.51.100.${i + 1}`, port: i === 0 ? undefined : 30_000 }];
    const { validator } = await joinLaunch(place, invitation, { ...PLAIN, routes });
    ids.set(place, validator);
  }
  const registrations = places.map((place) => readFileSync(validatorFiles(place).registration, 'utf8'));
  return {
    folder,
    launch,
    places,
    words,
    invitationFile,
    registrations: registrations as [string, string],
    bundleOf: (place: string) => join(launch, 'network/bundles', `harbour-${String(ids.get(place)).slice(0, 16)}.json`),
    codesOf: (...texts: string[]) =>
      gather(
        invitation,
        texts.map((text, i) => ({ file: `${i}.json`, text })),
      ).refused.map(({ file, code }) => `${file} ${code}`),
  };
}

/** The registration of this place, changed, as its validator would sign it. */
async function signedAnew(place: string, change: Partial<Registration>, newPeers?: string[]): Promise<string> {
  const files = validatorFiles(place);
  const keyFiles = { keyFile: files.key('consensus'), passwordFile: files.password('consensus') };
  const { privateKey } = await loadValidatorKey(keyFiles, 'consensus', 'development');
  const document = read(files.registration);
  const changed = { ...readRegistration(JSON.stringify(document.registration)), ...change };
  const registration = { ...changed, signature: signMessage(privateKey, registrationMessage(changed)) };
  const peers = newPeers ?? (document.peer_addresses as string[]);
  const message = joiningMessage(String(document.launch), registration, String(document.fee_address), peers);
  return JSON.stringify({
    ...document,
    registration: JSON.parse(showRegistration(registration)) as unknown,
    peer_addresses: peers,
    signature: toHex(signMessage(privateKey, message)),
  });
}

test('nothing that leaves the machine has a secret, and what stays is private', async () => {
  const { places } = await begin();
  const files = validatorFiles(places[0]);
  for (const file of [files.key('consensus'), files.password('consensus'), files.key('heartbeat-fee')])
    expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(files.keys).mode & 0o777).toBe(0o700);
  const sent = readFileSync(files.registration, 'utf8');
  for (const file of readdirSync(files.keys)) {
    const kept = readFileSync(join(files.keys, file), 'utf8').trim();
    expect(sent).not.toContain(
      file.endsWith('.json') ? ((JSON.parse(kept) as { sealed?: string }).sealed ?? kept) : kept,
    );
  }
  expect(Object.keys(read(files.registration)).sort()).toEqual(
    ['fee_address', 'format', 'launch', 'peer_addresses', 'registration', 'signature', 'version'].sort(),
  );
});

test('a registration that was changed anywhere is refused', async () => {
  const { registrations, codesOf } = await begin();
  const [first, second] = registrations;
  expect(codesOf(first, second)).toEqual([]);
  const other = JSON.parse(second) as Doc;
  const changes: Doc[] = [
    { fee_address: OWNER },
    { fee_address: other.fee_address },
    { peer_addresses: [] },
    { peer_addresses: ['/ip4/203.0.113.9/tcp/28705'] },
    { signature: other.signature },
    { registration: other.registration },
  ];
  const inner = (JSON.parse(first) as { registration: Doc }).registration;
  for (const field of ['owner_address', 'reward_address'])
    changes.push({ registration: { ...inner, [field]: TREASURY } });
  changes.push({ registration: { ...inner, commission_bps: 10 } }, { registration: { ...inner, amount: '2000000' } });
  for (const change of changes) {
    const changed = JSON.stringify({ ...(JSON.parse(first) as Doc), ...change });
    expect(codesOf(changed), JSON.stringify(Object.keys(change))).toEqual(['0.json launch_altered']);
  }
  for (const text of ['', '[]', 'null', '{}', first.slice(0, -100), JSON.stringify({ ...other, more: 1 })])
    expect(codesOf(text)).toEqual(['0.json launch_file']);
});

test('one for another network, another invitation or another bond is refused, though it is signed', async () => {
  const { places, codesOf } = await begin();
  const testnet = formatAddress(developmentKey('an owner').address, 'testnet');
  const onTestnet = { ...WISHES, network: 'testnet', intervalCuts: 34_560, treasury: testnet } as const;
  for (const wishes of [{ ...WISHES, seed: 'cd'.repeat(32) }, { ...WISHES, validators: 3 }, onTestnet]) {
    const place = join(temporaryDirectory(), 'place');
    await joinLaunch(place, invite(wishes), { ...PLAIN, owner: wishes === onTestnet ? testnet : OWNER });
    expect(codesOf(readFileSync(validatorFiles(place).registration, 'utf8'))).toEqual(['0.json launch_other']);
  }
  // The other network and the other bond, signed anew with the validator's own key.
  expect(codesOf(await signedAnew(places[0], { principal: 2_000_000n * COIN }))).toEqual(['0.json launch_terms']);
});

test('whatever a validator signs, a genesis follows or its file is named', async () => {
  const { places, registrations, invitationFile, codesOf } = await begin();
  const [place] = places;
  const sign = (change: Partial<Registration>, peers?: string[]) => signedAnew(place, change, peers);
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
  const bad = [
    await sign({ rewardAddress: burnAddressPayload() }),
    await sign({ owner: burnAddressPayload() }),
    await sign({ commission: 5 }),
    await sign({ endpoint: new Uint8Array(3) }),
    await sign({ endpoint: new Uint8Array(65_535) }),
    await sign({}, ['/ip4/198.51.100.1/tcp/65536']),
    await sign({}, ['/ip4/198.51.100.256/tcp/28705']),
    JSON.stringify({ ...(JSON.parse(registrations[0]) as Doc), registration: 0 }).replace(':0,', `:${deep},`),
  ];
  expect(codesOf(...bad)).toEqual(bad.map((_, i) => `${i}.json launch_file`));
  const bundle = {
    format: 'svc-launch-bundle',
    version: 1,
    validator: 'ab'.repeat(48),
    registrations: [{}],
    genesis: 0,
  };
  const file = join(temporaryDirectory(), 'bundle.json');
  const text = JSON.stringify({ ...bundle, invitation: read(invitationFile) });
  writeFileSync(file, text.replace('"genesis":0', `"genesis":${deep}`));
  expect((await run(joinCommand, file, '--out', place)).err).toContain('[launch_file]');
});

test('the second of two files of one validator is refused', async () => {
  const { registrations, codesOf } = await begin();
  const [first, second] = registrations;
  expect(codesOf(first, second, first)).toEqual(['2.json launch_duplicate']);
});

test('an invitation is refused where a term was changed', async () => {
  const { invitationFile } = await begin();
  const changed = join(temporaryDirectory(), 'invitation.json');
  for (const change of [{ bond: '1' }, { validators: 9 }, { outputs: [] }, { name: 'haven' }, { minimum_work: '65' }]) {
    writeFileSync(changed, JSON.stringify({ ...read(invitationFile), ...change }));
    const out = join(temporaryDirectory(), 'place');
    const { code, err } = await run(joinCommand, changed, '--owner', OWNER, '--out', out);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('[launch_altered]') });
    expect(existsSync(out)).toBe(false);
  }
});

test('terms from which no genesis could follow are refused before anybody is invited', () => {
  const refusal = (change: Partial<Wishes>): string => {
    try {
      return JSON.stringify(invite({ ...WISHES, ...change }));
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(refusal({ bond: 99_999n * COIN })).toMatch(/at least 100000/);
  expect(refusal({ validators: 20 })).toMatch(/coins more are given than the 20,000,000/);
  expect(refusal({ treasury: undefined })).toMatch(/--treasury/);
  expect(refusal({ treasury: 'tsvc1q' })).toMatch(/address|tsvc/i);
  expect(refusal({ feeCoins: 0n })).toMatch(/--fee-coins/);
  expect(refusal({ network: 'development', intervalCuts: 25 })).toMatch(/multiple/);
  expect(refusal({ initialWork: 1 })).toMatch(/--minimum-work/);
  const { outputs } = invite({ ...WISHES, faucet: { address: OWNER, amount: 1_000n * COIN + 1n } });
  expect(outputs.filter(({ address }) => address === OWNER)).toHaveLength(Number(FAUCET_OUTPUTS));
  const given = outputs.reduce((sum, { amount }) => sum + parseCoins(amount), 0n);
  expect(given + 2n * (WISHES.bond + WISHES.feeCoins)).toBe(20_000_000n * COIN);
});

test('the whole launch: waiting, refusing, the network, and each bundle at its validator alone', async () => {
  const { folder, launch, places, words, bundleOf, registrations } = await begin();
  const put = (name: string, text: string) => writeFileSync(join(launch, 'registrations', name), text);
  const [first, second] = registrations;
  put('a.json', first);
  expect(await run(launchCommand, ...words, '--json')).toMatchObject({
    code: 0,
    out: expect.stringContaining('"state":"waiting"'),
  });
  put('b.json', first);
  const doubled = await run(launchCommand, ...words);
  expect(doubled.err, 'nothing that is not for a terminal').not.toContain('\\u000a');
  expect(doubled).toMatchObject({ code: 1, err: expect.stringMatching(/b\.json: .*a\.json.*\[launch_duplicate\]/s) });
  expect(existsSync(join(launch, 'network'))).toBe(false);
  put('b.json', second);
  const ready = await run(launchCommand, ...words, '--validators', '2', '--json');
  expect(ready).toMatchObject({ code: 0, err: '' });
  const { chain_id: chain, bundles } = JSON.parse(ready.out) as { chain_id: string; bundles: string[] };
  expect(bundles).toHaveLength(2);
  // The same command again changes nothing.
  expect(await run(launchCommand, ...words)).toMatchObject({ code: 0, out: expect.stringContaining(chain) });
  expect((await run(launchCommand, ...words, '--validators', '3')).err).toContain('[launch_terms]');

  const genesis = readGenesis(readFileSync(join(launch, 'network/genesis.json'), 'utf8'));
  expect(genesis).toMatchObject({ intervalCuts: 120, network: 'development' });
  expect(genesis.validators.map(({ principal }) => principal)).toEqual([1_000_000n * COIN, 1_000_000n * COIN]);
  const [place, elsewhere] = places;
  const refused = await run(joinCommand, bundleOf(elsewhere), '--out', place);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('[launch_other]') });

  // A coordinator who gives a treasury more, or leaves a term out, is found.
  const bundle = read(bundleOf(place));
  const forged = join(temporaryDirectory(), 'bundle.json');
  const own = bundle.registrations as Doc[];
  const theirs = { ...(bundle.genesis as Doc), minimum_work: '1' };
  for (const change of [{ genesis: theirs }, { registrations: [own[0]] }, { registrations: [own[1], own[1]] }]) {
    writeFileSync(forged, JSON.stringify({ ...bundle, ...change }));
    const { code, err } = await run(joinCommand, forged, '--out', place);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/\[launch_(altered|terms|duplicate)\]/) });
  }
  expect(existsSync(validatorFiles(place).config)).toBe(false);
  expect(await run(joinCommand, bundleOf(place), '--out', join(folder, 'nowhere'))).toMatchObject({
    code: 1,
    err: expect.stringContaining('[launch_missing]'),
  });

  for (const [i, mine] of places.entries()) {
    const taken = await run(joinCommand, bundleOf(mine), '--out', mine);
    expect(taken).toMatchObject({ code: 0, err: '', out: expect.stringContaining(chain) });
    // The config is one that svcd reads.
    const config = validatorFiles(mine).config;
    const parsed = parseCommandLine(
      { name: 'svcd run', summary: '', options: runOptions },
      ['--config', config],
      (path) => readFileSync(path, 'utf8'),
    );
    if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
    const { bootstrap, cutMillis, genesis: document, overlayListen, p2pListen } = parsed.values;
    expect(bootstrap).toEqual([expect.stringMatching(`^/ip4/198.51.100.${2 - i}/tcp/28705/p2p/12D3Koo`)]);
    expect({ cutMillis, document }).toEqual({ cutMillis: 500, document: validatorFiles(mine).genesis });
    expect(overlayListen).toEqual(i === 0 ? [] : [{ host: '::', port: 30_000 }]);
    expect(p2pListen).toEqual([{ host: '0.0.0.0', port: 28_705 }]);
    expect(readFileSync(validatorFiles(mine).genesis, 'utf8')).toBe(
      readFileSync(join(launch, 'network/genesis.json'), 'utf8'),
    );
    // Again, with all in place.
    expect(await run(joinCommand, bundleOf(mine), '--out', mine)).toMatchObject({ code: 0 });
  }
});

test('a folder that has something in it is left as it is', async () => {
  const { invitationFile, places } = await begin();
  const out = temporaryDirectory();
  mkdirSync(join(out, 'precious'));
  const { code, err } = await run(joinCommand, invitationFile, '--owner', OWNER, '--out', out);
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('[launch_exists]') });
  expect(readdirSync(out)).toEqual(['precious']);
  const again = await run(joinCommand, invitationFile, '--owner', OWNER, '--out', places[0]);
  expect(again.err).toMatch(/has joined already.*\[launch_exists\]/);
  expect((await run(joinCommand, invitationFile, '--out', join(out, 'new'))).code).toBe(2);
  expect((await run(launchCommand, 'A name')).code).toBe(2);
  expect((await run(launchCommand, 'harbour', '--out', join(out, 'new'))).code).toBe(2);
});

test('without an address where peers reach anybody there is no network', async () => {
  const place = temporaryDirectory();
  const alone = join(place, 'alone');
  const line = ['alone', '--out', alone, '--network', 'development', '--treasury', TREASURY, '--validators', '1'];
  expect((await run(launchCommand, ...line)).code).toBe(0);
  const invitation = read(join(alone, 'invitation.json')) as Invitation;
  const { document } = await joinLaunch(join(place, 'v'), invitation, PLAIN);
  writeFileSync(join(alone, 'registrations/v.json'), showDocument(document));
  expect((await run(launchCommand, ...line)).err).toContain('[launch_unreachable]');
  expect(readdirSync(alone).sort()).toEqual(['invitation.json', 'registrations']);
});
