package updates

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"ductor/lang"
	"ductor/orchestrator"
)

// Command is a bot command that a user sent, such as "/model opus" or "/new@our_bot".
type Command struct {
	Name string // lower case, without the slash
	To   string // name of the bot after the @; empty if the command names no bot
	Args string
}

// commandForm matches a bot command at the start of a text. It does not match a path: "/usr/bin/env is missing" is a
// prompt.
var commandForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]{3,32}))?(?:\s+|$)`)
})

// ParseCommand parses a command at the start of a text. It returns false if the text does not start with a command. It
// also returns false if the text starts with two slashes: users write "//name" to send "/name" to the agent.
func ParseCommand(text string) (Command, bool) {
	m := commandForm().FindStringSubmatch(text)
	if m == nil {
		return Command{}, false
	}
	return Command{
		Name: strings.ToLower(m[1]), To: m[2],
		Args: strings.TrimSpace(text[len(m[0]):]),
	}, true
}

// CommandSpec describes a command of the bot.
type CommandSpec struct {
	Name    string             // without the slash
	Aliases []string           // alternative names, which no menu shows
	Help    lang.Key           // line in the menu and in /help; empty: the command is hidden
	Right   orchestrator.Right // right that users need for the command; empty: none
	Takes   CommandInput
	Absent  bool        // the bot was started without the command's feature, so the command is unknown to users
	Do      CommandFunc // nil only for /abort, which the router runs before queued commands
}

// CommandInput is the kind of arguments that a command accepts.
type CommandInput string

// Kinds of CommandInput.
const (
	TakesWords  CommandInput = ""
	TakesPrompt CommandInput = "prompt" // a prompt for an agent; keeps the user's formatting
	TakesTurn   CommandInput = "turn"   // a prompt, with or without files, that becomes a turn and can be edited
	TakesFile   CommandInput = "file"   // a file in the command's message, or in the message to which it replies
)

// AbortName is the name of the command that stops everything in a conversation.
const AbortName = "abort"

// Named reports whether users can call the command by this name.
func (s CommandSpec) Named(name string) bool {
	return s.Name == name || slices.Contains(s.Aliases, name)
}

func (s CommandSpec) isAbort() bool { return s.Do == nil }

// takesPrompt reports whether the arguments of the command are a prompt, which keeps the user's formatting.
func (s CommandSpec) takesPrompt() bool { return s.Takes == TakesPrompt || s.Takes == TakesTurn }

// isTurn reports whether the message of a command becomes a turn. It returns false if the command has neither a prompt
// nor a file.
func (s CommandSpec) isTurn(c Command, in *Message) bool {
	return s.Takes == TakesTurn && (c.Args != "" || in.sent.file != nil)
}

// Allows reports whether users with this role may use the command.
func (s CommandSpec) Allows(role orchestrator.UserRole) bool {
	return s.Right == "" || role.May(s.Right)
}

// commandOf returns the command in a message. In a group, the bot's name may stand before the command: "@our_bot
// /abort" means "/abort@our_bot". A command can also be the caption of a file.
func (r *Router) commandOf(m *wireMessage, in *Message) (Command, bool) {
	text, _ := m.textAndEntities()
	c, ok := ParseCommand(text)
	if !ok && !in.Private {
		c, ok = ParseCommand(in.Plain)
		c.To = r.me.Username
	}
	if isCaption := m.Text == ""; !ok || isCaption && in.sent.file == nil {
		return Command{}, false
	}
	return c, true
}

// unescaped removes the first slash of a text such as "//compact", which users write to send "/compact" to the agent.
func unescaped(text string) string {
	if strings.HasPrefix(text, "//") {
		if _, ok := ParseCommand(text[1:]); ok {
			return text[1:]
		}
	}
	return text
}

// isAbortWord reports whether the text consists only of one of the words. It ignores case and punctuation at the end.
func isAbortWord(text string, words []string) bool {
	text = strings.TrimSpace(strings.TrimRightFunc(strings.TrimSpace(text), unicode.IsPunct))
	return text != "" && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(text, w) })
}

// Refusal returns the key of the text that tells users with the given role that they may not use a command.
func Refusal(role orchestrator.UserRole) lang.Key {
	switch role {
	case orchestrator.RoleMember:
		return "common.not-for-members"
	case orchestrator.RoleViewer:
		return "common.not-for-viewers"
	}
	return "bot.not-owner"
}
