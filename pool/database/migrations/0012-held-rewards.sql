-- A reward whose amount a node's word is not enough for is held (docs/protocol/books.md, rule 15): it credits nobody until it passes
-- the checks or the operator accepts the amount. What a block's body carried is known from its journal; a claim may be any number.
alter table blocks add column carried_fees bigint check (carried_fees >= 0);
alter table blocks add column carried_mass integer check (carried_mass >= 0);
-- What bounds its reward, as it was when the cut that pays its anchor was read: asked for again, it is judged by the same.
alter table blocks add column paid_before bigint;
alter table blocks add column sharers integer;
alter table blocks add column claimed_reward numeric(39,0);
alter table blocks add column operator_accepts numeric(39,0);
alter table blocks drop constraint blocks_state_check;
alter table blocks add constraint blocks_state_check
  check (state in ('found', 'accepted', 'registered', 'held', 'paid', 'expired', 'refused'));
create index blocks_held on blocks (anchor_height) where state = 'held';
create index blocks_paid_anchor on blocks (anchor_height) where state = 'paid';

create or replace function tell_block() returns trigger language plpgsql as $$
declare
  base jsonb;
begin
  select jsonb_build_object('block_id', encode(new.block_id, 'hex'), 'service', (array['pplns', 'solo'])[new.service + 1],
    'anchor_height', new.anchor_height, 'finder', a.address, 'worker', w.name) into base
    from accounts a, workers w where a.id = new.account_id and w.id = new.worker_id;
  if tg_op = 'INSERT' then
    perform tell('block_found', base);
  elsif new.state = 'paid' and old.state <> 'paid' then
    perform tell('block_paid', base || jsonb_build_object('reward', new.reward::text,
      'transaction_id', encode(new.reward_transaction, 'hex'), 'output_index', new.reward_output));
  elsif new.state = 'held' and old.state <> 'held' then
    perform tell('block_held', base || jsonb_build_object('claimed', new.claimed_reward::text, 'reason', new.reason));
  elsif new.state = 'expired' and old.state <> 'expired' then
    perform tell('block_expired', base);
  end if;
  return null;
end $$;
