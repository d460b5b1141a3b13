/** Which vector file is made by which function. vectors/pow.json is not among them: two independent programs made it. */
import { addressVectors } from './address.ts';
import { emissionVectors, targetVectors } from './arithmetic.ts';
import { headerVectors, identifierVectors, merkleVectors, rewardRootVectors } from './block.ts';
import { booksVectors } from './books.ts';
import { chainVectors } from './chain.ts';
import { consensusVectors } from './consensus.ts';
import { evidenceVectors } from './evidence.ts';
import { messengerVectors } from './messenger.ts';
import { moduleVectors } from './module.ts';
import { multisigVectors } from './multisig.ts';
import { receiptVectors } from './receipts.ts';
import { rewardVectors } from './rewards.ts';
import { shareIdentityVectors } from './share-identity.ts';
import { stakingVectors } from './staking.ts';
import { stakingEpochVectors } from './staking-epoch.ts';
import { stratumV1Vectors } from './stratum-v1.ts';
import { stratumV2Vectors } from './stratum-v2.ts';
import { transactionVectors } from './transaction.ts';
import { walletVectors } from './wallet.ts';

export const vectorFiles: Record<string, () => unknown> = {
  'address.json': addressVectors,
  'books.json': booksVectors,
  'chain.json': chainVectors,
  'consensus.json': consensusVectors,
  'emission.json': emissionVectors,
  'evidence.json': evidenceVectors,
  'header.json': headerVectors,
  'identifiers.json': identifierVectors,
  'merkle.json': merkleVectors,
  'messenger.json': messengerVectors,
  'module.json': moduleVectors,
  'multisig.json': multisigVectors,
  'receipts.json': receiptVectors,
  'reward-root.json': rewardRootVectors,
  'rewards.json': rewardVectors,
  'share-identity.json': shareIdentityVectors,
  'staking.json': stakingVectors,
  'staking-epoch.json': stakingEpochVectors,
  'stratum-v1.json': stratumV1Vectors,
  'stratum-v2.json': stratumV2Vectors,
  'target.json': targetVectors,
  'transaction.json': transactionVectors,
  'wallet.json': walletVectors,
};
