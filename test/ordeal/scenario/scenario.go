package scenario

import (
	"fmt"
	"strings"
	"time"
)

// Scenario is one run: a world and its steps. In a simulated world, the same scenario leads to the same run.
type Scenario struct {
	Seed    uint64
	Options Options
	Steps   []Step
}

// Options describe the world of a scenario. The zero value is a world with only Claude and private chats.
type Options struct {
	Agents    []string // the installed scripted agents, the default one first; if empty, Claude
	Languages []Language
	Settings  []Setting
	Chats     []Chat
}

// Language is the language of a user's Telegram, such as "de".
type Language struct {
	Of  Person
	Tag string
}

// Setting is a configuration key with its TOML value: `set queue.max "3"`.
type Setting struct {
	Key   string
	Value Quoted
}

// Chat is a group with the bot and all listed users in it. Private chats need no declaration.
type Chat struct {
	Name   string
	Kind   ChatKind
	Topics []string // of a forum
}

type (
	seedLine   struct{ Seed uint64 }
	agentsLine struct{ Agents []string }
)

// headers returns the forms of the lines before the steps.
func headers() []form {
	return []form{
		{"seed {Seed}", seedLine{}},
		{"agents {Agents}", agentsLine{}},
		{"language {Of} {Tag}", Language{}},
		{"set {Key} {Value}", Setting{}},
		{"chat {Name} {Kind} {Topics}", Chat{}},
	}
}

// String formats the scenario as text for Parse.
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

// Parse parses a scenario. It ignores empty lines and lines that begin with #. Errors name the line.
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

// Prompts returns all prompts of the scenario by their tokens.
func (s Scenario) Prompts() map[Token]Prompt {
	all := map[Token]Prompt{}
	for _, step := range s.Steps {
		if p, ok := PromptOf(step); ok {
			all[p.Token] = p
		}
	}
	return all
}

// PromptOf returns the prompt of a step, if it has one.
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

// Kind returns the name of a step in statistics: its type, and for faults also their kind, such as "telegram 429".
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

// IsFault reports whether a step is a fault, not an action of a user or a wait.
func IsFault(step Step) bool {
	switch step := step.(type) {
	case Stop:
		return step.How == Crash || step.How == Power
	case Telegram, Updates, Disk, Happen, Kill, Clock, Suspend:
		return true
	}
	return false
}

// Latest returns the longest delay of Telegram's responses.
func (s Scenario) Latest() (most time.Duration) {
	for _, step := range s.Steps {
		if t, ok := step.(Telegram); ok && t.Fault == Late {
			most = max(most, t.For)
		}
	}
	return most
}
