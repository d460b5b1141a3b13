/** A dialler of the overlay that a test moves by hand: what it says, when and in whose name is the test's. It keeps to the channel of rule 22, without which it would not be heard at all. */
import { randomBytes } from 'node:crypto';
import { Channel, type Ends, identityMessage, newConnectionKey } from '../../node/consensus/link/channel.ts';
import {
  encodeHello,
  encodeIdentity,
  frameBytes,
  type Hello,
  type Identity,
  NO_VALIDATOR,
  readHello,
} from '../../node/consensus/link/frames.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { validatorId } from '../../protocol/staking/names.ts';

export class RawEnd {
  readonly hello: Hello;
  readonly #key = newConnectionKey();
  #ends: Ends | undefined;
  #channel: Channel | undefined;

  constructor(chainId: Bytes, publicKey?: Bytes) {
    const validator = publicKey === undefined ? NO_VALIDATOR : validatorId(publicKey);
    const [process, challenge] = [new Uint8Array(randomBytes(16)), new Uint8Array(randomBytes(32))];
    this.hello = { chainId, process, challenge, channelKey: this.#key.channelKey, validator };
  }

  get isMet(): boolean {
    return this.#channel !== undefined;
  }

  /** The hello of the node that was dialled has come, in a frame. */
  meet(theirs: Bytes): this {
    this.#ends = { dialler: this.hello, dialled: readHello(theirs, this.hello) };
    this.#channel = new Channel('dialler', this.#key.secret, this.#ends);
    return this;
  }

  get message(): Bytes {
    return identityMessage('dialler', this.#ends as Ends);
  }

  /** The next frame that it sends. */
  frame(bytes: Bytes): Bytes {
    return frameBytes((this.#channel as Channel).seal(bytes));
  }

  /** What a frame of the other end says. */
  read(frame: Bytes): Bytes {
    return (this.#channel as Channel).open(frame);
  }

  /** What it says first. */
  get greeting(): Bytes {
    return frameBytes(encodeHello(this.hello));
  }

  /** Its identity, once the other's hello is here. */
  readonly open = (theirs: Bytes, identity?: Identity): Bytes => this.meet(theirs).frame(encodeIdentity(identity));
}
