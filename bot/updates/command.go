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

// Command is a message such as "/model opus" or "/new@our_bot".
type Command struct {
	Name string // lower case, without the slash
	To   string // the bot it is addressed to; empty for none
	Args string
}

// commandForm matches only well-formed bot commands. A text that merely begins with a path, such as "/usr/bin/env is
// missing", is a prompt.
var commandForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]{3,32}))?(?:\s+|$)`)
})

// ParseCommand parses a command. Other text that starts with a slash is no command. Neither is "//name": that is how
// users send the agent a line that starts with a slash.
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

// CommandSpec describes a command that the bot knows.
type CommandSpec struct {
	Name    string             // as users type it, without the slash
	Aliases []string           // other names, not listed in menus
	Help    lang.Key           // its line in the menu and in /help; empty if it is not listed
	Right   orchestrator.Right // empty if every role may use it
	Takes   CommandInput
	Absent  bool        // not available in this bot: users get the answer that the command is unknown
	Do      CommandFunc // nil for the command that aborts, which the router runs ahead of the queue
}

// CommandInput is the input of a command besides plain words.
type CommandInput string

// Inputs of commands.
const (
	TakesWords  CommandInput = ""
	TakesPrompt CommandInput = "prompt" // a text for an agent, with the user's formatting
	TakesFile   CommandInput = "file"   // the file of the message, or of the message it replies to
)

func (s CommandSpec) isAbort() bool { return s.Do == nil }

// Allows reports whether a role may use the command.
func (s CommandSpec) Allows(role orchestrator.UserRole) bool {
	return s.Right == "" || role.May(s.Right)
}

// commandOf returns the command of a message. The caption of a file is a command only if that command takes a file. In
// a group the bot's mention may precede the command: "@our_bot /abort" means "/abort@our_bot".
func (r *Router) commandOf(m *wireMessage, in *Message) (Command, bool) {
	text, _ := m.textAndEntities()
	c, ok := ParseCommand(text)
	if !ok && !in.Private {
		c, ok = ParseCommand(in.Plain)
		c.To = r.me.Username
	}
	if isCaption := m.Text == ""; ok && isCaption {
		spec, _ := r.handler.Command(c.Name)
		ok = spec.Takes == TakesFile && fileOf(m) != nil
	}
	if !ok {
		return Command{}, false
	}
	return c, true
}

// unescaped returns the prompt of a text: "//compact" becomes "/compact".
func unescaped(text string) string {
	if strings.HasPrefix(text, "//") {
		if _, ok := ParseCommand(text[1:]); ok {
			return text[1:]
		}
	}
	return text
}

// isAbortWord reports whether a text consists of a single one of words. It ignores case and closing punctuation.
func isAbortWord(text string, words []string) bool {
	text = strings.TrimSpace(strings.TrimRightFunc(strings.TrimSpace(text), unicode.IsPunct))
	return text != "" && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(text, w) })
}

// Refusal explains to a user which rights their role has.
func Refusal(role orchestrator.UserRole) lang.Key {
	switch role {
	case orchestrator.RoleMember:
		return "common.not-for-members"
	case orchestrator.RoleViewer:
		return "common.not-for-viewers"
	}
	return "bot.not-owner"
}
