/** The overlay's own transport. Each end proves the key of a member, as validators do. */
import { Overlay } from '../../../node/consensus/reach/overlay.ts';
import { developmentKey, validatorName } from '../../../node/genesis/development.ts';
import { signMessageAside } from '../../../node/ml-dsa.ts';
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../../runtime/command-line/command-line.ts';
import { silentLog } from '../../node/bed.ts';
import type { Line, Take } from './line.ts';

export async function ownLine(
  member: number,
  members: number,
  { listen, dial }: { readonly listen?: ListenAddress; readonly dial?: ListenAddress },
  take: Take,
): Promise<Line> {
  const keys = Array.from({ length: members }, (_, i) => developmentKey(validatorName(i)));
  const { publicKey, privateKey } = keys[member] as (typeof keys)[number];
  const transport = new Overlay(
    {
      chainId: new Uint8Array(48),
      binds: listen === undefined ? [] : [listen],
      neighbours: dial === undefined ? [] : [dial],
    },
    {
      log: silentLog,
      steady: steadyMillis,
      signer: { publicKey, sign: (message) => signMessageAside(privateKey, message) },
      members: () => keys,
    },
  );
  await transport.listen();
  transport.start({ joined: () => undefined, left: () => undefined, message: (_, bytes) => take(bytes) });
  return {
    ends: () => transport.peers().length,
    send: (bytes, _kind, end) => {
      const peers = transport.peers();
      for (const peer of end === undefined ? peers : peers.slice(end, end + 1)) transport.send(peer, bytes);
    },
    close: () => transport.close(),
  };
}
