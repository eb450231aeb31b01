package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"ductor/internal/sim/script"
)

// answersFile is the name of a file in the home directory of scripted agents. The file is a JSON object that maps
// prompts to scripts. If a prompt is not in the file and contains no directives, the agent runs the script with the key
// AnyPrompt.
const answersFile = "answers.json"

// AnyPrompt is the key of the script for all prompts that have no script of their own. In each script, the agent
// replaces PromptPlace by the prompt.
const (
	AnyPrompt   = "*"
	PromptPlace = "{prompt}"
)

// quoteLimit is the maximum number of characters of a prompt that an answer repeats.
const quoteLimit = 120

// InstallAt installs the scripted agents into home/bin, like Install. The agents store their sessions below home. The
// keys of answers are prompts, and the values are the scripts for these prompts.
func InstallAt(home string, answers map[string]string) (Programs, error) {
	bin := filepath.Join(home, binDir)
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return Programs{}, fmt.Errorf("install scripted agent: %w", err)
	}
	text, err := json.Marshal(answers)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, answersFile), text, 0o600)
	}
	if err != nil {
		return Programs{}, fmt.Errorf("write the answers of scripted agents: %w", err)
	}
	return Install(bin)
}

const binDir = "bin"

// ownHome returns the home directory into which InstallAt installed the program of an agent. It returns "" if InstallAt
// did not install the program.
func ownHome(program string) string {
	home, bin := filepath.Split(filepath.Dir(program))
	if _, err := os.Stat(filepath.Join(home, answersFile)); err != nil || bin != binDir {
		return ""
	}
	return filepath.Clean(home)
}

// responses parses the script in a prompt. It ignores the text that ductor adds before the user's text, because
// ductor's text may contain earlier prompts with directives.
func (p *process) responses(prompt string) [][]script.Step {
	said := newestText(prompt)
	if p.program.Heard != nil && p.life.Err() == nil {
		p.program.Heard(said)
	}
	answers := p.answers()
	if answer, ok := answers[said]; ok {
		return script.Parse(answer).Responses()
	}
	s := script.Parse(said)
	if asksForSummary(said) {
		s = script.Parse(`[[text "` + Summary + `"]]`)
	}
	if answer, ok := answers[AnyPrompt]; ok && s.Default {
		s = script.Parse(strings.ReplaceAll(answer, PromptPlace, quotable(said)))
	}
	return s.Responses()
}

func (p *process) answers() (all map[string]string) {
	text, err := os.ReadFile(filepath.Join(p.store.root, answersFile))
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

// quotes matches the quotation that ductor puts before a prompt that replies to a message.
var quotes = regexp.MustCompile(`(?m)^\[(?:In reply to|Said in) [^\n]*\n(?:>[^\n]*\n)+`)

// Summary is the answer to a request of ductor to summarize a conversation.
const Summary = "The user made plans, and the agent noted them."

func asksForSummary(prompt string) bool {
	return strings.HasPrefix(prompt, "Summarize this part of a conversation")
}

// newestText returns the user's text in a prompt. It removes the text that ductor adds before it: instructions, project
// files, earlier turns and quotations. It also removes the conversation from a request to summarize it, because a model
// does not follow the prompts in there.
func newestText(prompt string) string {
	for _, end := range []string{"</instructions>\n\n", "</project-files>\n\n",
		"[End of what was said before. The request:]\n\n"} {
		if i := strings.LastIndex(prompt, end); i >= 0 {
			prompt = prompt[i+len(end):]
		}
	}
	if asksForSummary(prompt) {
		prompt, _, _ = strings.Cut(prompt, "\nThe conversation:\n")
	}
	return strings.TrimSpace(quotes.ReplaceAllString(prompt, ""))
}

// quotable returns the beginning of a text in a form that can stand between quotes in a directive.
func quotable(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > quoteLimit {
		line = append(line[:quoteLimit:quoteLimit], '…')
	}
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "[[", "[ [").Replace(string(line))
}
