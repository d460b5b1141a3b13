/** The wallet file by its one name. State, lock, token and password are beside it: under a second name they would be those of a second wallet, and both would pay. */
import { realpathSync, statSync } from 'node:fs';
import { WalletError } from '../wallet-error.ts';

/** Symbolic links are followed. A file with several hard links is refused, because its names cannot be distinguished. If the file cannot be inspected, reading it reports the error. */
export function walletPath(given: string): string {
  let file: string;
  let names: number;
  try {
    file = realpathSync(given);
    const found = statSync(file);
    names = found.isFile() ? found.nlink : 1;
  } catch {
    return given;
  }
  if (names > 1)
    throw new WalletError(
      'file_linked',
      `${file} has ${names} names (hard links), and each would have a state of its own: remove the others, or make copies of them`,
      { path: file },
    );
  return file;
}
