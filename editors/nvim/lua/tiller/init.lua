-- Tiller in Neovim: the connection to `tiller lsp`, permission requests, the command :Tiller and the status line.
local chat, changes = require("tiller.chat"), require("tiller.changes")
local M, sessions, config = {}, {}, {} -- Sessions by client id.
local TOKEN, SERVER_CANCELLED = "tiller-nvim", -32802

local function call(client, name, ...)
  if vim.fn.has("nvim-0.11") == 1 then return client[name](client, ...) end
  return client[name](...)
end

local function current()
  local buffer, first = vim.api.nvim_get_current_buf(), nil
  for _, session in pairs(sessions) do
    first = first or session
    if session.buffers[buffer] or vim.endswith(vim.api.nvim_buf_get_name(buffer), session.root) then return session end
  end
  return first
end

local function follow(session, snapshot)
  session.epoch, session.seq, session.state = snapshot.epoch, snapshot.seq, snapshot.state
  session.usage, session.unreviewed = snapshot.usage, snapshot.changes.unreviewed
  local before = snapshot.history.cursor
  session.request("agent/session/read", { before = before, limit = before and 100 or 1 }, function(page)
    chat.fill(session, vim.list_extend(before and page.items or {}, snapshot.run and snapshot.run.items or {}))
    changes.refresh(session)
    local after = { partialResultToken = TOKEN, epoch = session.epoch, from = session.seq }
    call(session.client, "request", "agent/subscribe", after, function(error, result)
      if error and error.code == SERVER_CANCELLED or result and result.reason == "lagging" then session.open() end
    end)
  end)
end

local function progress(error, params, ctx, options)
  local session = sessions[ctx.client_id]
  if not session or params.token ~= TOKEN then return vim.lsp.handlers["$/progress"](error, params, ctx, options) end
  if params.value.kind == "agent/snapshot" then return follow(session, params.value.snapshot) end
  for _, event in ipairs(params.value.events or {}) do
    session.state, session.usage = event.state or session.state, event.type == "session.usage" and event.usage or session.usage
    session.unreviewed = event.unreviewed or session.unreviewed
    if event.type == "changes.updated" then changes.refresh(session) end
    if chat.events[event.type] then chat.events[event.type](session, event) end
    session.seq = event.seq
  end
  vim.cmd("redrawstatus!")
end

-- A replacement of vim.ui.select may answer after it has returned: the handler waits in its coroutine.
local function permission(_, params)
  local thread, is_waiting, is_done, answer = coroutine.running(), false, false, params.default
  local title = params.title .. ": " .. (params.subject.command or params.description or "")
  vim.ui.select(params.options, { prompt = title, format_item = function(option) return option.label end }, function(option)
    answer, is_done = option and option.id or answer, true
    if is_waiting then coroutine.resume(thread, { option = answer }) end
  end)
  is_waiting = not is_done and thread ~= nil
  return is_waiting and coroutine.yield() or { option = answer }
end

local function version_of(buffer) return vim.lsp.util.buf_versions[buffer] or 0 end

local function save(_, params)
  return { results = vim.tbl_map(function(item)
    local buffer = vim.uri_to_bufnr(item.uri)
    local same = not item.version or version_of(buffer) == item.version
    local saved = same and pcall(vim.api.nvim_buf_call, buffer, function() vim.cmd("silent write") end)
    return { uri = item.uri, saved = saved, why = not saved and "the buffer was changed, or cannot be written" or nil }
  end, params.items) }
end

local function initialized(client)
  local session = { client = client, root = client.config.root_dir, buffers = {}, hunks = {}, state = "starting" }
  session.request = function(method, params, handle)
    call(client, "request", method, params, function(error, result)
      local is_lost = error and error.code == SERVER_CANCELLED and method ~= "agent/prompt"
      if is_lost then return vim.defer_fn(function() session.request(method, params, handle) end, 200) end
      if error then vim.notify("Tiller: " .. error.message, vim.log.levels.ERROR) elseif handle then handle(result) end
    end)
  end
  session.open = function()
    session.request("agent/session/open", vim.empty_dict(), function(snapshot) follow(session, snapshot) end)
  end
  sessions[client.id] = session
  session.open()
end

