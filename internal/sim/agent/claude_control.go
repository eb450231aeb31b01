package agent

import (
	"encoding/json"
	"os"
	"time"
)

// control answers a control request. It returns true if the request ends the session.
func (c *claude) control(in inputLine, turn *runningTurn) (ends bool) {
	switch in.Request.Subtype {
	case "initialize":
		c.reply(in.RequestID, c.initializeReply())
	case "interrupt":
		c.reply(in.RequestID, nil)
		if turn != nil {
			turn.cancel(errInterrupted)
		}
	case "cancel_async_message":
		c.reply(in.RequestID, obj("cancelled", c.queue.drop(in.Request.MessageUUID)))
	case "set_model":
		c.reply(in.RequestID, nil)
		c.setModel(in.Request.Model)
	case "set_permission_mode":
		c.setMode(in)
	case "set_max_thinking_tokens", "apply_flag_settings":
		c.reply(in.RequestID, nil)
	case "mcp_status":
		c.reply(in.RequestID, obj("mcpServers", []string{}))
	case "get_binary_version":
		c.reply(in.RequestID, obj("version", claudeVersion, "buildTime", "2026-06-29T19:08:42Z"))
	case "end_session":
		c.reply(in.RequestID, nil)
		return true
	default:
		c.out.line(obj("type", "control_response", "response", obj("subtype", "error", "request_id", in.RequestID,
			"error", "Unsupported control request subtype: "+in.Request.Subtype)))
	}
	return false
}

// reply answers a control request with success. response may be nil.
func (c *claude) reply(id string, response json.RawMessage) {
	kv := []any{"subtype", "success", "request_id", id}
	if response != nil {
		kv = append(kv, "response", response)
	}
	c.out.line(obj("type", "control_response", "response", obj(kv...)))
}

func (c *claude) setModel(name string) {
	c.settings.Lock()
	c.model = resolveModel(name)
	said := "Set model to " + name
	if c.model != name {
		said += " (" + c.model + ")"
	}
	c.settings.Unlock()
	c.out.line(obj("type", "user", "message", obj("role", "user", "content",
		"<local-command-stdout>"+said+"</local-command-stdout>"), "session_id", c.id,
		"parent_tool_use_id", nil, "uuid", newUUID(), "timestamp", timestamp(), "isReplay", true))
}

func (c *claude) setMode(in inputLine) {
	mode := in.Request.Mode
	if mode == "bypassPermissions" && !c.args.skipPermissions {
		c.out.line(obj("type", "control_response", "response", obj("subtype", "error", "request_id", in.RequestID,
			"error", "Cannot set permission mode to bypassPermissions because the session was not launched with --dangerously-skip-permissions")))
		return
	}
	c.settings.Lock()
	c.args.mode = mode
	c.settings.Unlock()
	c.reply(in.RequestID, obj("mode", mode))
}

func timestamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

func (c *claude) initializeReply() json.RawMessage {
	efforts := []string{"low", "medium", "high", "xhigh", "max"}
	model := func(value, name, description string, effort bool) json.RawMessage {
		kv := []any{"value", value, "resolvedModel", resolveModel(value), "displayName", name, "description",
			description}
		if effort {
			kv = append(kv, "supportsEffort", true, "supportedEffortLevels", efforts,
				"supportsAdaptiveThinking", true, "supportsAutoMode", true)
		}
		return obj(kv...)
	}
	return obj(
		"commands", []json.RawMessage{
			obj("name", "clear", "description", "Start a new session with empty context", "argumentHint", ""),
			obj("name", "compact", "description", "Free up context by summarizing the conversation so far",
				"argumentHint", ""),
		},
		"agents", []json.RawMessage{},
		"output_style", "default", "available_output_styles", []string{"default"},
		"models", []json.RawMessage{
			model("default", "Default (recommended)",
				"Use the default model (currently Opus 4.8 (1M context)) · scripted", true),
			model("opus[1m]", "Opus", "Opus 4.8 with 1M context · scripted", true),
			model("sonnet", "Sonnet", "Sonnet 5 · scripted", true),
			model("sonnet[1m]", "Sonnet 5 (1M context)", "Sonnet 5 for long sessions · scripted", true),
			model("haiku", "Haiku", "Haiku 4.5 · scripted", false),
		},
		"account", obj("tokenSource", "none", "apiKeySource", "ANTHROPIC_API_KEY", "apiProvider", "firstParty"),
		"pid", os.Getpid(),
	)
}
