/** A request id that was used: every staking method answers with what was done under it, in that request's own words, and no command claims to have done something else. */
import { beforeAll, expect, test } from 'vitest';
import { toHex } from '../../../protocol/bytes.ts';
import { useNativeSha384 } from '../../../runtime/native/native-sha384.ts';
import { type Context, send } from '../../../wallet/command/commands.ts';
import { STAKING_KINDS } from '../../../wallet/state/records.ts';
import { anEndpoint } from '../../staking/signed.ts';
import { runCommand, runJson } from '../commands.ts';
import { COIN, operatorWallet, ownAddress, stakingWallet, validatorAt } from './staking-bed.ts';

const HEX = toHex(anEndpoint(7));
const OTHER_HEX = toHex(anEndpoint(8));
const [LAST, BEFORE] = [2_147_483_647, 2_147_483_646];
beforeAll(useNativeSha384);

test('whichever method repeats an id, the first result comes, with its own terms', async () => {
  const { wallet, settle } = await stakingWallet([150_000n * COIN, 150_000n * COIN, 10n * COIN, 10n * COIN]);
  const reward = (await wallet.call('new_address', { label: 'rewards' })).address as string;
  const terms = { commission_bps: 300, reward_address: reward, consensus_key_index: BEFORE };
  const register = { amount: '100000', overlay_endpoint_hex: HEX, request_id: 'r' };
  const quote = await wallet.call('validator_register', { ...register, ...terms, dry_run: true });
  expect(quote).toMatchObject({ submitted: false, ...terms });
  const first = await wallet.call('validator_register', { ...register, ...terms });
  expect(first).toMatchObject({ duplicate: false, ...terms });
  await settle();
  const expected = { ...first, duplicate: true, state: 'finalized' };
  const { validator, position } = first as { validator: string; position: string };
  const others: Record<(typeof STAKING_KINDS)[number] | 'send', object> = {
    stake: { validator: validatorAt(0), amount: '100' },
    unstake: { position },
    withdraw: { position },
    validator_register: { amount: '120000', overlay_endpoint_hex: OTHER_HEX, consensus_key_index: LAST },
    reward_address: { position, to: ownAddress('somebody') },
    validator_heartbeat: { validator },
    validator_rotate: { validator, consensus_key_index: LAST, overlay_endpoint_hex: OTHER_HEX },
    validator_endpoint: { validator, consensus_key_index: BEFORE, overlay_endpoint_hex: OTHER_HEX },
    validator_commission: { validator, commission_bps: 10 },
    validator_exit: { validator },
    send: { to: ownAddress('somebody'), amount: '1' },
  };
  expect(Object.keys(others).sort()).toEqual([...STAKING_KINDS, 'send'].sort());
  for (const [method, params] of Object.entries(others)) {
    expect(await wallet.call(method, { ...params, request_id: 'r' }), method).toEqual(expected);
    if (method !== 'send')
      expect(await wallet.call(method, { ...params, request_id: 'r', dry_run: true }), method).toEqual(expected);
  }
  // Nothing was done by them.
  await settle();
  expect((await wallet.call('requests', { prefix: 'r' })).requests).toMatchObject([terms]);
  expect((await wallet.call('positions')).positions).toMatchObject([{ state: 'bonded', reward_address: reward }]);
});

test('changes say what they changed, and say it again', async () => {
  const { wallet, settle } = await stakingWallet([150_000n * COIN, 10n * COIN, 10n * COIN, 10n * COIN, 10n * COIN]);
  const made = await wallet.call('validator_register', {
    amount: '100000',
    overlay_endpoint_hex: HEX,
    request_id: 'r',
  });
  const { validator, position } = made as { validator: string; position: string };
  expect(made).toMatchObject({ commission_bps: 500, reward_address: ownAddress('test'), consensus_key_index: LAST });
  await settle();
  const to = ownAddress('somebody');
  const changes = [
    [
      'validator_commission',
      { validator, commission_bps: 200 },
      { validator, commission_bps: 210 },
      { commission_bps: 200 },
    ],
    ['reward_address', { position, to }, { position, to: ownAddress('else') }, { reward_address: to }],
    [
      'validator_rotate',
      { validator, consensus_key_index: BEFORE, overlay_endpoint_hex: OTHER_HEX },
      { validator, consensus_key_index: BEFORE - 1, overlay_endpoint_hex: HEX },
      { consensus_key_index: BEFORE },
    ],
    [
      'stake',
      { validator: validatorAt(0), amount: '100', reward_address: to },
      { validator: validatorAt(1), amount: '200' },
      { reward_address: to, validator: validatorAt(0), amount: '100.00000000' },
    ],
  ] as const;
  for (const [method, params, other, shown] of changes) {
    const first = await wallet.call(method, { ...params, request_id: method });
    expect(first, method).toMatchObject({ ...shown, duplicate: false });
    await settle();
    const again = await wallet.call(method, { ...other, request_id: method });
    expect(again, method).toEqual({ ...first, duplicate: true, state: 'finalized' });
  }
});

test('a command whose request id was another operation is refused; the same one says that it was made before', async () => {
  const { chain, files, session } = await operatorWallet();
  const run = (...words: string[]) => runCommand([...words, ...session]);
  const register = ['validator-register', '--amount', '100000', '--overlay-endpoint-hex', HEX, '--request-id', 'r'];
  const { validator } = await runJson([...register, '--yes', ...session]);
  await chain.beat();
  const mine = ['--validator', validator as string];
  for (const words of [['--yes'], ['--yes', '--wait'], ['--dry-run']]) {
    const exit = await run('validator-exit', ...mine, ...words, '--request-id', 'r');
    expect(exit.status).toBe(1);
    expect(exit.stdout).toBe('');
    expect(exit.stderr).toMatch(/request r was a validator-register.*nothing .*\[request_id_used\]/);
  }
  expect(await runJson(['validator-exit', ...mine, '--yes', '--request-id', 'r', ...session])).toMatchObject({
    error: { code: 'request_id_used' },
  });
  const { validator: shown } = await chain.api.client.stakingValidator({ id: validator as string });
  expect(shown.state).toBe('eligible');
  // A payment is not the registration either.
  const terminal = { out: () => undefined, err: () => undefined, readText: () => '', env: {} };
  const prompt = { interactive: false, ask: async () => '', askHidden: async () => '', readAll: async () => '' };
  const [file, service] = [session[1] as string, session[3] as string];
  const values = { file, service, passwordFile: undefined, json: false } as unknown as Context['values'];
  const wish = { to: files.firstAddress, amount: '1', yes: true, requestId: 'r', terms: {} };
  await expect(send({ values, terminal, prompt }, wish)).rejects.toMatchObject({ code: 'request_id_used' });
  // With other terms the answer is still about the first.
  const again = await run(...register, '--commission-bps', '0', '--yes');
  expect(again).toMatchObject({ status: 0, stderr: expect.stringContaining('request r was made before') });
  expect(again.stdout).toMatch(/^validator-register 100000\.00000000, fee .*finalized\n/);
  expect(again.stdout).toMatch(/commission 5\.0 %/);
  const dry = await run(...register, '--dry-run');
  expect(dry.stderr).toContain('request r was made before');
});
