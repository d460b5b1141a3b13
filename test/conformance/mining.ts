/** Mining listener and mining protocol; Limits: miner tag. */
import assert from 'node:assert/strict';
import { documentAt, get, post, withLines, withSocket } from './client.ts';
import { type Fact, factsOf, needs, type Target } from './fact.ts';
import { newAddress } from './json-rpc.ts';
import { stratum as words } from './unshown.ts';

type Fields = Record<string, unknown>;

async function template(target: Target, asked: object = {}): Promise<Fields> {
  const body = { payout: needs(target.address, '--address'), max_transactions: 10, ...asked };
  const answer = await post(`${needs(target.mining, '--mining')}/v1/mining/templates`, body);
  assert.equal(answer.status, 200, answer.text.slice(0, 200));
  return answer.json;
}

/** Every text inside a value. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

const HEADER = /^[0-9a-f]{624}$/;

const login = <T>(target: Target, tag: string | undefined, use: (first: unknown, notify: unknown) => Promise<T> | T) =>
  withLines(needs(target.stratum, '--stratum'), async ({ call, notice }) => {
    const subscribed = await call('mining.subscribe', words.subscribe('conformance/1', tag));
    assert.equal(subscribed.error ?? null, null, JSON.stringify(subscribed));
    const user = `${needs(target.address, '--address')}.worker`;
    const authorized = await call(words.authorizeMethod, words.authorize(user));
    assert.equal(authorized.error ?? null, null, JSON.stringify(authorized));
    return await use(subscribed.result, (await notice('mining.notify')).params);
  });

export const MINING: readonly Fact[] = [
  ...factsOf('Mining listener', {
    'POST `/v1/mining/templates`: anchor, target, registration window, roots and the block body': async (target) => {
      const job = await template(target);
      for (const name of ['anchor', 'target', 'registration_window_end']) assert.ok(name in job, name);
      assert.ok(
        textsOf(job).some((text) => HEADER.test(text) && text.endsWith('0'.repeat(16))),
        'a header with a zeroed nonce',
      );
      assert.ok(Object.keys(job).some((name) => /root/.test(name)) || 'header_hex' in job);
      assert.ok(Object.keys(job).some((name) => /body/.test(name)));
    },
    '`registration_window_end` is 96 cuts after the anchor': async (target) => {
      const job = await template(target);
      assert.equal(Number(job.registration_window_end) - Number((job.anchor as Fields).height), 96);
    },
    'a template is drawn anew at most every 5 seconds: asked twice it is the same': async (target) => {
      const [first, second] = [await template(target), await template(target)];
      if ((first.anchor as Fields).height === (second.anchor as Fields).height)
        assert.equal(first.transactions_root, second.transactions_root);
    },
    'POST `/v1/mining/candidates`: what is no block is refused': async ({ mining }) => {
      const url = `${needs(mining, '--mining')}/v1/mining/candidates`;
      for (const body of [
        { header_hex: '00', body_hex: '00' },
        { header_hex: '00'.repeat(312), body_hex: '00' },
      ])
        assert.equal((await post(url, body)).status, 400);
    },
    'POST `/v1/mining/candidates`: a header without work is refused': async (target) => {
      const { header_hex, body_hex } = await template(target);
      // One nonce may happen to have the work; of eight none has, or the least work of the network is next to nothing.
      const statuses: number[] = [];
      for (let nonce = 0; nonce < 8; nonce++) {
        const header = `${String(header_hex).slice(0, -1)}${nonce}`;
        statuses.push((await post(`${target.mining}/v1/mining/candidates`, { header_hex: header, body_hex })).status);
      }
      assert.ok(statuses.includes(400), statuses.join());
    },
    'GET `/v1/events`: one event per finalized cut': async ({ mining }) => {
      await withSocket(`${needs(mining, '--mining')}/v1/events`, ['svc.node-events.v1'], async (socket) => {
        const heights: number[] = [];
        while (heights.length < 3) {
          const { data } = await socket.until('cut_finalized');
          heights.push((data.cut as { height: number }).height);
        }
        assert.deepEqual(
          heights,
          [0, 1, 2].map((i) => (heights[0] as number) + i),
        );
      });
    },
    'GET `/v1/node/sync`, `/v1/chain/rates`': async ({ mining }) => {
      const sync = await documentAt(`${needs(mining, '--mining')}/v1/node/sync`);
      assert.equal(typeof sync.synced, 'boolean');
      await documentAt(`${mining}/v1/chain/rates`);
    },
    'two payout addresses have two bodies': async (target) => {
      const [first, second] = [await template(target), await template(target, { payout: await newAddress(target) })];
      assert.notEqual(first.header_hex, second.header_hex);
      assert.notEqual(first.body_hex, second.body_hex);
    },
    'a payout that is no address, and a count that is none, are refused': async (target) => {
      const payout = needs(target.address, '--address');
      for (const body of [
        { payout: 'nobody', max_transactions: 10 },
        { payout, max_transactions: -1 },
        { payout, max_transactions: '10' },
        { payout, max_transactions: 1.5 },
        { max_transactions: 10 },
      ])
        assert.equal(
          (await post(`${needs(target.mining, '--mining')}/v1/mining/templates`, body)).status,
          400,
          JSON.stringify(body),
        );
    },
    '`GET /v1/node/sync` has the fields of the public one': async ({ api, mining }) => {
      const fields = async (url: string) => Object.keys(await documentAt(`${url}/v1/node/sync`)).sort();
      assert.deepEqual(await fields(needs(mining, '--mining')), await fields(api));
    },
    'a web page is refused': async ({ mining }) => {
      const answer = await get(`${needs(mining, '--mining')}/v1/node/sync`, { origin: 'https://stranger.example' });
      assert.equal(answer.status, 403);
    },
  }),
  ...factsOf('Mining protocol', {
    '`mining.subscribe` with an agent gives a nonce prefix': (target) =>
      withLines(needs(target.stratum, '--stratum'), async ({ call }) => {
        const { result } = await call('mining.subscribe', words.subscribe('conformance/1'));
        assert.ok(
          textsOf(result).some((text) => /^([0-9a-f]{2}){1,7}$/.test(text)),
          JSON.stringify(result),
        );
      }),
    '`<address>.<worker>` authorizes, and `mining.notify` carries a header of 312 bytes with a zeroed nonce': (
      target,
    ) =>
      login(target, undefined, (_, params) => {
        const header = textsOf(params).find((text) => HEADER.test(text));
        assert.ok(header !== undefined, 'no header of 312 bytes');
        assert.match(header, /0{16}$/);
      }),
    '`mining.notify` carries the block target and the share target, and a share is easier': (target) =>
      login(target, undefined, (_, params) => {
        const targets = Object.entries(params as Fields).filter(([name]) => /target/.test(name));
        assert.equal(targets.length, 2, targets.map(([name]) => name).join());
        const valueIn = (isShare: boolean) =>
          BigInt(`0x${targets.find(([name]) => /share/.test(name) === isShare)?.[1]}`);
        assert.ok(valueIn(true) >= valueIn(false));
      }),
    'two connections have two nonce prefixes': async (target) => {
      const at = needs(target.stratum, '--stratum');
      const prefixes = (result: unknown) => textsOf(result).filter((text) => /^([0-9a-f]{2}){1,7}$/.test(text));
      await withLines(at, async (first) =>
        withLines(at, async (second) => {
          const [one, other] = [
            await first.call('mining.subscribe', words.subscribe('conformance/1')),
            await second.call('mining.subscribe', words.subscribe('conformance/1')),
          ];
          assert.notDeepEqual(prefixes(one.result), prefixes(other.result));
        }),
      );
    },
    'a cut brings a job with another header': (target) =>
      withLines(needs(target.stratum, '--stratum'), async ({ call, notice }) => {
        await call('mining.subscribe', words.subscribe('conformance/1'));
        await call(words.authorizeMethod, words.authorize(`${needs(target.address, '--address')}.worker`));
        const headerOf = async () => textsOf((await notice('mining.notify')).params).find((text) => HEADER.test(text));
        const first = await headerOf();
        // A job may come again with another share target.
        while ((await headerOf()) === first);
      }),
    'an unknown method is an error under its id, and the connection goes on': (target) =>
      withLines(needs(target.stratum, '--stratum'), async ({ call }) => {
        const { error } = await call('mining.weather', {});
        assert.ok(error !== undefined && error !== null);
        const { result } = await call('mining.subscribe', words.subscribe('conformance/1'));
        assert.ok(result !== undefined && result !== null);
      }),
    'another username is refused': (target) =>
      withLines(needs(target.stratum, '--stratum'), async ({ call }) => {
        await call('mining.subscribe', words.subscribe('conformance/1'));
        const { error } = await call(words.authorizeMethod, words.authorize('nobody.worker'));
        assert.ok(error !== undefined && error !== null);
      }),
    'a tag of 20 of the allowed characters is accepted': (target) =>
      login(target, 'Aa0 ._-/:+@#()!xyz12', () => undefined),
    'a tag of 21 characters, or with another character, is refused': async (target) => {
      for (const tag of ['x'.repeat(21), 'tag*', 'ä'])
        await withLines(needs(target.stratum, '--stratum'), async ({ call }) => {
          const { error } = await call('mining.subscribe', words.subscribe('conformance/1', tag));
          assert.ok(error !== undefined && error !== null, tag);
        });
    },
  }),
];
