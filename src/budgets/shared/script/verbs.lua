-- What is asked.

-- Answers `code` and `more`, and writes what has changed.
local function answer(code, more)
    in_use(false)
    local fields = {}
    for name, budget in pairs(budgets) do
        if budget.dirty then
            fields[#fields + 1] = 'b:' .. name
            fields[#fields + 1] = line_of(budget)
        end
    end
    if dirty or #fields > 0 then
        local in_use_now = {}
        for i = 1, #revisions, 2 do
            in_use_now[#in_use_now + 1] = format('"%s",%d', revisions[i], revisions[i + 1])
        end
        call('HSET', META, 'last', int(now), 'last_end', int(last_end),
            'account', format('[%d,%d,%d,%d]', granted, sent, returned, expired),
            'revisions', '[' .. table.concat(in_use_now, ',') .. ']', unpack(fields))
    elseif now > last then
        call('HSET', META, 'last', int(now))
    end
    local flags = (other_revision and OTHER_REVISION or 0) + (is_untold and UNTOLD or 0)
        + (is_new and NEW_EPOCH or 0)
    return { code, now, epoch, flags, unpack(more or {}) }
end

expire()

if verb == 'acquire' then
    -- lease, pod, input tokens, output tokens, how long it may take to its send; in which of the budgets it
    -- asks for its turn (-1: none), of which flow, of which weight, and whether more wait; budgets.
    -- granted: how long it may still take to its send, state.
    -- denied: budget (counted from 0), what of it, measure, limit, window, for how long (-1: unknown).
    -- never: budget, what of it, measure, limit, window. learning, turn: budget, for how long.
    local id, pod = text(), text()
    local counts = { 1, number(), number() }
    local send_within = number()
    local shared, flow, weight, more = number(), text(), number(), number()
    local known = lease_of(id)
    if known then
        return answer('granted', { known.send_by - now, known.state })
    end
    local all = asked()
    for i, one in ipairs(all) do
        local limit = never_fits(one.own, counts)
        if limit then
            return answer('never', { i - 1, unpack(limit) })
        end
    end
    local learns, to = nil, now
    for i, one in ipairs(all) do
        local this = learns_until(one)
        if this > to then
            learns, to = i - 1, this
        end
    end
    if learns then
        return answer('learning', { learns, to - now })
    end
    local denied
    for i, one in ipairs(all) do
        local full = check(one, counts)
        if full and (not denied or full.to > denied.to) then
            denied = full
            denied.budget = i - 1
        end
    end
    local line = shared >= 0 and lines_up(all, shared, flow, weight, counts)
    if denied then
        local wait = denied.to < 0 and -1 or denied.to - now
        local what = denied.what
        if line then
            waits(line, all[denied.budget + 1].name, wait)
        end
        return answer('denied', { denied.budget, what[1], what[2], what[3], what[4], wait })
    end
    local back = line and held_back(line)
    if back then
        waits(line, line.name, back)
        return answer('turn', { shared, back })
    end
    if line then
        is_served(line, more == 1)
    end
    local send_by = now + send_within
    local lease = { id = id, state = UNSENT, told = 0, counts = counts, send_by = send_by,
        ends = math.max(now + life, send_by + 1), pod = pod, parts = {} }
    grant(lease, all)
    granted = granted + 1
    put_lease(lease)
    put_due(lease, lease.ends)
    return answer('granted', { send_within, UNSENT })

elseif verb == 'sent' then
    -- lease, how many times it was told. ok, refused, over, unknown.
    local lease, times = lease_of(text()), number()
    if not lease then
        return answer('unknown')
    end
    return answer(lease.state == OVER and 'over' or mark(lease, times))

elseif verb == 'release' then
    -- lease. ok, over, unknown.
    local lease = lease_of(text())
    if not lease or lease.state == OVER then
        return answer(lease and 'over' or 'unknown')
    end
    if lease.state == SENT then
        close(lease, now, nil)
    else
        returned = returned + 1
        give_back(lease, now)
    end
    return answer('ok')

elseif verb == 'settle' then
    -- lease, input tokens, output tokens. ok, over, unknown.
    local lease, input, output = lease_of(text()), number(), number()
    if not lease or lease.state == OVER then
        return answer(lease and 'over' or 'unknown')
    end
    if lease.state == UNSENT then
        send(lease, now)
        sent = sent + 1
    end
    close(lease, now, { 1, input, output })
    return answer('ok')

elseif verb == 'answered' then
    -- lease. ok, over, unknown.
    local lease = lease_of(text())
    if not lease or lease.state == OVER then
        return answer(lease and 'over' or 'unknown')
    end
    if lease.state == SENT then
        for _, part in ipairs(lease.parts) do
            probe_over(load(part.name), lease.id, now, true)
        end
    end
    return answer('ok')

elseif verb == 'renew' then
    -- leases, and how many times each was told. ok: those that are over or unknown, counted from 0.
    local over = {}
    for i = 1, number() do
        local lease, times = lease_of(text()), number()
        if not lease or lease.state == OVER then
            over[#over + 1] = i - 1
        else
            mark(lease, times)
            if lease.state == SENT and lease.ends < now + life then
                lease.ends, dirty = now + life, true
                put_lease(lease)
                put_due(lease, lease.ends)
            elseif lease.state == OVER then
                over[#over + 1] = i - 1
            end
        end
    end
    return answer('ok', over)

elseif verb == 'penalise' then
    -- for how long, budgets by name.
    local to = now + number()
    for _ = 1, number() do
        local budget = load(text())
        budget.rest_until = budget.rest == UNTIL and math.max(budget.rest_until, to) or to
        budget.rest, budget.probe, budget.dirty = UNTIL, '-', true
    end
    return answer('ok')

elseif verb == 'brake' then
    -- for how long, budgets by name.
    local to = now + number()
    for _ = 1, number() do
        local budget = load(text())
        budget.brake, budget.dirty = math.max(budget.brake, to), true
    end
    return answer('ok')

elseif verb == 'join' then
    -- This configuration: a budget a line, its name and its limits.
    local lines = text()
    in_use(true)
    call('HSET', META, 'c:' .. revision, lines)
    dirty = true
    return answer('ok')

elseif verb == 'replay' then
    -- The leases of a pod, after an epoch began: for each lease, pod, state, times told, input and output
    -- tokens as they count, how long ago it was sent, for how long it lives (and may be sent, if unsent), and
    -- its budgets. Those that are known are left alone.
    local taken = 0
    for _ = 1, number() do
        local id, pod, state, times = text(), text(), number(), number()
        local counts = { 1, number(), number() }
        local ago, lives = number(), number()
        local all = asked()
        if not lease_of(id) then
            local lease = { id = id, state = UNSENT, told = times, counts = counts, send_by = now + lives,
                ends = now + math.max(lives, 1), pod = pod, parts = {} }
            for _, one in ipairs(all) do
                fit(load(one.name), one.limits)
                if #one.limits.daily > 0 then
                    turn(load(one.name), one.day)
                end
            end
            grant(lease, all)
            granted, taken = granted + 1, taken + 1
            if state ~= UNSENT then
                send(lease, now - ago)
                sent = sent + 1
                for _, part in ipairs(lease.parts) do
                    -- Its answer may have begun long ago: it tries no rest.
                    probe_over(load(part.name), lease.id, now, false)
                end
            end
            if state == OVER then
                close(lease, now, nil)
            else
                put_lease(lease)
                put_due(lease, lease.ends)
            end
        end
    end
    return answer('ok', { taken })

elseif verb == 'status' then
    -- budgets. For each: sends that run, entries, overruns, for how long it grants nothing yet, and for how long
    -- it rests, then how much of each window and of each day's cap is used, after how many these are; before all, the account.
    local found = { granted, sent, returned, expired }
    for _, one in ipairs(asked()) do
        local budget, limits = load(one.name), one.own
        fit(budget, one.limits)
        if #limits.daily > 0 then
            turn(budget, one.day)
        end
        evict(budget)
        local function tell(value)
            found[#found + 1] = value
        end
        tell(budget.running)
        tell(budget.next - budget.front)
        tell(budget.overruns)
        tell(math.max(learns_until(one) - now, 0))
        tell((rests_until(budget) or now) - now)
        tell(#limits.windows + #limits.daily)
        for i = 1, #limits.windows do
            local state = one.limits.windows[i].state
            tell(plus(state.sum, budget.unsent[state.measure]))
        end
        for _, daily in ipairs(limits.daily) do
            tell(today(budget, daily.measure))
        end
    end
    return answer('ok', found)
end
