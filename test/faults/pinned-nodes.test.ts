/** A pinned identity: nothing counts that such a node did not sign, for this request and this chain; refusals included. */
import { expect, onTestFinished, test } from 'vitest';
import { newIdentity } from '../../node/api/identity.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { chainOfApi } from '../../pool/accountant/chain.ts';
import { statementOf } from '../../pool/accountant/reward-statements.ts';
import { createApiClient } from '../../protocol/api/client.ts';
import { toHex } from '../../protocol/bytes.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';
import { nodeClient } from '../../wallet/open.ts';
import { ApiBed, identity as apiIdentity } from '../api/api-bed.ts';
import { LyingNode } from './lying-node.ts';
import { httpNode, startMiningBed } from './mining-bed.ts';

const identity = newIdentity();
const ID = toHex(identity.identity);
const OTHER = toHex(newIdentity().identity);

test('a bridge takes templates and verdicts of a pinned node, and none that were touched, replayed or signed by another', async () => {
  const { bed, url, liar } = await startMiningBed({}, identity);
  const good = httpNode(url, 5_000, { identity: [OTHER, ID] });
  expect((await good.template(0)).header.length).toBe(312);
  const { header, body } = bed.make(developmentKey('alice').address);
  expect(await good.submit(header, body)).toEqual({ state: 'accepted' });
  await expect(httpNode(url, 5_000, { identity: OTHER }).template(0)).rejects.toThrow('another identity');
  await expect(httpNode(url, 5_000, { identity: ID, chainId: '11'.repeat(48) }).template(0)).rejects.toThrow(
    'signature',
  );

  const pinned = httpNode(liar.url, 5_000, { identity: ID });
  await pinned.template(0);
  liar.lie = { json: (_asked, document) => ({ ...document, fees: '12345' }) };
  await expect(pinned.template(0)).rejects.toThrow('answer_signature');
  // A refusal that the node did not sign is no verdict on a block.
  liar.lie = { http: (_asked, response) => response.writeHead(409).end('{"error":{"code":"block_too_late"}}') };
  await expect(pinned.submit(header, body)).rejects.toThrow('answer_unsigned');
  let kept: { status: number; headers: Record<string, string>; body: Buffer } | undefined;
  liar.lie = {
    async http(_asked, response, truth) {
      kept ??= await truth();
      response.writeHead(kept.status, { ...kept.headers, 'content-length': kept.body.length }).end(kept.body);
    },
  };
  await pinned.template(0);
  await expect(pinned.template(0)).rejects.toThrow('answer_nonce');
});

test('a false chain in an identity document spoils the answers until a true one comes, and no longer', async () => {
  const { liar } = await startMiningBed({}, identity);
  const pinned = httpNode(liar.url, 5_000, { identity: ID });
  liar.lie = {
    json: ({ path }, document) =>
      path === '/v1/node/identity' ? { ...document, chain_id: '11'.repeat(48) } : document,
  };
  await expect(pinned.template(0)).rejects.toThrow('answer_signature');
  liar.lie = {};
  expect((await pinned.template(0)).header.length).toBe(312);
});

test('without an identity the mining listener signs nothing, and a pinned bridge takes nothing', async () => {
  const { url } = await startMiningBed();
  await expect(httpNode(url, 5_000, { identity: ID }).template(0)).rejects.toThrow();
  expect((await httpNode(url, 5_000).template(0)).header.length).toBe(312);
});

test('a pool believes neither a reward nor the lack of one that its pinned node did not sign', async () => {
  const bed = await ApiBed.forTest();
  const liar = await LyingNode.start(bed.base);
  onTestFinished(() => liar.close());
  const miner = developmentKey('miner').address;
  const id = toHex(await bed.bed.mine(miner));
  await bed.bed.seal(97);
  const pin = { identity: toHex(apiIdentity.identity) };
  const chain = chainOfApi(createApiClient({ baseUrl: liar.url, attempts: 1, pin }, nodeTransport()), nodeTransport());
  expect(await statementOf(chain, id, 96)).toMatchObject({ kind: 'paid' });
  liar.lie = { json: (_asked, document) => ({ ...document, reward: { ...document.reward, amount: '99999999999' } }) };
  await expect(statementOf(chain, id, 96)).rejects.toMatchObject({ code: 'client_answer_unproven' });
  const unknown = JSON.stringify({ api_version: 1, error: { code: 'block_unknown', message: 'no such block' } });
  liar.lie = { http: (_asked, response) => response.writeHead(404).end(unknown) };
  await expect(statementOf(chain, id, 96)).rejects.toMatchObject({ code: 'client_answer_unproven' });
});

test('a wallet asks only its pinned node', async () => {
  const bed = await ApiBed.forTest();
  const liar = await LyingNode.start(bed.base);
  onTestFinished(() => liar.close());
  const client = nodeClient(liar.url, [toHex(apiIdentity.identity)]);
  expect((await client.nodeSync()).finalized_height).toBe(0);
  liar.lie = { json: (_asked, document) => ({ ...document, finalized_height: 7 }) };
  await expect(client.nodeSync()).rejects.toMatchObject({ code: 'client_answer_unproven' });
  await expect(nodeClient(bed.base, [OTHER]).nodeSync()).rejects.toMatchObject({ code: 'client_answer_unproven' });
});
