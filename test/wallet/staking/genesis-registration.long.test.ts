/** `validator-genesis-registration`: what it writes `svcd genesis` reads, and on that chain the wallet owns the validator. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeGenesis } from '../../../node/genesis/make-genesis.ts';
import { burnAddressPayload, formatAddress } from '../../../protocol/address.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { ApiBed } from '../../api/api-bed.ts';
import { START_MILLIS } from '../../node/bed.ts';
import { anEndpoint } from '../../staking/signed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { runCommand, runJson } from '../commands.ts';
import { WalletFiles } from '../wallet-files.ts';

const COIN = 100_000_000n;
const INTERVAL = 24;

test('a registration for genesis: refusals, the file, and the validator on the new chain', async () => {
  const directory = temporaryDirectory();
  const files = new WalletFiles(directory);
  await files.write();
  const file = join(directory, 'registrations/a.json');
  const words = (...more: string[]) => [
    'validator-genesis-registration',
    '--file',
    files.file,
    '--registration-file',
    file,
    '--overlay-endpoint-hex',
    toHex(anEndpoint(7)),
    '--amount',
    '250000',
    ...more,
  ];
  const refusal = async (...more: string[]) => (await runCommand(words(...more))).stderr;
  expect(await refusal('--commission-bps', '15')).toContain('[commission_invalid]');
  expect(await refusal('--reward-address', 'nobody')).toContain('[address_invalid]');
  const burn = formatAddress(burnAddressPayload(), 'development');
  expect(await refusal('--reward-address', burn)).toContain('[burn_needs_method]');
  const small = words().map((word) => (word === '250000' ? '99999' : word));
  expect((await runCommand(small)).stderr).toContain('[stake_below_minimum]');
  const unread = words().map((word) => (word === toHex(anEndpoint(7)) ? 'ff' : word));
  expect((await runCommand(unread)).stderr).toMatch(/svcd validator-endpoint.*\[endpoint_invalid\]/);

  const { validator, owner_address: owner } = await runJson(words('--commission-bps', '300'));
  expect(statSync(file).mode & 0o777).toBe(0o644);
  const registration = readFileSync(file, 'utf8');
  expect((await runCommand(words())).stderr).toContain('[file_exists]');
  expect(readFileSync(file, 'utf8')).toBe(registration);

  const genesis = makeGenesis({
    network: 'development',
    timestampMillis: START_MILLIS,
    powEpochLength: 1_036_800,
    intervalCuts: INTERVAL,
    initialWork: 1n,
    minimumWork: 1n,
    registrations: [registration],
    developmentValidators: 1,
    fund: [{ address: files.firstAddress, amount: 18_750_000n * COIN }],
  });
  const bed = await ApiBed.open({ bed: { options: { genesis } } });
  onTestFinished(() => bed.close());
  await bed.bed.seal();
  const { validator: shown } = await bed.client.stakingValidator({ id: validator as string });
  expect(shown).toMatchObject({
    state: 'committee',
    owner_address: owner,
    reward_address: files.firstAddress,
    commission_bps: 300,
    self_bond: (250_000n * COIN).toString(),
    endpoint: toHex(anEndpoint(7)),
  });
  const session = ['--file', files.file, '--service', bed.base, '--json'];
  const { positions } = JSON.parse((await runCommand(['positions', ...session])).stdout) as { positions: unknown[] };
  expect(positions).toMatchObject([{ kind: 'self_bond', validator, principal: '250000.00000000', state: 'bonded' }]);
  // It is the wallet's to change.
  const change = ['validator-commission', '--validator', validator as string, '--commission-bps', '100', '--yes'];
  expect(JSON.parse((await runCommand([...change, ...session])).stdout)).toMatchObject({
    kind: 'validator_commission',
  });
});
