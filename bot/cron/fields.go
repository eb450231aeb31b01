package cron

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
)

// field is something that can be changed of a job.
type field struct {
	code  string // one letter, for buttons
	label string
	value func(j orchestrator.Job) string // as users read it
	plain func(j orchestrator.Job) bool   // it has its usual value, which gets no line; nil: other lines show it

	choices []choice
	ask     string // what a reply is to hold; empty if only buttons set it
	read    func(jobs orchestrator.Jobs, j *orchestrator.Job, text string) error
}

// choice is a value with a button of its own.
type choice struct {
	label string
	set   func(j *orchestrator.Job)
	is    func(j orchestrator.Job) bool
}

func fieldOf(code string) (field, bool) {
	for _, f := range fields() {
		if f.code == code {
			return f, true
		}
	}
	return field{}, false
}

// fields are in the order of their buttons.
func fields() []field {
	return slices.Concat([]field{
		{code: "s", label: "Schedule", ask: "when it is to run, such as: every weekday at 8:30",
			value: func(j orchestrator.Job) string { return j.When },
			read: func(jobs orchestrator.Jobs, j *orchestrator.Job, text string) (err error) {
				j.Schedule, j.Zone, err = jobs.ReadSchedule(text, j.Zone)
				return err
			}},
		{code: "t", label: "Prompt", ask: "what is to be asked",
			value: func(j orchestrator.Job) string { return render.Cut(j.Prompt, promptShown) }, read: setText(func(j *orchestrator.Job) *string { return &j.Prompt })},
		{code: "n", label: "Name", ask: "its new name", value: func(j orchestrator.Job) string { return j.Name }, read: setText(func(j *orchestrator.Job) *string { return &j.Name })},
		{code: "a", label: "Model", value: modelText, plain: func(j orchestrator.Job) bool { return j.Agent == "" }, choices: []choice{{
			label: "As the chat", is: func(j orchestrator.Job) bool { return j.Agent == "" },
			set: func(j *orchestrator.Job) { j.Agent, j.Model, j.Effort = "", "", "" },
		}}},
		{code: "m", label: "Session", value: wordOf(sessionWord()), plain: func(j orchestrator.Job) bool { return j.Session == "own" }, choices: sessionWord().choices()},
		{code: "d", label: "Directory", ask: "the directory it works in, such as: ~/shop",
			value: func(j orchestrator.Job) string { return orWord(render.Cut(j.Dir, 200), "as the chat") },
			plain: func(j orchestrator.Job) bool { return j.Dir == "" },
			read:  setText(func(j *orchestrator.Job) *string { return &j.Dir }), choices: []choice{{
				label: "As the chat", set: func(j *orchestrator.Job) { j.Dir = "" }, is: func(j orchestrator.Job) bool { return j.Dir == "" },
			}}},
		{code: "b", label: "Sandbox", value: wordOf(sandboxWord()), plain: func(j orchestrator.Job) bool { return j.Sandbox == "" }, choices: sandboxWord().choices()},
		{code: "o", label: "Time limit", ask: "a time limit, such as: 45m", value: limitText,
			plain: func(j orchestrator.Job) bool { return j.Timeout == 0 }, choices: limitChoices(), read: readLimit},
		{code: "q", label: "Quiet hours", ask: "the hours in which it is not to run, such as: 22:00 to 07:00", value: quietText,
			plain: func(j orchestrator.Job) bool { return j.QuietFrom == "" }, choices: quietChoices(), read: readQuiet},
		{code: "i", label: "Missed runs", value: wordOf(missedWord()), plain: func(j orchestrator.Job) bool { return j.Missed == "once" }, choices: missedWord().choices()},
		{code: "v", label: "Overlap", value: wordOf(overlapWord()), plain: func(j orchestrator.Job) bool { return j.Overlap == "skip" }, choices: overlapWord().choices()},
		{code: "r", label: "Retries", value: retriesText, plain: func(j orchestrator.Job) bool { return j.Retries == 0 }, choices: retryChoices()},
	}, rightsFields())
}

// word is a field that is one of a few words.
type word struct {
	at    func(j *orchestrator.Job) *string
	words [][2]string // as it is kept, and as users read it
}

func (w word) choices() []choice {
	var all []choice
	for _, kept := range w.words {
		all = append(all, choice{
			label: kept[1], set: func(j *orchestrator.Job) { *w.at(j) = kept[0] },
			is: func(j orchestrator.Job) bool { return *w.at(&j) == kept[0] },
		})
	}
	return all
}

func wordOf(w word) func(j orchestrator.Job) string {
	return func(j orchestrator.Job) string {
		for _, kept := range w.words {
			if *w.at(&j) == kept[0] {
				return kept[1]
			}
		}
		return *w.at(&j)
	}
}

func sessionWord() word {
	return word{func(j *orchestrator.Job) *string { return &j.Session },
		[][2]string{{"own", "one of its own"}, {"shared", "that of the chat"}}}
}

