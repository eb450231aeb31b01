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
	To   string // the addressed bot; empty for none
	Args string
}

// commandForm matches only well-formed bot commands. A text that begins with a path, such as "/usr/bin/env is
// missing", is a prompt.
var commandForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]{3,32}))?(?:\s+|$)`)
})

// ParseCommand parses a command. It returns false for any other text, and for "//name", with which users send the
// agent a line that starts with a slash.
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
	Name    string             // as users type it, without the slash
	Aliases []string           // other names, not listed in menus
	Help    lang.Key           // its line in the menu and in /help; empty for an unlisted command
	Right   orchestrator.Right // the required right; empty if every role may use the command
	Takes   CommandInput
	Absent  bool        // not available in this bot, so users get the answer for unknown commands
	Do      CommandFunc // handler; nil for the command that aborts, which the router runs ahead of the queue
}

// CommandInput is the kind of input that a command needs in addition to words.
type CommandInput string

// Kinds of CommandInput.
const (
	TakesWords  CommandInput = ""
	TakesPrompt CommandInput = "prompt" // a prompt for an agent, with the user's formatting
	TakesFile   CommandInput = "file"   // the file of the message, or of the message that it replies to
)

func (s CommandSpec) isAbort() bool { return s.Do == nil }

// Allows reports whether a role may use the command.
func (s CommandSpec) Allows(role orchestrator.UserRole) bool {
	return s.Right == "" || role.May(s.Right)
}

// commandOf returns the command in a message. The caption of a file is a command only if that command needs a file.
// In a group, the bot's mention may precede the command: "@our_bot /abort" means "/abort@our_bot".
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

// isAbortWord reports whether a text is in the list words. It ignores case and punctuation at the end.
func isAbortWord(text string, words []string) bool {
	text = strings.TrimSpace(strings.TrimRightFunc(strings.TrimSpace(text), unicode.IsPunct))
	return text != "" && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(text, w) })
}

// Refusal returns the text that explains to a user the rights of their role.
func Refusal(role orchestrator.UserRole) lang.Key {
	switch role {
	case orchestrator.RoleMember:
		return "common.not-for-members"
	case orchestrator.RoleViewer:
		return "common.not-for-viewers"
	}
	return "bot.not-owner"
}
