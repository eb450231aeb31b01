package modelapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"ductor/internal/sim/script"
)

// conversation is the content of a request, in the same form for all APIs.
type conversation struct {
	session  string
	earlier  []string // the user's earlier prompts
	prompt   string
	position int // number of tool results since the newest prompt
	items    int // number of messages up to the newest prompt; differs between prompts with the same text
	tools    []string
	spaces   map[string]string // namespaces of OpenAI's tools, by tool; tools without a namespace are missing
	free     []string          // OpenAI's tools that expect a text instead of a JSON object
	searched []string          // arguments of the model's earlier searches for tools
	stream   bool
	resumes  bool // the stream broke, and the CLI requests the rest of the answer
}

// steps returns the steps of the script that this request must perform.
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

// key returns a unique name for step i of the response to this request.
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

// add adds a text with the role user. It ignores texts that the CLI itself wrote.
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

// wrapped reports whether the CLI, and not the user, wrote a text with the role user.
func wrapped(text string) bool {
	text = strings.TrimSpace(text)
	for _, tag := range [...]string{"<system-reminder>", "<environment_context>", "<user_instructions>",
		"<permissions instructions>", "<skills_instructions>", "<turn_aborted>", "<local-command-stdout>",
		"<command-name>", "<mode_changed_notice>", "# AGENTS.md instructions", "[Request interrupted by user",
		"Please continue from where you left off"} {
		if strings.HasPrefix(text, tag) {
			return true
		}
	}
	return text == ""
}

// offered returns the first of the given names that is a tool of the CLI, or "".
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
