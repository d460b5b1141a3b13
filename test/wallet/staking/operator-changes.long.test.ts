/** The specification's commands by which the owner of a validator changes it, one test for each row, against a real node. */
import { beforeAll, expect, test } from 'vitest';
import { formatAddress, keyAddressPayload } from '../../../protocol/address.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { selfBondId, validatorId } from '../../../protocol/staking/names.ts';
import { useNativeSha384 } from '../../../runtime/native/native-sha384.ts';
import { WalletRoot } from '../../../wallet/keys/derivation.ts';
import { Keyring } from '../../../wallet/keys/keyring.ts';
import { anEndpoint } from '../../staking/signed.ts';
import { runCommand, runJson } from '../commands.ts';
import { INTERVAL, operatorWallet, validatorAt } from './staking-bed.ts';

const HEX = toHex(anEndpoint(7));
const OTHER_HEX = toHex(anEndpoint(8));
const LAST = 2_147_483_647;
beforeAll(useNativeSha384);

/** A wallet whose validator was registered in the first cut. */
async function setUp() {
  const { files, chain, session } = await operatorWallet();
  const keyring = new Keyring(new WalletRoot(files.phrase, '', 'development'));
  const keyAt = (index: number) => keyring.key({ branch: 'receive', index }).publicKey;
  const id = validatorId(keyAt(LAST));
  const validator = toHex(id);
  const run = (...words: string[]) => runCommand([...words, ...session]);
  const json = (...words: string[]) => runJson([...words, ...session]);
  const register = ['validator-register', '--amount', '100000', '--overlay-endpoint-hex', HEX, '--yes'];
  expect(await json(...register)).toMatchObject({ submitted: true });
  await chain.beat();
  const shown = async () => (await chain.api.client.stakingValidator({ id: validator })).validator;
  const sealTo = (height: number) => chain.api.bed.seal(height - 1 - chain.api.bed.node.chain.head().height);
  const addressAt = (index: number) => formatAddress(keyAddressPayload(keyAt(index)), 'development');
  const refused = async (...words: string[]) => (await json(...words, '--yes')).error?.code;
  const mine = ['--validator', validator];
  return { chain, run, json, refused, validator, position: toHex(selfBondId(id)), shown, sealTo, addressAt, mine };
}

test('Operator commands: `validator-heartbeat`', async () => {
  const { chain, run, json, refused, shown, sealTo, mine } = await setUp();
  // Registration counts as the heartbeat of its epoch.
  expect(await refused('validator-heartbeat', ...mine)).toBe('heartbeat_repeated');
  await sealTo(INTERVAL);
  const dry = await run('validator-heartbeat', ...mine, '--dry-run');
  expect(dry.stdout).toMatch(/^Heartbeat of [0-9a-f]{96}\nfee 0\.\d{8}\nNothing was signed or sent\.\n$/);
  expect(await refused('validator-heartbeat', ...mine, '--consensus-key-index', '2147483646')).toBe(
    'consensus_key_inactive',
  );
  expect(await refused('validator-heartbeat', '--validator', validatorAt(0))).toBe('validator_not_mine');
  expect(await refused('validator-heartbeat', '--validator', 'ab'.repeat(48))).toBe('validator_unknown');
  const sent = await json('validator-heartbeat', ...mine, '--yes', '--request-id', 'beat');
  expect(sent).toMatchObject({ kind: 'validator_heartbeat', amount: '0.00000000', position: null, duplicate: false });
  expect(await refused('validator-heartbeat', ...mine)).toBe('validator_busy');
  await chain.beat();
  expect(await shown()).toMatchObject({ heartbeat_epoch: 1 });
  expect(await json('validator-heartbeat', ...mine, '--yes', '--request-id', 'beat')).toMatchObject({
    transaction: sent.transaction,
    duplicate: true,
    state: 'finalized',
  });
  expect(await refused('validator-heartbeat', ...mine)).toBe('heartbeat_repeated');
});

