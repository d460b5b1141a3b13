/**
 * The registration of a validator for the genesis of a new chain (ledger rule 32): a document that `svcd genesis` reads. It needs neither a node nor coins: the self-bond is
 * part of what genesis gives out. The owner is the address that the wallet's later commands look for.
 */
import { parseAddress } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { registrationMessage } from '../../protocol/ledger/genesis.ts';
import { showRegistration } from '../../protocol/ledger/genesis-file.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { WalletRoot } from '../keys/derivation.ts';
import { Keyring } from '../keys/keyring.ts';
import type { Unlocked } from '../keys/password.ts';
import { phraseOfEntropy } from '../keys/phrase.ts';
import { signMessage } from '../keys/signing.ts';
import { checkTerms, type RegisterWish } from './registration.ts';

export type GenesisWish = Omit<RegisterWish, 'rewardAddress'> & {
  /** Default: the wallet's first address. */
  readonly rewardAddress: string | undefined;
};

export type GenesisRegistration = {
  /** Of the file. */
  readonly text: string;
  readonly validator: string;
  readonly owner: string;
  readonly rewardAddress: string;
};

export async function genesisRegistration(
  { secrets, network }: Unlocked,
  wish: GenesisWish,
): Promise<GenesisRegistration> {
  const endpoint = checkTerms(wish);
  const keyring = new Keyring(new WalletRoot(phraseOfEntropy(secrets.entropy), secrets.passphrase, network));
  try {
    const owner = keyring.addressRecord('change', 0, 0).address;
    const rewardAddress = wish.rewardAddress ?? keyring.addressRecord('receive', 0, 0).address;
    const payload = (address: string) => parseAddress(address, network).payload;
    const key = keyring.key({ branch: 'receive', index: wish.consensusKeyIndex });
    const registration = {
      network,
      publicKey: key.publicKey,
      principal: wish.amount,
      owner: payload(owner),
      rewardAddress: payload(rewardAddress),
      commission: wish.commissionBps,
      endpoint,
    };
    const signature = await signMessage(key, registrationMessage(registration));
    const validator = toHex(validatorId(key.publicKey));
    return { text: showRegistration({ ...registration, signature }), validator, owner, rewardAddress };
  } finally {
    keyring.close();
  }
}
