/** Rows of the specification's tables: endpoints, page sizes and sockets. */
import { expect } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { ROUTES, type RouteName } from '../../protocol/api/routes.ts';
import { toHex } from '../../protocol/bytes.ts';
import { answers, pages, type Row, route, socket, subject, tested } from './conformance-rows.ts';

export const ENDPOINTS_ROWS: readonly Row[] = [
  {
    table: 'Endpoints: public HTTP API',
    row: 'GET `/`',
    how: 'asked',
    check: async () => {
      const list = await (await subject.bed.get('/')).json();
      for (const name of Object.keys(ROUTES) as RouteName[])
        expect(list.routes.map((entry: { path: string }) => entry.path)).toContain(ROUTES[name].path);
    },
  },
  {
    table: 'Endpoints: public HTTP API',
    row: 'GET `/health`',
    how: 'asked',
    check: async () => {
      expect(await (await subject.bed.get('/health')).text()).toBe('ok');
    },
  },
  route('GET `/v1/address/{address}/balance`', 'addressBalance'),
  route('GET `/v1/address/{address}/utxos`', 'addressUtxos'),
  route('GET `/v1/address/{address}/history`', 'addressHistory'),
  route('GET `/v1/cuts`', 'cuts'),
  route('GET `/v1/cuts/{height}/transactions`', 'cutTransactions'),
  route('GET `/v1/cuts/{height}/changes`', 'cutChanges'),
  route('GET `/v1/transactions/recent`, `/v1/blocks/recent`', 'recentTransactions', 'recentBlocks'),
  route(
    'POST `/v1/address/balances`, `/v1/address/utxos`, `/v1/address/changes`',
    'addressBalances',
    'addressesUtxos',
    'addressChanges',
  ),
  route(
    'POST `/v1/mempool/pending`, `/v1/staking/positions`, `/v1/keys/registered`',
    'mempoolPending',
    'stakingPositions',
    'registeredKeys',
  ),
  route('POST `/v1/transactions/status`', 'transactionStatuses'),
  route('POST `/v1/proofs/utxos`', 'utxoProofs'),
  {
    table: 'Endpoints: public HTTP API',
    row: 'POST `/v1/transactions`',
    how: 'asked',
    check: async () => {
      const wire = subject.bed.bed.payment(
        [subject.bed.bed.treasury(5)],
        [{ address: developmentKey('alice').address, amount: 7n }],
      );
      expect(await answers('submitTransaction', { wire_hex: toHex(wire) })).toMatchObject({ status: 'accepted' });
      expect(await answers('submitTransaction', { wire_hex: toHex(wire) })).toMatchObject({ status: 'known' });
    },
  },
  route('GET `/v1/transactions/manifest`', 'manifest'),
  route('GET `/v1/transactions/{id}/status`', 'transactionStatus'),
  {
    table: 'Endpoints: public HTTP API',
    row: 'GET `/v1/blocks/{id}`',
    how: 'asked',
    check: async () => {
      expect(await answers('block', { id: subject.block })).toMatchObject({ reward: { state: 'paid' } });
    },
  },
  route('GET `/v1/chain/head`', 'chainHead'),
  route('GET `/v1/chain/rates`', 'chainRates'),
  route('GET `/v1/mempool`', 'mempool'),
  route('GET `/v1/node/identity`', 'nodeIdentity'),
  route('GET `/v1/node/sync`', 'nodeSync'),
  route('GET `/v1/node/status`', 'nodeStatus'),
  route('GET `/v1/economics/supply`', 'supply'),
  route('GET `/v1/economics/emission`', 'emission'),
  route('GET `/v1/economics/estimate/staking`', 'stakingEstimate'),

  pages('`/v1/cuts`: 20, at most 100', 'cuts', 20, 100),
  pages('`/v1/address/{address}/utxos`: not given (100 here), at most 512', 'addressUtxos', 100, 512),
  pages('`/v1/address/{address}/history`: 100, at most 256', 'addressHistory', 100, 256),
  pages('`/v1/cuts/{height}/transactions`: not given (20 here), at most 64', 'cutTransactions', 20, 64),
  pages('`/v1/cuts/{height}/changes`: 1,024, at most 4,096', 'cutChanges', 1024, 4096),
  pages('`/v1/transactions/recent`: 50, at most 500', 'recentTransactions', 50, 500),
  pages('`/v1/blocks/recent`: 50, at most 500', 'recentBlocks', 50, 500),

  socket('`/v1/events`, `svc.node-events.v1`', 'events'),
  socket('`/v1/ws`, `svc.node-api.v1`', 'live'),
  socket('`/v1/transactions/{id}/status/stream`, `svc.transaction-status.v1`', 'transactionStatus'),
  tested(
    'Endpoints: WebSockets',
    'binary frames end the connection',
    'test/api/events.long.test.ts, test/api/live.test.ts',
    async () => {
      const opened = subject.bed.socket('/v1/ws', 'svc.node-api.v1');
      await opened.opened();
      opened.ws.send(Buffer.of(1));
      expect((await opened.closed).code).toBe(1003);
    },
  ),
];
