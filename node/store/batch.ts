/** One write of an atomic batch. */
import type { Bytes } from '../../protocol/bytes.ts';

export type BatchOp =
  | { readonly type: 'put'; readonly key: Bytes; readonly value: Bytes }
  | { readonly type: 'del'; readonly key: Bytes };
