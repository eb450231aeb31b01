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
	To   string // the bot it names; empty for none
	Args string
}

// commandForm is strict on purpose: "/usr/bin/env fails" is a prompt.
var commandForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]{3,32}))?(?:\s+|$)`)
})

// parseCommand reads a command. Text that only begins with a slash is none, nor is "//name", which is how
// people send a line that begins with a slash to the agent.
func parseCommand(text string) (Command, bool) {
	m := commandForm().FindStringSubmatch(text)
	if m == nil {
		return Command{}, false
	}
	return Command{
		Name: strings.ToLower(m[1]), To: m[2],
		Args: strings.TrimSpace(text[len(m[0]):]),
	}, true
}

// commandOf reads the command of a message. In the caption of a file it is one only if it takes a file. In a group our mention
// may stand before it: "@our_bot /abort" is "/abort@our_bot".
func commandOf(m *wireMessage, in *Message, me Identity) (Command, bool) {
	text, _ := m.words()
	c, ok := parseCommand(text)
	if !ok && !in.Private {
		c, ok = parseCommand(in.Plain)
		c.To = me.Username
	}
	isCaption := m.Text == ""
	if ok && isCaption && (fileOf(m) == nil || !c.takesFile()) {
		return Command{}, false
	}
	return c, ok
}

// takesFile says whether a command is about a file that it comes with or answers to.
func (c Command) takesFile() bool {
	return c.Name == "put" || c.Name == "sessions" && c.Args == "import"
}

// takesPrompt says whether what stands behind a command is for an agent, as formatted as a prompt.
func (c Command) takesPrompt() bool {
	return slices.Contains([]string{"cmd", "compact", "consult", "cron", "group"}, c.Name)
}

// unescaped is the prompt that a text stands for: "//compact" is "/compact".
func unescaped(text string) string {
	if strings.HasPrefix(text, "//") {
		if _, ok := parseCommand(text[1:]); ok {
			return text[1:]
		}
	}
	return text
}

// isAbortWord says whether a text is nothing but one of words. Case and closing punctuation do not count.
func isAbortWord(text string, words []string) bool {
	text = strings.TrimSpace(strings.TrimRightFunc(strings.TrimSpace(text), unicode.IsPunct))
	return text != "" && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(text, w) })
}

func isAbortCommand(name string) bool { return name == "abort" || name == "stop" }

// RightFor is the right that a command needs; empty for one that all may use who get answers.
func RightFor(c Command) orchestrator.Right {
	switch c.Name {
	case "start", "help":
		return ""
	case "abort", "stop":
		return orchestrator.EndOwn
	case "sessions":
		if c.takesFile() {
			return orchestrator.ChangeSessions
		}
		return orchestrator.Read
	case "status", "diff", "usage", "audit":
		return orchestrator.Read
	case "new", "rename", "terminal":
		return orchestrator.ChangeSessions
	case "files", "get", "put", "checkpoint":
		return orchestrator.ReachFiles
	case "cron":
		return orchestrator.MakeSchedules
	case "users", "pair":
		return orchestrator.ManageUsers
	case "doctor", "reload":
		return orchestrator.ManageDuctor
	}
	return orchestrator.ChangeSettings
}

// Refusal says what a role may do, to a user who wanted more.
func Refusal(role orchestrator.UserRole) lang.Key {
	switch role {
	case orchestrator.RoleMember:
		return "common.not-for-members"
	case orchestrator.RoleViewer:
		return "common.not-for-viewers"
	}
	return "bot.not-owner"
}
