/** The specification's table of operator commands, one test for each row that exists: run against a real node. */
import { expect, test } from 'vitest';
import { formatCoins, parseCoins } from '../../../protocol/amount.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { selfBondId, validatorId } from '../../../protocol/staking/names.ts';
import { WalletRoot } from '../../../wallet/keys/derivation.ts';
import { Keyring } from '../../../wallet/keys/keyring.ts';
import { anEndpoint } from '../../staking/signed.ts';
import { runCommand } from '../commands.ts';
import { COIN } from '../wallet-bed.ts';
import { WalletFiles } from '../wallet-files.ts';
import { operatorWallet } from './staking-bed.ts';

const HEX = toHex(anEndpoint(7));
const LAST_INDEX = 2_147_483_647;

async function setUp() {
  const { directory, files, chain, session } = await operatorWallet();
  const run = (...words: string[]) => runCommand([...words, ...session]);
  const json = async (...words: string[]) =>
    JSON.parse((await run(...words, '--json')).stdout) as Record<string, unknown> & { error?: { code: string } };
  return { directory, files, chain, run, json };
}

test('Operator commands: `validator-register`, `positions`, `validators`, `reward-address`', async () => {
  const { directory, files, chain, run, json } = await setUp();
  const key = new Keyring(new WalletRoot(files.phrase, '', 'development')).key({
    branch: 'receive',
    index: LAST_INDEX,
  });
  const validator = toHex(validatorId(key.publicKey));
  const position = toHex(selfBondId(validatorId(key.publicKey)));
  const register = (amount: string, ...more: string[]) => [
    'validator-register',
    '--amount',
    amount,
    '--overlay-endpoint-hex',
    HEX,
    ...more,
  ];

  // Refused before anything is signed, each with its reason.
  expect((await json(...register('99999.99999999'))).error?.code).toBe('stake_below_minimum');
  expect((await json(...register('100000', '--commission-bps', '15'))).error?.code).toBe('commission_invalid');
  expect((await json(...register('240000'))).error?.code).toBe('insufficient_funds');
  expect(
    (await json('validator-register', '--amount', '100000', '--overlay-endpoint-hex', 'no hex')).error,
  ).toMatchObject({
    code: 'endpoint_invalid',
    message: expect.stringContaining('svcd validator-endpoint'),
  });
  for (const wrong of [
    ['--commission-bps', '1001'],
    ['--consensus-key-index', '2147418111'],
  ])
    expect((await run(...register('100000', ...wrong))).status).toBe(2);
  const dry = await run(...register('100000', '--dry-run'));
  expect(dry.stdout).toMatch(
    new RegExp(
      `^Register validator ${validator}\\nwith a self-bond of 100000\\.0{8}, commission 5 %, consensus key ${LAST_INDEX},\\n`,
    ),
  );
  expect(dry.stdout).toContain(`rewards to ${files.firstAddress}, fee 0.`);
  expect(dry.stdout).toMatch(/\nNothing was signed or sent\.\n$/);
  expect([...chain.api.bed.node.mempool.list()]).toEqual([]);

  // With --wait the command ends when the registration is final; the chain goes on meanwhile.
  let done = false;
  const beating = (async () => {
    // Ten cuts at most before it arrives: on a slow machine it must not come an epoch later.
    for (let cuts = 0; !done; cuts++) {
      if (cuts < 10 || chain.api.bed.node.mempool.count > 0) await chain.beat();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  // As the specification writes it, without --yes: a script has no terminal to answer at.
  const registered = await json(...register('100000.5', '--wait', '--request-id', 'register')).finally(() => {
    done = true;
  });
  await beating;
  expect(registered).toMatchObject({
    duplicate: false,
    state: 'finalized',
    validator,
    position,
    amount: '100000.50000000',
  });
  const printed = await run(...register('100000.5', '--wait', '--request-id', 'register'));
  expect(printed.stdout).toMatch(
    new RegExp(
      `^validator-register 100000\\.50000000, fee 0\\.\\d{8}, finalized\\nvalidator ${validator}\\nposition ${position}\\n`,
    ),
  );
  const again = await json(...register('100000.5', '--wait', '--request-id', 'register'));
  expect(again).toMatchObject({ duplicate: true, state: 'finalized', validator, commission_bps: 500 });
  // One key serves one validator once.
  expect((await json(...register('100000'))).error?.code).toBe('consensus_key_used');

  const { positions } = (await json('positions')) as unknown as { positions: Record<string, unknown>[] };
  expect(positions).toMatchObject([
    { kind: 'self_bond', position, validator, principal: '100000.50000000', reward_address: files.firstAddress },
  ]);
  for (const command of ['unstake', 'withdraw'])
    expect((await json(command, '--position', position, '--yes')).error).toMatchObject({
      code: 'position_self_bond',
      message: expect.stringContaining(`svc-wallet validator-exit --validator ${validator}`),
    });
  expect((await run('validators')).stdout).toMatch(
    new RegExp(`\\n${validator}  eligible +100000\\.50000000 +100000\\.50000000  - +5\\.0 %\\n`),
  );

  const to = new WalletFiles(directory, 'cold').firstAddress;
  const redirected = await json('reward-address', '--position', position, '--to', to);
  expect(redirected).toMatchObject({ kind: 'reward_address', position, validator, amount: '0.00000000' });
  await chain.beat();
  const { validator: shown } = await chain.api.client.stakingValidator({ id: validator });
  expect(shown).toMatchObject({ reward_address: to, commission_bps: 500, endpoint: HEX, seat_from_epoch: 2 });
  const fees = parseCoins(again.fee as string) + parseCoins(redirected.fee as string);
  expect((await json('balance')).balance).toBe(formatCoins(240_000n * COIN - 10_000_050_000_000n - fees));
});
