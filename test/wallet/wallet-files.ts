import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { Keyring } from '../../wallet/keys/keyring.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { sealWalletFile, writeWalletFile } from '../../wallet/keys/wallet-file.ts';

/** A wallet file that opens quickly, and the address that genesis funds. */
export class WalletFiles {
  readonly file: string;
  readonly phrase: string;
  readonly firstAddress: string;

  readonly #entropy = new Uint8Array(randomBytes(32));

  constructor(directory: string, name = 'wallet') {
    this.file = join(directory, `${name}.json`);
    this.phrase = phraseOfEntropy(this.#entropy);
    const keyring = new Keyring(new WalletRoot(this.phrase, '', 'development'));
    this.firstAddress = keyring.addressRecord('receive', 0, 0).address;
  }

  async write(): Promise<void> {
    const secrets = { entropy: this.#entropy, passphrase: '' };
    await writeWalletFile(this.file, await sealWalletFile(secrets, 'development', 'test', 10));
    await writeDurably(`${this.file}.password`, 'test\n', 0o600);
  }
}
