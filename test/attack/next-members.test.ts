/** Those that may sit in the next committee meet before it begins. A node signs for few strangers, so strangers with keys of their own must not use that up. */
import { expect, onTestFinished, test } from 'vitest';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import { PROOFS } from '../../node/consensus/reach/overlay-limits.ts';
import type { OverlayAddress } from '../../node/consensus/reach/overlay-listeners.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

const NOW = steadyMillis();

async function open(name: string, neighbours: readonly ListenAddress[] = []) {
  const { publicKey, privateKey } = developmentKey(name);
  const transport = new Overlay(
    { chainId: new Uint8Array(48), binds: [{ host: '127.0.0.1', port: 0 }], neighbours },
    {
      log: silentLog,
      // Nothing is regained meanwhile.
      steady: () => NOW,
      members: () => [],
      signer: { publicKey, sign: async (message: Bytes) => signMessage(privateKey, message) },
    },
  );
  const [address] = (await transport.listen()) as [OverlayAddress];
  const joined: Peer[] = [];
  transport.start({ joined: (peer) => void joined.push(peer), left: () => undefined, message: () => undefined });
  onTestFinished(() => transport.close());
  return { transport, address, joined };
}

test('strangers that use up what a node signs for them keep no next member from knowing it; until it has a seat it is a stranger too', async () => {
  const next = validatorName(1);
  const { publicKey } = developmentKey(next);
  const { transport, address, joined } = await open(validatorName(0));
  const listed = { id: validatorId(publicKey), publicKey, routes: [], overlayKey: new Uint8Array(32) };
  transport.know({ own: { id: new Uint8Array(48), routes: [] }, validators: [listed] });
  const strangers = await open('alice', new Array(PROOFS.burst + 1).fill(address));
  const known = () => strangers.joined.filter((peer) => strangers.transport.proven(peer) !== undefined).length;
  await until(() => strangers.joined.length > PROOFS.burst);
  expect(known()).toBe(PROOFS.burst);
  const member = await open(next, [address]);
  await until(() => member.joined.length > 0 && joined.length > PROOFS.burst + 1);
  expect(member.transport.proven(member.joined[0] as Peer)?.key).toEqual(developmentKey(validatorName(0)).publicKey);
  expect(transport.proven(joined.at(-1) as Peer)?.key).toEqual(publicKey);
  expect(transport.known()).toEqual([]);
});
