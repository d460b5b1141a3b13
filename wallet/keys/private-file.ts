/** Files that only their owner may read: the wallet, its password, its token, its words. The rule is runtime/files/private-file.ts. */
import { readPrivateFile as read } from '../../runtime/files/private-file.ts';
import { WalletError, type WalletErrorCode } from '../wallet-error.ts';

export { PRIVATE_MODE } from '../../runtime/files/private-file.ts';

/** Undefined when there is no such file. */
export function readPrivateFile(path: string, refusal: WalletErrorCode): string | undefined {
  const file = read(path);
  if (file.kind === 'missing') return undefined;
  if (file.kind !== 'text') throw new WalletError(refusal, file.reason, { path });
  return file.text;
}
