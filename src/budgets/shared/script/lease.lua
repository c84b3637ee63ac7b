-- One lease.

-- A lease: state, how often it was told as sent or unsent, input and output tokens, when it must have been
-- sent, when it ends, its pod; then for each budget: number of its entry, first and last day, refund,
-- which tokens it limits (2 of the prompt, 4 of the answer), margin, name.
local function lease_of(id)
    local line = call('HGET', LEASES, id)
    if not line then
        return nil
    end
    local v = list_of(line)
    local lease = { id = id, state = v[1], told = v[2], counts = { REQUESTS, v[3], v[4] }, send_by = v[5],
        ends = v[6], pod = v[7], parts = {} }
    for i = 8, #v, 7 do
        lease.parts[#lease.parts + 1] = { entry = v[i], first = v[i + 1], final = v[i + 2],
            refund = v[i + 3], limited = v[i + 4], margin = v[i + 5], name = v[i + 6] }
    end
    return lease
end

local function put_lease(lease)
    local line = { format('%d,%d,%d,%d,%d,%d,"%s"', lease.state, lease.told, lease.counts[2],
        lease.counts[3], lease.send_by, lease.ends, lease.pod) }
    for _, part in ipairs(lease.parts) do
        line[#line + 1] = format('%d,%d,%d,%d,%d,%d,"%s"', part.entry, part.first, part.final, part.refund,
            part.limited, part.margin, part.name)
    end
    call('HSET', LEASES, lease.id, '[' .. table.concat(line, ',') .. ']')
end

local function put_due(lease, at)
    call('ZADD', DUE, int(at), lease.id)
end

-- Remembered a while, so that who asks again for it is not granted another.
local function forget_later(lease, was_sent)
    local longest = life
    if was_sent then
        for _, part in ipairs(lease.parts) do
            for _, window in ipairs(load(part.name).windows) do
                longest = math.max(longest, window.length)
            end
        end
    end
    lease.state, lease.parts, dirty = OVER, {}, true
    put_lease(lease)
    put_due(lease, now + longest)
end

local function send(lease, at)
    for _, part in ipairs(lease.parts) do
        local budget = load(part.name)
        take(budget.unsent, lease.counts)
        part.entry = push(budget, at, lease.counts)
        part.first = budget.turns + (at >= budget.day_ends and 1 or 0)
        part.final = budget.turns + (at + part.margin >= budget.day_ends and 1 or 0)
        change_days(budget, part.first, part.final, function(sums) add(sums, lease.counts) end)
    end
    lease.state, dirty = SENT, true
end

local function unsend(lease)
    for _, part in ipairs(lease.parts) do
        local budget = load(part.name)
        replace(budget, part.entry, { 0, 0, 0 })
        add(budget.unsent, lease.counts)
        change_days(budget, part.first, part.final, function(sums) take(sums, lease.counts) end)
        budget.dirty = true
    end
    lease.state, dirty = UNSENT, true
    sent = sent - 1
end

-- Whether a send can be taken back: it counts wherever it counted at first, and there is room for another.
local function recalls(lease)
    for _, part in ipairs(lease.parts) do
        local budget = load(part.name)
        evict(budget)
        for _, window in ipairs(budget.windows) do
            if part.entry < window.first then
                return false
            end
        end
        local reserved = budget.next - budget.front + budget.running + budget.unsent[REQUESTS]
        if #budget.windows > 0 and reserved >= budget.most or part.final < budget.turns then
            return false
        end
    end
    return true
end

local function give_back(lease, at)
    for _, part in ipairs(lease.parts) do
        local budget = load(part.name)
        take(budget.unsent, lease.counts)
        budget.running, budget.dirty = less(budget.running, 1), true
        probe_over(budget, lease.id, at, false)
    end
    forget_later(lease, false)
end

-- Whether what was not used of a measure comes back. Refund: 0 never, 1 of the prompt only, 2 all.
local function gives_back(refund, measure)
    return measure == 2 and refund > 0 or measure == 3 and refund == 2
end

-- Tokens on top of what was reserved, as far as windows count them.
local function push_overrun(budget, at, over)
    local counts, more = { 0, 0, 0 }, false
    for _, window in ipairs(budget.windows) do
        counts[window.measure] = over[window.measure]
        more = more or over[window.measure] > 0
    end
    if more then
        push(budget, at, counts)
    end
end

-- A send is over; what it took is unknown if `actual` is nil.
local function close(lease, at, actual)
    for _, part in ipairs(lease.parts) do
        local budget = load(part.name)
        local held, over, more = { 1, 0, 0 }, { 0, 0, 0 }, false
        for measure = 2, 3 do
            local reserved = lease.counts[measure]
            local used = actual and actual[measure] or reserved
            held[measure] = gives_back(part.refund, measure) and math.min(reserved, used) or reserved
            -- Of what is not limited nothing had to be reserved.
            if floor(part.limited / 2 ^ (measure - 1)) % 2 == 1 then
                over[measure] = less(used, reserved)
            end
            more = more or over[measure] > 0
        end
        replace(budget, part.entry, held)
        change_days(budget, part.first, part.final, function(sums)
            take(sums, lease.counts)
            add(sums, held)
            add(sums, over)
        end)
        if more then
            budget.overruns = budget.overruns + 1
            push_overrun(budget, at, over)
        end
        budget.running, budget.dirty = less(budget.running, 1), true
        probe_over(budget, lease.id, at, actual ~= nil)
    end
    forget_later(lease, true)
end

-- Told for the `times`-th time: sent if odd, unsent if even. What was told before changes nothing.
local function mark(lease, times)
    if times <= lease.told then
        return 'ok'
    end
    local is_sent = times % 2 == 1
    if lease.state == SENT then
        if recalls(lease) then
            unsend(lease)
        elseif is_sent then
            return 'refused'
        else
            -- It did not leave, but another may have been granted in its place.
            unsend(lease)
            expired = expired + 1
            give_back(lease, now)
            return 'over'
        end
    end
    if is_sent then
        send(lease, now)
        sent = sent + 1
    end
    lease.told = times
    put_lease(lease)
    return 'ok'
end

-- Lets go of leases whose pods fell silent, and forgets those that were over long ago.
local function expire()
    local due = call('ZRANGEBYSCORE', DUE, '-inf', int(now), 'LIMIT', 0, MOST_DUE)
    for _, id in ipairs(due) do
        local lease = lease_of(id)
        if not lease or lease.state == OVER then
            call('HDEL', LEASES, id)
            call('ZREM', DUE, id)
        else
            if lease.state == UNSENT then
                -- It may have left.
                send(lease, lease.ends)
                expired = expired + 1
            end
            close(lease, lease.ends, nil)
        end
        dirty = true
    end
end
