/** Whatever a caller or a file says: an answer with a code, never an exception, never money that moved. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { entropyOfPhrase } from '../../../wallet/keys/phrase.ts';
import { openWalletFile, sealWalletFile } from '../../../wallet/keys/wallet-file.ts';
import { dispatch, METHODS, RPC_ERRORS, readRequest } from '../../../wallet/rpc/dispatch.ts';
import { WalletError } from '../../../wallet/wallet-error.ts';
import { count, seed } from '../../level.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, secretsOf } from '../open-wallet.ts';

const numRuns = count({ quick: 300, full: 1000, deep: 100_000 });

test('any text is a request or a refusal', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.jsonValue().map((value) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x', params: value })),
      ),
      (text) => {
        const read = readRequest(text);
        if ('jsonrpc' in read)
          expect('error' in read && [RPC_ERRORS.parse, RPC_ERRORS.request].includes(read.error.code as never)).toBe(
            true,
          );
        else expect(typeof read.method).toBe('string');
      },
    ),
    { numRuns, seed },
  );
});

test('any params of any method get an answer, and no fault inside', async () => {
  const node = new FakeNode();
  const { wallet } = await fundedWallet(node, [100_000_000n]);
  const names = Object.keys(METHODS).filter((name) => !['rescan', 'new_address', 'compound', 'receive'].includes(name));
  const fields = fc.constantFrom(
    'to',
    'amount',
    'request_id',
    'address',
    'label',
    'limit',
    'cursor',
    'since_height',
    'recipients',
    'request',
    'proof',
    'transaction',
    'dry_run',
  );
  const params = fc.oneof(
    fc.jsonValue(),
    fc.dictionary(fields, fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('1', '0.5', 'ff'.repeat(48))), {
      maxKeys: 5,
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names), params, async (method, value) => {
      const answer = await dispatch(wallet, { id: 1, method, params: value });
      if ('error' in answer)
        expect({ method, value, code: answer.error.code }).not.toMatchObject({ code: RPC_ERRORS.internal });
    }),
    { numRuns, seed },
  );
  expect(node.submissions).toBe(0);
});

test('a damaged wallet file or phrase is a refusal with a code', async () => {
  const text = await sealWalletFile(secretsOf('fuzz'), 'development', 'p', 10);
  await fc.assert(
    fc.asyncProperty(fc.nat(text.length - 1), fc.string({ minLength: 0, maxLength: 3 }), async (at, instead) => {
      const changed = text.slice(0, at) + instead + text.slice(at + 1);
      const opened = await openWalletFile(changed, 'p').catch((error: unknown) => error);
      // White space and the order of fields may change; anything else is noticed.
      if (opened instanceof Error) expect(opened).toBeInstanceOf(WalletError);
      else expect(JSON.parse(changed)).toEqual(JSON.parse(text));
    }),
    { numRuns: Math.min(numRuns, 2000), seed },
  );
  fc.assert(
    fc.property(fc.string({ maxLength: 300 }), (words) => {
      try {
        entropyOfPhrase(words);
      } catch (error) {
        expect(error).toBeInstanceOf(WalletError);
      }
    }),
    { numRuns, seed },
  );
});
