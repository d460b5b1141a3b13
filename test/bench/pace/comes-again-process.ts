/** `member`, the chain's identifier and ports of overlays: a member that comes again and again, in a process of its own, because what it says costs it as much as those that hear it. */
import { randomBytes } from 'node:crypto';
import { encodeBlockMessage } from '../../../node/consensus/driver/block-exchange.ts';
import { ECHO_TYPES } from '../../../node/consensus/reach/link-echo.ts';
import { developmentKey, validatorName } from '../../../node/genesis/development.ts';
import { type Bytes, fromHex } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ComesAgain } from '../../attack/comes-again.ts';
import { haveAt } from '../../consensus/have-at.ts';

/** As often as a member's key is checked. */
const AGAIN_MILLIS = 200;
const SAID_AT_ONCE = 1_000;
const FAR_AHEAD = 1_000_000;

const [member, chainId, ...ports] = process.argv.slice(2) as [string, string, ...string[]];
const says: readonly Bytes[] = [
  haveAt(1),
  haveAt(FAR_AHEAD),
  encodeBlockMessage({ type: 'offer', ids: Array.from({ length: 64 }, () => randomBytes(ID_BYTES)) }),
  new Uint8Array([ECHO_TYPES.question, ...randomBytes(8)]),
];
const all = Array.from({ length: SAID_AT_ONCE }, (_, i) => says[i % says.length] as Bytes);
const key = developmentKey(validatorName(Number(member)));
const ends = ports.map((port) => new ComesAgain(Number(port), fromHex(chainId), all, AGAIN_MILLIS, key));
process.once('SIGTERM', () => {
  process.stdout.write(`${ends.reduce((sum, { met }) => sum + met, 0)}\n`);
  process.exit();
});
