/**
 * Every error code of the public API's own, with its HTTP status; a refused submission has the code of the node's rule. docs/errors.md explains each; a test keeps the two
 * equal. A code never changes its status, so a client may branch on either.
 */
export const API_ERRORS = {
  bad_request: 400,
  bad_json: 400,
  bad_address: 400,
  bad_cursor: 400,
  subprotocol_required: 400,
  origin_refused: 403,
  route_unknown: 404,
  cut_unknown: 404,
  block_unknown: 404,
  transaction_unknown: 404,
  validator_unknown: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  cut_pruned: 410,
  body_too_large: 413,
  target_too_long: 414,
  media_type_unsupported: 415,
  host_refused: 421,
  upgrade_required: 426,
  too_many_requests: 429,
  client_blocked: 429,
  headers_too_large: 431,
  internal: 500,
  not_ready: 503,
  too_busy: 503,
} as const;

export type ApiErrorCode = keyof typeof API_ERRORS;

/** Error frames of the WebSockets: `{type: 'error', data: {id, code, message}}`. Codes of the table above may occur too. */
export const FRAME_ERRORS = [
  'frame_malformed',
  'frame_type_unknown',
  'topic_unknown',
  'subscription_unknown',
  'too_many_subscriptions',
  'too_many_addresses',
  'too_many_frames',
  'too_many_in_flight',
  'answer_too_large',
  'path_refused',
] as const;
export type FrameErrorCode = (typeof FRAME_ERRORS)[number];
