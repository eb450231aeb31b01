package scenario

import (
	"fmt"
	"strings"
	"time"
)

// Scenario is a test of ductor: options and steps. In package simulated, a scenario has the same result each time.
type Scenario struct {
	Seed    uint64
	Options Options
	Steps   []Step
}

// Options contains agents, languages, settings and chats that exist before the first step. With the zero value, a
// scenario has Claude and private chats only.
type Options struct {
	Agents    []string // installed scripted agents, the default agent first; empty means Claude
	Languages []Language
	Settings  []Setting
	Chats     []Chat
}

// Language sets the language of a user's Telegram app, such as "de".
type Language struct {
	Of  Person
	Tag string
}

// Setting sets a key of ductor's configuration to a TOML value. It is written as `set queue.max "3"`.
type Setting struct {
	Key   string
	Value Quoted
}

// Chat is a group whose members are the bot and all users of ductor. Every user also has a private chat with the bot,
// which Options.Chats does not list.
type Chat struct {
	Name   string
	Kind   ChatKind
	Topics []string // names of the topics, for a forum
}

type (
	seedLine   struct{ Seed uint64 }
	agentsLine struct{ Agents []string }
)

// headers returns the forms of the first lines of a scenario, which contain the seed and the options. The lines with
// the steps follow.
func headers() []form {
	return []form{
		{"seed {Seed}", seedLine{}},
		{"agents {Agents}", agentsLine{}},
		{"language {Of} {Tag}", Language{}},
		{"set {Key} {Value}", Setting{}},
		{"chat {Name} {Kind} {Topics}", Chat{}},
	}
}

// String returns the scenario as text, which Parse can parse.
func (s Scenario) String() string {
	var b strings.Builder
	write := func(line any) { fmt.Fprintln(&b, grammar.print(line)) }
	write(seedLine{s.Seed})
	if len(s.Options.Agents) > 0 {
		write(agentsLine{s.Options.Agents})
	}
	for _, l := range s.Options.Languages {
		write(l)
	}
	for _, o := range s.Options.Settings {
		write(o)
	}
	for _, c := range s.Options.Chats {
		write(c)
	}
	b.WriteString("\n")
	for _, step := range s.Steps {
		write(step)
	}
	return b.String()
}

// Parse parses a scenario. It ignores empty lines and lines that begin with #. An error contains the line that is
// wrong.
func Parse(text string) (Scenario, error) {
	var s Scenario
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		read, err := grammar.parse(line)
		if err != nil {
			return Scenario{}, fmt.Errorf("line %d: %w", i+1, err)
		}
		s.add(read)
	}
	return s, nil
}

func (s *Scenario) add(line any) {
	switch line := line.(type) {
	case seedLine:
		s.Seed = line.Seed
	case agentsLine:
		s.Options.Agents = append(s.Options.Agents, line.Agents...)
	case Language:
		s.Options.Languages = append(s.Options.Languages, line)
	case Setting:
		s.Options.Settings = append(s.Options.Settings, line)
	case Chat:
		s.Options.Chats = append(s.Options.Chats, line)
	case Step:
		s.Steps = append(s.Steps, line)
	}
}

// Prompts returns all prompts of the scenario, by token.
func (s Scenario) Prompts() map[Token]Prompt {
	all := map[Token]Prompt{}
	for _, step := range s.Steps {
		if p, ok := PromptOf(step); ok {
			all[p.Token] = p
		}
	}
	return all
}

// PromptOf returns the prompt of a step. It returns false if the step has no prompt.
func PromptOf(step Step) (Prompt, bool) {
	switch step := step.(type) {
	case Say:
		return step.Prompt, true
	case Send:
		return step.Prompt, true
	case Edit:
		return step.Prompt, true
	case Schedule:
		return step.Prompt, true
	case Deliver:
		return step.Prompt, true
	}
	return Prompt{}, false
}

// Kind returns the name of a step for statistics. The name is the type of the step and the kind of fault, for example
// "telegram 429".
func Kind(step Step) string {
	switch step := step.(type) {
	case Stop:
		return string(step.How)
	case Telegram:
		return "telegram " + string(step.Fault)
	case Updates:
		return "updates " + string(step.How)
	case Disk:
		return "disk " + string(step.Fault)
	case Happen:
		return "chat " + string(step.What)
	case Kill:
		return "kill " + string(step.What)
	case Press:
		return "press"
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", step), "scenario."))
}

// IsFault reports whether a step is a fault. Other steps are actions of users and waits.
func IsFault(step Step) bool {
	switch step := step.(type) {
	case Stop:
		return step.How == Crash || step.How == Power
	case Telegram, Updates, Disk, Happen, Kill, Clock, Suspend:
		return true
	}
	return false
}

// Latest returns the longest delay of a response from Telegram.
func (s Scenario) Latest() (most time.Duration) {
	for _, step := range s.Steps {
		if t, ok := step.(Telegram); ok && t.Fault == Late {
			most = max(most, t.For)
		}
	}
	return most
}
