#!lua
-- The shared budgets of one domain. One call is one step: all of it happens, or nothing.
--
-- What counts, and until when, is what `crate::limits` says, where the reasons stand; the functions here
-- bear the names of those there. Different is only what follows from the distance: a lease counts in full
-- until its pod has told that it was sent, and one whose pod falls silent counts as sent at its end, since
-- it may have been.
--
-- KEYS, all with the domain's hash tag, so that they are in one slot:
--   1 {redrive:<domain>}:meta    HASH
--       epoch     names the stretch of time of which everything is known
--       since     when it began; what a budget may have granted before is not known, see `learns_until`
--       witnessed 1 if somebody may still be at work with what was granted before
--       unsent    the longest that a pod told: how long a lease may be unsent
--       life      the longest that a pod told: how long a lease lives
--       run       the server's own id: another one may have forgotten what was granted last
--       last      the latest time that was told; time never runs back
--       offset    by how much the server's clock is ahead of this time, having stepped
--       keep      how long an idle domain is kept, the longest that a pod told
--       kept      when the keys' lives were last prolonged
--       last_end  when the last unsent lease ends, whatever becomes of it
--       account   granted, sent, returned, expired
--       revisions the configurations in use: revision and when it was last told, for one or two
--       c:<revision>  that configuration, a budget a line
--       b:<budget>    the state of a budget, see `load` and `line_of`
--       t:<budget>    whose turn it is, see `flows_of` and `put_flows`
--   2 {redrive:<domain>}:log     HASH  epoch; <budget>:<number> -> at, send, input tokens, output tokens
--   3 {redrive:<domain>}:leases  HASH  epoch; <lease> -> see `lease_of` and `put_lease`
--   4 {redrive:<domain>}:due     ZSET  <lease> by the time it ends, or is forgotten after it was over;
--                                      "epoch" at infinity, so that the key exists
--
-- ARGV: verb, name for a new epoch, the server's id as the pod knows it ("-": unknown), revision, how long
-- a lease may be unsent, life of a lease, how long an idle domain is kept; the epoch that the pod heard of
-- last (or nothing), the time that it must be at least by the pod's clock, how much later it may be; then
-- what the verb says. Times are microseconds; all but that time and the starts and ends of days are
-- relative to now.
--
-- The answer: code, now, epoch, flags, then what the verb says. Flags: 1 another configuration is in use
-- too, 2 this one was not told yet, 4 the epoch began with this call.
--
-- All numbers are integers below 2^53 and are written with %d: Lua itself would round them. Lists are read as
-- JSON, which is three times as fast as taking them apart here; that is exact for such numbers.

local call, format, floor, list_of = redis.call, string.format, math.floor, cjson.decode
local META, LOG, LEASES, DUE = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- Bounds of one call: entries looked at per window, leases that end.
local MOST_ENTRIES, MOST_DUE = 500, 100
-- No sum grows beyond what a double counts exactly.
local MOST = 9007199254740991
-- A configuration that nobody told for so long is no longer in use.
local IN_USE = 60000000
-- In milliseconds.
local A_DAY = 86400000
local UNSENT, SENT, OVER = 0, 1, 2
local FREE, UNTIL, PROBING = 0, 1, 2
local REQUESTS = 1
local OTHER_REVISION, UNTOLD, NEW_EPOCH = 1, 2, 4

local verb, nonce, run, revision = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local unsent, life, keep = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local heard, at_least, slack = ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local next_argument = 11

local function text()
    local value = ARGV[next_argument]
    next_argument = next_argument + 1
    return value
end

local function number()
    return tonumber(text())
end

local function int(value)
    return format('%d', value)
end

local function plus(sum, more)
    return math.min(sum + more, MOST)
end

local function less(sum, fewer)
    return math.max(sum - fewer, 0)
end

local meta = call('HMGET', META, 'epoch', 'since', 'unsent', 'run', 'last', 'kept', 'last_end',
    'account', 'revisions', 'keep', 'life', 'witnessed', 'offset')
