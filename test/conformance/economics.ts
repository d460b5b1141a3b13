/** Economic rules, as far as a running chain of the first interval shows them. */
import assert from 'node:assert/strict';
import { documentAt, until } from './client.ts';
import { type Fact, factsOf, NotChecked } from './fact.ts';

const COIN = 100_000_000n;
const MAX = 200_000_000n * COIN;
const PER_CUT = (15_625n * COIN) / 1000n;
const supplyOf = async (api: string) => {
  const document = await documentAt(`${api}/v1/economics/supply`);
  return { height: Number(document.finalized_height), of: (name: string) => BigInt(String(document[name])) };
};

export const ECONOMICS: readonly Fact[] = factsOf('Economic rules', {
  'maximum supply: 200,000,000 coins': async ({ api }) => {
    assert.equal((await supplyOf(api)).of('max_supply'), MAX);
  },
  'the invariant: total = circulating + bonded + unbonding + work reserve + stake reserve, over ten answers': async ({
    api,
  }) => {
    for (let i = 0; i < 10; i++) {
      const { of } = await supplyOf(api);
      const parts = ['circulating_supply', 'bonded', 'unbonding', 'work_reserve', 'stake_reserve'].map(of);
      assert.equal(
        of('total_supply'),
        parts.reduce((sum, part) => sum + part, 0n),
      );
      assert.equal(of('total_supply'), of('minted') - of('burned'));
    }
  },
  'the first interval mints 15.625 coins per cut': async ({ api }) => {
    const first = await supplyOf(api);
    if (first.height >= 34_560) throw new NotChecked('needs a chain in its first interval');
    let later = first;
    while (later.height === first.height) later = await supplyOf(api);
    assert.equal(later.of('minted') - first.of('minted'), BigInt(later.height - first.height) * PER_CUT);
    assert.equal(
      first.of('unscheduled_emission') - later.of('unscheduled_emission'),
      BigInt(later.height - first.height) * PER_CUT,
    );
  },
  'half of each subsidy goes into the stake reserve, and half of the fees with it': async ({ api }) => {
    const first = await supplyOf(api);
    const later = await until(
      () => supplyOf(api),
      ({ height }) => height > first.height,
    );
    if (later.height >= 34_560) throw new NotChecked('needs a chain in its first interval');
    const cuts = BigInt(later.height - first.height);
    const grown = later.of('stake_reserve') - first.of('stake_reserve');
    assert.ok(grown >= (cuts * PER_CUT) / 2n && grown < cuts * PER_CUT, `${grown} in ${cuts} cuts`);
  },
  'the emission document has the subsidy of 15.625 coins and the cut at which it is reduced': async ({ api }) => {
    const { height } = await supplyOf(api);
    if (height >= 34_560) throw new NotChecked('needs a chain in its first interval');
    const values = Object.values(await documentAt(`${api}/v1/economics/emission`));
    assert.ok(values.includes(String(PER_CUT)), JSON.stringify(values));
    assert.ok(
      values.some((value) => value === 34_560 || value === 34_561),
      JSON.stringify(values),
    );
  },
  'what is minted and what is to come never exceed the maximum': async ({ api }) => {
    const { of } = await supplyOf(api);
    assert.ok(of('minted') + of('unscheduled_emission') <= MAX);
  },
  'the expected staking reward grows with the amount, and not faster': async ({ api }) => {
    // Not in proportion: the amount would be part of the stake that shares.
    const expected = async (coins: bigint) => {
      const answer = await documentAt(`${api}/v1/economics/estimate/staking?amount=${coins * COIN}`);
      const [, atoms] = Object.entries(answer).find(([name]) => name.includes('reward')) ?? [];
      return BigInt(String(atoms));
    };
    const [one, ten] = [await expected(100_000n), await expected(1_000_000n)];
    assert.ok(one < ten && ten <= 11n * one, `${one}, then ${ten}`);
  },
});
