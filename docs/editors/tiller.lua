-- Tiller in Neovim 0.11 or newer: a chat buffer that streams, a stop, and saving when the agent asks for it. See neovim.md.
local token, shown, epoch, heard, buffer = "tiller-chat", 0, nil, nil, nil

local function chat()
  if not (buffer and vim.api.nvim_buf_is_valid(buffer)) then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, "tiller://chat")
    vim.bo[buffer].filetype = "markdown"
  end
  return buffer
end

local function write(text)
  local last = vim.api.nvim_buf_line_count(chat()) - 1
  local line = vim.api.nvim_buf_get_lines(buffer, last, -1, true)[1]
  vim.api.nvim_buf_set_text(buffer, last, #line, last, #line, vim.split(text, "\n"))
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

local events = {
  ["message.started"] = function(e) if e.role == "assistant" then write("\n\n## Tiller\n\n") end end,
  ["message.delta"] = function(e) heard = e.item; write(e.text) end,
  ["message.ended"] = function(e)
    if e.role == "user" then write("\n\n## You\n\n") elseif e.item == heard then return end
    write(vim.iter(e.content):map(function(block) return block.text end):join(""))
  end,
  ["tool.started"] = function(e) write("\n> " .. e.title .. "\n") end,
  ["permission.requested"] = function(e) write("\n> waits for your answer: " .. e.request.title .. "\n") end,
  ["run.ended"] = function(e) write("\n\n*" .. (e.error and e.error.message or e.status) .. "*\n") end,
}

local function progress(error, params, context)
  if params.token ~= token then return vim.lsp.handlers["$/progress"](error, params, context) end
  for _, event in ipairs(params.value.events or {}) do
    if events[event.type] and event.seq > shown then events[event.type](event) end
    shown = math.max(shown, event.seq)
  end
end

local function save(_, params)
  return { results = vim.tbl_map(function(item)
    local number = vim.uri_to_bufnr(item.uri)
    local same = not item.version or vim.lsp.util.buf_versions[number] == item.version
    local saved = same and pcall(vim.api.nvim_buf_call, number, function() vim.cmd("silent write") end)
    return { uri = item.uri, saved = saved, why = not saved and "it was changed, or cannot be written" or nil }
  end, params.items) }
end

local function follow(client)
  client:request("agent/session/open", vim.empty_dict(), function(_, session)
    if session and session.epoch ~= epoch then shown, epoch = 0, session.epoch end
    local after = { partialResultToken = token, epoch = epoch, from = shown }
    client:request("agent/subscribe", after, function(error) -- -32802: another daemon serves now
      if error and error.code == -32802 then follow(client) end
    end)
  end)
end

local function ask(method, params)
  local client = vim.lsp.get_clients({ name = "tiller" })[1]
  if not client then return vim.notify("Tiller does not run: open a file of the project first") end
  client:request(method, params, function(error) return error and vim.notify(error.message) end)
end

return { setup = function(options)
  vim.lsp.config("tiller", vim.tbl_deep_extend("force", {
    cmd = { "tiller", "lsp" },
    root_dir = function(number, use) use(vim.fs.root(number, ".git") or vim.fn.getcwd()) end,
    capabilities = { experimental = { agent = { v = 1, documents = { save = vim.empty_dict() } } } },
    init_options = { agent = { plain = { actions = true, hints = true, lens = true } } },
    handlers = { ["$/progress"] = progress, ["agent/documents/save"] = save }, on_init = follow,
  }, options or {}))
  vim.lsp.enable("tiller")
  vim.api.nvim_create_user_command("TillerChat", function() vim.cmd("vertical sbuffer " .. chat()) end, {})
  vim.api.nvim_create_user_command("TillerStop", function() ask("agent/run/cancel", vim.empty_dict()) end, {})
  local function say(typed) ask("agent/prompt", { content = { { type = "text", text = typed.args } } }) end
  vim.api.nvim_create_user_command("TillerAsk", say, { nargs = "+" })
end }