local epoch, known_run = meta[1], meta[4]
local since, known_unsent = tonumber(meta[2] or 0), tonumber(meta[3] or 0)
local last, kept = tonumber(meta[5] or 0), tonumber(meta[6] or 0)
local known_keep, known_life = tonumber(meta[10] or 0), tonumber(meta[11] or 0)
local last_end = tonumber(meta[7] or 0)
local granted, sent, returned, expired = unpack(list_of(meta[8] or '[0,0,0,0]'))
local revisions = list_of(meta[9] or '[]')
local witnessed, offset = meta[12] == '1', tonumber(meta[13] or 0)

local is_new, dirty, budgets = false, false, {}

-- The time. The server's clock may step; a pod's only runs, and bounds by how much it can be later.
local time = redis.call('TIME')
local clock = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = clock - offset
if at_least < 0 or heard ~= epoch then
    now = math.max(now, last)
elseif now < math.max(last, at_least) or now > math.max(last, at_least) + slack then
    -- It stepped; or this call lay around, or another did and was taken for a step. It is this late at
    -- least, and whoever knows that it is later says so with the next call.
    now = math.max(last, at_least)
end
local stepped = offset ~= clock - now
offset = clock - now

-- The server's own word, where the pod cannot know whom it speaks to.
if run == '-' then
    run = string.match(call('INFO', 'server'), 'run_id:(%x+)') or '-'
end

-- From now on nothing is known of what was sent before.
local function begin(by_witness)
    epoch, since, witnessed, known_run = nonce, now, by_witness, run
    known_unsent, known_life, known_keep = math.max(known_unsent, unsent), math.max(known_life, life), 0
    call('HSET', META, 'epoch', epoch, 'since', int(since), 'witnessed', witnessed and 1 or 0,
        'unsent', int(known_unsent), 'life', int(known_life), 'run', run, 'last', int(now),
        'offset', int(offset))
    call('HSET', LOG, 'epoch', epoch)
    call('HSET', LEASES, 'epoch', epoch)
    call('ZADD', DUE, '+inf', 'epoch')
    is_new, dirty = true, true
end

local function lost()
    local removed = call('UNLINK', META, LOG, LEASES, DUE)
    granted, sent, returned, expired, last_end, revisions, budgets = 0, 0, 0, 0, 0, {}, {}
    begin(heard ~= '' or removed > 0)
end

if call('HGET', LOG, 'epoch') ~= epoch or call('HGET', LEASES, 'epoch') ~= epoch
    or call('ZCARD', DUE) ~= call('HLEN', LEASES) or not epoch then
    lost()
elseif known_run ~= run then
    begin(true)
elseif heard ~= '' and heard ~= epoch and not witnessed then
    witnessed = true
    call('HSET', META, 'witnessed', 1)
end
if stepped then
    call('HSET', META, 'offset', int(offset))
end
if known_unsent < unsent or known_life < life then
    known_unsent, known_life = math.max(known_unsent, unsent), math.max(known_life, life)
    call('HSET', META, 'unsent', int(known_unsent), 'life', int(known_life))
end

if known_keep < keep or kept + known_keep <= now or kept > now then
    kept, known_keep = now, math.max(known_keep, keep)
    -- The server forgets by its own clock: a step of less than a day loses nothing.
    local milliseconds = int(2 * floor(known_keep / 1000) + A_DAY)
    for _, key in ipairs(KEYS) do
        call('PEXPIRE', key, milliseconds)
    end
    call('HSET', META, 'kept', int(kept), 'keep', int(known_keep))
end

-- The other configuration that is in use, if any, once it was looked up.
local other_revision, is_untold, looked_up = nil, false, false

-- Notes that this configuration is in use, if it was `told`.
local function in_use(told)
    if looked_up then
        return
    end
    local others, mine = {}, told and now or nil
    for i = 1, #revisions, 2 do
        local name, at = revisions[i], revisions[i + 1]
        if name == revision then
            mine = mine or at
        elseif at + math.max(IN_USE, 4 * life) > now then
            others = { name, at }
        else
            call('HDEL', META, 'c:' .. name)
            dirty = true
        end
    end
    if mine and mine + floor(life / 3) <= now then
        mine, dirty = now, true
    end
    revisions = others
    if mine then
        revisions = { revision, mine, others[1], others[2] }
    end
    other_revision, is_untold, looked_up = others[1], not mine, true
end