func sandboxWord() word {
	return word{func(j *orchestrator.Job) *string { return &j.Sandbox },
		[][2]string{{"", "as the project has it"}, {"docker", "a container"}}}
}

func missedWord() word {
	return word{func(j *orchestrator.Job) *string { return &j.Missed },
		[][2]string{{"once", "one run for all of them"}, {"skip", "are not made up for"}, {"all", "each is run"}}}
}

func overlapWord() word {
	return word{func(j *orchestrator.Job) *string { return &j.Overlap },
		[][2]string{{"skip", "is skipped while one runs"}, {"queue", "waits for the one before"}}}
}

func modelText(j orchestrator.Job) string {
	if j.Agent == "" {
		return "as the chat"
	}
	return render.ChoiceText(lang.Printer{}, j.Agent, j.Model, j.Effort)
}

func orWord(text, word string) string {
	if text == "" {
		return word
	}
	return text
}

// setText is for fields that any text may be.
func setText(at func(j *orchestrator.Job) *string) func(orchestrator.Jobs, *orchestrator.Job, string) error {
	return func(_ orchestrator.Jobs, j *orchestrator.Job, text string) error {
		*at(j) = strings.TrimSpace(text)
		return nil
	}
}

func limitText(j orchestrator.Job) string {
	if j.Timeout == 0 {
		return "that of the agent"
	}
	return (lang.Printer{}).Span(j.Timeout)
}

func limitChoices() []choice {
	choices := []choice{{label: "That of the agent", set: func(j *orchestrator.Job) { j.Timeout = 0 },
		is: func(j orchestrator.Job) bool { return j.Timeout == 0 }}}
	for _, d := range []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour} {
		choices = append(choices, choice{label: (lang.Printer{}).Span(d), set: func(j *orchestrator.Job) { j.Timeout = d },
			is: func(j orchestrator.Job) bool { return j.Timeout == d }})
	}
	return choices
}

// longestLimit bounds what a user may write.
const longestLimit = 7 * 24 * time.Hour

func readLimit(_ orchestrator.Jobs, j *orchestrator.Job, text string) error {
	d, err := render.ReadSpan(text)
	if err != nil || d < time.Second || d > longestLimit {
		return &orchestrator.BadJob{Why: "Write a time limit such as 45m or 2h, a week at most."}
	}
	j.Timeout = d
	return nil
}

func quietText(j orchestrator.Job) string {
	if j.QuietFrom == "" {
		return "none"
	}
	then := "what is due waits for their end"
	if j.QuietPolicy == "skip" {
		then = "what is due is skipped"
	}
	return j.QuietFrom + " to " + j.QuietTo + ", " + then
}

func quietChoices() []choice {
	policy := func(name string) func(j orchestrator.Job) bool {
		return func(j orchestrator.Job) bool { return j.QuietFrom != "" && j.QuietPolicy == name }
	}
	set := func(name string) func(j *orchestrator.Job) {
		return func(j *orchestrator.Job) {
			if j.QuietFrom == "" {
				j.QuietFrom, j.QuietTo = "22:00", "07:00"
			}
			j.QuietPolicy = name
		}
	}
	return []choice{
		{label: "None", set: func(j *orchestrator.Job) { j.QuietFrom, j.QuietTo, j.QuietPolicy = "", "", "" },
			is: func(j orchestrator.Job) bool { return j.QuietFrom == "" }},
		{label: "What is due waits", set: set("hold"), is: policy("hold")},
		{label: "What is due is skipped", set: set("skip"), is: policy("skip")},
	}
}

func readQuiet(_ orchestrator.Jobs, j *orchestrator.Job, text string) error {
	words := strings.Fields(strings.NewReplacer("-", " ", "–", " ", " to ", " ", " until ", " ", "from ", "").Replace(strings.ToLower(text)))
	if len(words) == 2 {
		from, errFrom := time.Parse("15:04", words[0])
		to, errTo := time.Parse("15:04", words[1])
		if errFrom == nil && errTo == nil {
			j.QuietFrom, j.QuietTo = from.Format("15:04"), to.Format("15:04")
			return nil
		}
	}
	return &orchestrator.BadJob{Why: "Write two times of day such as 22:00 to 07:00."}
}

func retriesText(j orchestrator.Job) string {
	if j.Retries == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, the first after %s", j.Retries, (lang.Printer{}).Span(j.Backoff))
}

func retryChoices() []choice {
	var choices []choice
	for _, n := range []int{0, 1, 2, 3, 5} {
		label := fmt.Sprint(n)
		if n == 0 {
			label = "None"
		}
		choices = append(choices, choice{label: label, set: func(j *orchestrator.Job) { j.Retries = n },
			is: func(j orchestrator.Job) bool { return j.Retries == n }})
	}
	return choices
}
