-- A client in a closed loop: ask, confirm what was shown if that is wanted, tell.
-- Arguments: key, path of the experiment, rows per request, "shown" or nothing.
local path, body, confirms, step, ids = "", "", false, "ask", {}
told, other = 0, 0 -- rows accepted, and answers or words that are not as they should be

function init(args)
  path, body, confirms = args[2], '{"n":' .. args[3] .. "}", args[4] == "shown"
  wrk.headers["authorization"] = "Bearer " .. args[1]
  wrk.headers["content-type"] = "application/json"
end

function request()
  local said = body
  if step == "shown" then
    said = '{"ids":["' .. table.concat(ids, '","') .. '"]}'
  elseif step == "tell" then
    local ends = '","reward":0.5}'
    said = '{"tells":[{"id":"' .. table.concat(ids, ends .. ',{"id":"') .. ends .. "]}"
  end
  return wrk.format("POST", path .. "/" .. step, nil, said)
end

function response(status, headers, said)
  if status ~= 200 then
    other, step = other + 1, "ask"
  elseif step == "ask" then
    ids = {}
    for id in said:gmatch('"id":"([^"]+)"') do
      ids[#ids + 1] = id
    end
    step = confirms and "shown" or "tell"
  elseif step == "shown" then
    step = "tell"
  else
    local _, accepted = said:gsub('"accepted"', "")
    told, other, step = told + accepted, other + #ids - accepted, "ask"
  end
end

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function done(summary)
  local sum, wrong = 0, 0
  for _, thread in ipairs(threads) do
    sum, wrong = sum + thread:get("told"), wrong + thread:get("other")
  end
  local errors = summary.errors
  wrong = wrong + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("per second: %f wrong: %d\n", sum / summary.duration * 1e6, wrong))
end
