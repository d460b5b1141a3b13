/** Every method of the daemon by name. `subscribe` and `unsubscribe` exist on the WebSocket alone (sockets.ts). */
import { chatMethods } from './chat-methods.ts';
import { incomingMethods } from './incoming-methods.ts';
import type { Method } from './method.ts';
import { multisigMethods } from './multisig-methods.ts';
import { outgoingMethods } from './outgoing-methods.ts';
import { ownershipMethods } from './ownership-methods.ts';
import { stakingMethods } from './staking-methods.ts';
import { validatorMethods } from './validator-methods.ts';
import { walletMethods } from './wallet-methods.ts';

export const METHODS = {
  ...walletMethods,
  ...incomingMethods,
  ...outgoingMethods,
  ...stakingMethods,
  ...validatorMethods,
  ...multisigMethods,
  ...chatMethods,
  ...ownershipMethods,
};
export type MethodName = keyof typeof METHODS;

export const findMethod = (name: string): Method | undefined =>
  Object.hasOwn(METHODS, name) ? METHODS[name as MethodName] : undefined;