-- Tells the server where the user is, and when they type: edits of that buffer wait then.
local function attached(client, buffer)
  local function report()
    local row = vim.api.nvim_win_get_cursor(0)[1] - 1
    local place = { start = { line = row, character = 0 }, ["end"] = { line = row, character = 0 } }
    local uri, mode = vim.uri_from_bufnr(buffer), vim.fn.mode() == "i" and "insert" or "normal"
    local focus = { uri = uri, version = version_of(buffer), selections = { place }, visible = {}, mode = mode }
    if sessions[client.id] then call(client, "notify", "agent/editorContext", { focus = focus, open = { uri } }) end
  end
  vim.api.nvim_create_autocmd({ "BufEnter", "InsertEnter", "InsertLeave", "CursorHold" }, { buffer = buffer, callback = report })
  sessions[client.id].buffers[buffer] = true
  changes.place(sessions[client.id], buffer)
end

local function attach(buffer)
  if vim.bo[buffer].buftype ~= "" or vim.api.nvim_buf_get_name(buffer) == "" then return end
  local root = vim.fs and vim.fs.root and vim.fs.root(buffer, ".git")
  local options = vim.tbl_extend("keep", config, { root_dir = root or vim.fn.getcwd() })
  if vim.lsp.start then return vim.lsp.start(options, { bufnr = buffer }) end
  M.client = M.client and vim.lsp.get_client_by_id(M.client) and M.client or vim.lsp.start_client(options) -- Neovim 0.7
  vim.lsp.buf_attach_client(buffer, M.client)
end

local function prompt(session, text, delivery, block)
  if vim.trim(text or "") == "" then return end
  session.request("agent/prompt", { content = { { type = "text", text = text }, block }, delivery = delivery })
end

local function ask(session, typed, text, delivery)
  local buffer, block = vim.api.nvim_get_current_buf(), nil
  if typed.range > 0 then
    local lines = vim.api.nvim_buf_get_lines(buffer, typed.line1 - 1, typed.line2, false)
    local range = { start = { line = typed.line1 - 1, character = 0 }, ["end"] = { line = typed.line2, character = 0 } }
    block = { type = "selection", uri = vim.uri_from_bufnr(buffer), version = version_of(buffer), range = range }
    block.text = table.concat(lines, "\n") .. "\n"
  end
  if text ~= "" then return prompt(session, text, delivery, block) end
  vim.ui.input({ prompt = "Tiller: " }, function(line) prompt(session, line, delivery, block) end)
end

local commands = {
  send = function(session, typed, text) ask(session, typed, text, "auto") end,
  queue = function(session, typed, text) ask(session, typed, text, "followUp") end,
  stop = function(session) session.request("agent/run/cancel", { scope = "session" }) end,
  chat = function(session) chat.show(session, prompt) end,
  accept = function(session, typed) changes.resolve(session, "accept", typed.bang) end,
  reject = function(session, typed) changes.resolve(session, "reject", typed.bang) end,
  next = function() changes.jump(1) end, previous = function() changes.jump(-1) end,
}

local function run(typed)
  local session, name, text = current(), typed.args:match("^(%S+)%s*(.*)$")
  if not session then return vim.notify("Tiller does not run: open a file of the project first") end
  if commands[name] then return commands[name](session, typed, text) end
  session.request("workspace/executeCommand", { command = "tiller." .. name, arguments = text ~= "" and { text } or {} })
end

local function complete(lead)
  local names = { "compact", "changes", "mode", "model", "new", "restore", "review", "signIn", "status", "trust" }
  return vim.tbl_filter(function(name) return vim.startswith(name, lead) end, vim.list_extend(names, vim.tbl_keys(commands)))
end

function M.status()
  local session = current()
  local cost = session and (session.usage or {}).cost
  return not session and "" or "Tiller: " .. (session.state == "requiresAction" and "waiting for you" or session.state)
    .. (cost and (" · %.2f %s"):format(cost.amount, cost.currency) or "")
    .. ((session.unreviewed or 0) > 0 and " · " .. session.unreviewed .. " to review" or "")
end

function M.setup(options)
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = { agent = { v = 1, permission = true, documents = { save = true } } }
  config = vim.tbl_deep_extend("force", {
    name = "tiller", cmd = { "tiller", "lsp" }, capabilities = capabilities,
    handlers = { ["$/progress"] = progress, ["agent/permission"] = permission, ["agent/documents/save"] = save },
    init_options = { agent = { plain = { actions = true } } }, on_init = initialized, on_attach = attached,
    on_exit = function(_, _, id) sessions[id] = nil end,
  }, options or {})
  local group = vim.api.nvim_create_augroup("tiller", { clear = true })
  vim.api.nvim_create_autocmd("FileType", { group = group, callback = function(event) attach(event.buf) end })
  vim.api.nvim_create_user_command("Tiller", run, { nargs = "+", bang = true, range = true, complete = complete })
end

return M
