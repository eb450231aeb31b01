package modelapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"ductor/internal/sim/script"
)

// conversation is what a request tells, whatever its API.
type conversation struct {
	session  string
	earlier  []string // prompts before the newest
	prompt   string
	position int // tool results since the prompt
	items    int // messages in all: tells repeated prompts apart
	tools    []string
	spaces   map[string]string // of OpenAI's tools: the namespace, where there is one
	free     []string          // of OpenAI's tools: those that take a text, not an object
	searched []string          // for tools that the CLI holds back: the arguments of the searches
	stream   bool
	resumes  bool // the CLI asks to go on with an answer whose stream broke
}

// steps is the part of the script that this request asks for.
func (c conversation) steps() []script.Step {
	responses := script.Parse(c.prompt).Responses()
	if c.position >= len(responses) {
		return []script.Step{script.Done()}
	}
	steps := responses[c.position]
	broke := slices.IndexFunc(steps, func(st script.Step) bool { _, drops := st.(script.Drop); return drops })
	if c.resumes && broke >= 0 {
		return steps[broke+1:]
	}
	return steps
}

// key names step i of this request among all there are.
func (c conversation) key(i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%s", c.session, c.items, c.position, c.prompt))
	return fmt.Sprintf("%s/%d", hex.EncodeToString(sum[:8]), i)
}

func (c conversation) history() string {
	if len(c.earlier) == 0 {
		return "This is the first message of the session."
	}
	var b strings.Builder
	for i, p := range c.earlier {
		said := script.Parse(p).Plain
		if said == "" {
			said = p
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d. %s", i+1, said)
	}
	return b.String()
}

// add notes one text of the user. wrapped is text that a CLI adds to the prompt.
func (c *conversation) add(text string) {
	text = unwrapCopilot(text)
	if wrapped(text) {
		return
	}
	if c.resumes = strings.HasPrefix(text, "The connection dropped mid-response"); c.resumes {
		return
	}
	if c.prompt != "" {
		c.earlier = append(c.earlier, c.prompt)
	}
	c.prompt, c.position = text, 0
}

// wrapped says whether a text with role user was made by the CLI, not by the user.
func wrapped(text string) bool {
	text = strings.TrimSpace(text)
	for _, tag := range [...]string{"<system-reminder>", "<environment_context>", "<user_instructions>",
		"<permissions instructions>", "<skills_instructions>", "<turn_aborted>", "<local-command-stdout>",
		"<command-name>", "<mode_changed_notice>", "# AGENTS.md instructions", "[Request interrupted by user", "Please continue from where you left off"} {
		if strings.HasPrefix(text, tag) {
			return true
		}
	}
	return text == ""
}

// offered is the first of names that the CLI offers, or "".
func (c conversation) offered(names ...string) string {
	for _, want := range names {
		for _, have := range c.tools {
			if have == want {
				return have
			}
		}
	}
	return ""
}