test('Operator commands: `validator-rotate`', async () => {
  const { chain, run, json, refused, shown, sealTo, addressAt, mine } = await setUp();
  const rotate = (index: number, hex = OTHER_HEX) => [
    'validator-rotate',
    ...mine,
    '--consensus-key-index',
    String(index),
    '--overlay-endpoint-hex',
    hex,
  ];
  expect((await run(...rotate(2_147_418_111))).status).toBe(2);
  expect(await refused(...rotate(LAST))).toBe('consensus_key_used');
  expect(await refused(...rotate(LAST - 1, '02'))).toBe('endpoint_invalid');
  const dry = await run(...rotate(LAST - 1), '--dry-run');
  expect(dry.stdout).toContain(`to index ${LAST - 1}, which signs from epoch 2 on at the earliest, fee 0.`);
  expect(await json(...rotate(LAST - 1), '--yes')).toMatchObject({ kind: 'validator_rotate' });
  await chain.beat();
  expect(await shown()).toMatchObject({
    consensus_key_address: addressAt(LAST),
    pending_consensus_key_epoch: 2,
    pending_endpoint: { endpoint: OTHER_HEX, epoch: 2 },
  });
  expect(await refused(...rotate(LAST - 2))).toBe('change_pending');
  await sealTo(2 * INTERVAL);
  expect(await shown()).toMatchObject({ consensus_key_address: addressAt(LAST - 1), endpoint: OTHER_HEX });
  // The identifier stays; the wallet finds the key that signs now.
  expect(await refused(...rotate(LAST - 1))).toBe('consensus_key_used');
  expect(await json('validator-heartbeat', ...mine, '--yes')).toMatchObject({ submitted: true });
  await chain.beat();
  expect(await shown()).toMatchObject({ heartbeat_epoch: 2 });
});

test('Operator commands: `validator-endpoint`', async () => {
  const { chain, run, json, refused, shown, sealTo, mine } = await setUp();
  const endpoint = (index: number, hex = OTHER_HEX) => [
    'validator-endpoint',
    ...mine,
    '--consensus-key-index',
    String(index),
    '--overlay-endpoint-hex',
    hex,
  ];
  expect(await refused(...endpoint(LAST - 1))).toBe('consensus_key_inactive');
  expect(await refused(...endpoint(LAST, '00'))).toBe('endpoint_invalid');
  expect((await run(...endpoint(LAST), '--dry-run')).stdout).toContain('from epoch 2 on at the earliest, fee 0.');
  expect(await json(...endpoint(LAST))).toMatchObject({ kind: 'validator_endpoint', duplicate: false });
  await chain.beat();
  expect(await shown()).toMatchObject({ endpoint: HEX, pending_endpoint: { endpoint: OTHER_HEX, epoch: 2 } });
  expect(await refused(...endpoint(LAST, HEX))).toBe('change_pending');
  await sealTo(2 * INTERVAL);
  expect(await shown()).toMatchObject({ endpoint: OTHER_HEX, pending_endpoint: null });
});

test('Operator commands: `validator-commission`, `validator-exit`', async () => {
  const { chain, run, json, refused, validator, position, shown, mine } = await setUp();
  const commission = (bps: string) => ['validator-commission', ...mine, '--commission-bps', bps];
  expect((await run(...commission('1001'))).status).toBe(2);
  expect(await refused(...commission('15'))).toBe('commission_invalid');
  expect((await run(...commission('300'), '--dry-run')).stdout).toContain('3 % from epoch 14 on at the earliest');
  // With --wait the command ends when the change is final; the chain goes on meanwhile.
  let done = false;
  const beating = (async () => {
    // Ten cuts at most before it arrives: on a slow machine the validator must not lapse meanwhile.
    for (let cuts = 0; !done; cuts++) {
      if (cuts < 10 || chain.api.bed.node.mempool.count > 0) await chain.beat();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  const waited = await json(...commission('300'), '--wait').finally(() => {
    done = true;
  });
  await beating;
  expect(waited).toMatchObject({ kind: 'validator_commission', duplicate: false, state: 'finalized', validator });
  expect(await shown()).toMatchObject({ commission_bps: 500, pending_commission: { commission_bps: 300 } });
  expect(await refused(...commission('400'))).toBe('change_pending');

  const dry = await run('validator-exit', ...mine, '--dry-run');
  expect(dry.stdout).toContain('every position of it unbonds, delegations too; this cannot be undone');
  const left = await json('validator-exit', ...mine, '--request-id', 'exit');
  expect(left).toMatchObject({ kind: 'validator_exit', validator, position });
  expect(await refused('validator-exit', ...mine)).toBe('position_busy');
  await chain.beat();
  expect(await shown()).toMatchObject({ state: 'exiting', stake: '0' });
  expect(await json('positions')).toMatchObject({
    positions: [{ position, kind: 'self_bond', state: 'unbonding', principal: '100000.00000000' }],
  });
  expect(await json('validator-exit', ...mine, '--yes', '--request-id', 'exit')).toMatchObject({ duplicate: true });
  for (const words of [commission('400'), ['validator-exit', ...mine], ['validator-heartbeat', ...mine]])
    expect(await refused(...words)).toBe('validator_inactive');
});
