package telegram

import (
	"encoding/json"
	"regexp"
	"sync"
)

// Command is an entry in the bot's menu of commands.
type Command struct {
	Name        string `json:"command"`
	Description string `json:"description"`
}

// Menu returns the commands that the bot has set with setMyCommands for a scope, such as "default" or "chat:42".
func (s *Server) Menu(scope string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands[scope+"/"]
}

var commandName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_]{1,32}$`) })

// languageCode matches a language code of two letters, or an empty text.
var languageCode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[a-z]{2})?$`) })

func (s *Server) setMyCommands(q *request) (any, *Error) {
	var list []Command
	if json.Unmarshal([]byte(q.params["commands"]), &list) != nil {
		return nil, badRequest("can't parse commands JSON object")
	}
	if len(list) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for i := range list {
		if len(list[i].Name) > 0 && list[i].Name[0] == '/' {
			list[i].Name = list[i].Name[1:]
		}
		if !commandName().MatchString(list[i].Name) {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := Units(list[i].Description); n < 1 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	key, err := s.scope(q)
	if err != nil {
		return nil, err
	}
	s.commands[key] = list
	s.changed.broadcast()
	return true, nil
}

func (s *Server) getMyCommands(q *request) (any, *Error) {
	key, err := s.scope(q)
	if err != nil {
		return nil, err
	}
	return append([]Command{}, s.commands[key]...), nil
}

func (s *Server) deleteMyCommands(q *request) (any, *Error) {
	key, err := s.scope(q)
	if err != nil {
		return nil, err
	}
	delete(s.commands, key)
	s.changed.broadcast()
	return true, nil
}

// scope returns the scope in a call as a text: the scope's type, the chat and the member, and the language after a
// slash.
func (s *Server) scope(q *request) (string, *Error) {
	scope := struct {
		Type string      `json:"type"`
		Chat json.Number `json:"chat_id"`
		User json.Number `json:"user_id"`
	}{Type: "default"}
	if text := q.params["scope"]; text != "" && json.Unmarshal([]byte(text), &scope) != nil {
		return "", badRequest("can't parse BotCommandScope JSON object")
	}
	code := q.params["language_code"]
	if !languageCode().MatchString(code) {
		return "", badRequest("invalid language code specified")
	}
	key := scope.Type
	switch scope.Type {
	case "default", "all_private_chats", "all_group_chats", "all_chat_administrators":
	case "chat", "chat_administrators", "chat_member":
		id, _ := scope.Chat.Int64()
		if s.chats[ChatID(id)] == nil {
			return "", badRequest("chat not found")
		}
		key += ":" + scope.Chat.String()
		if scope.Type == "chat_member" {
			key += ":" + scope.User.String()
		}
	default:
		return "", badRequest("can't parse BotCommandScope: Unsupported type specified")
	}
	return key + "/" + code, nil
}
