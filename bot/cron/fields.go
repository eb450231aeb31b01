package cron

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
)

// field is a property of a job that users can change.
type field struct {
	code  string // one letter, used in the data of buttons
	label string
	more  bool                            // the form shows the field only after the user pressed "More"
	value func(j orchestrator.Job) string // formats the value for users
	// plain reports whether the value is the default. The job's page omits default values. plain is nil for a field
	// that the page shows in another way.
	plain func(j orchestrator.Job) bool

	choices []choice
	ask     string // text that asks the user to reply with a value; empty for fields that only have buttons
	read    func(jobs orchestrator.Jobs, j *orchestrator.Job, text string) error
	// part copies the values of this field to another job: the values that read sets. It is nil if read is nil.
	part func(from orchestrator.Job, to *orchestrator.Job)
}

// part returns a function that copies a value from one job to another. pointerTo returns a pointer to this value.
func part[T any](pointerTo func(j *orchestrator.Job) *T) func(from orchestrator.Job, to *orchestrator.Job) {
	return func(from orchestrator.Job, to *orchestrator.Job) { *pointerTo(to) = *pointerTo(&from) }
}

// choice is a value that users can choose with a button.
type choice struct {
	label string
	set   func(j *orchestrator.Job)
	is    func(j orchestrator.Job) bool
}

func fieldOf(p lang.Printer, code string) (field, bool) {
	for _, f := range fields(p) {
		if f.code == code {
			return f, true
		}
	}
	return field{}, false
}

// firstFields is the number of fields that the form shows before the user presses "More".
const firstFields = 4

// fields returns all fields, in the order of their buttons.
func fields(p lang.Printer) []field {
	all := slices.Concat([]field{
		{code: "s", label: p.Text("cron.schedule"), ask: p.Text("cron.ask-schedule"),
			value: func(j orchestrator.Job) string { return j.When },
			read: func(jobs orchestrator.Jobs, j *orchestrator.Job, text string) (err error) {
				j.Schedule, j.Zone, err = jobs.ReadSchedule(j.Conversation, text, j.Zone)
				return err
			},
			part: func(from orchestrator.Job, to *orchestrator.Job) {
				to.Schedule, to.Zone = from.Schedule, from.Zone
			}},
		{code: "t", label: p.Text("cron.prompt"), ask: p.Text("cron.ask-prompt"),
			value: func(j orchestrator.Job) string { return render.Cut(j.Prompt, promptShown) },
			read:  setText(promptOf), part: part(promptOf)},
		{code: "d", label: p.Text("cron.project"), ask: p.Text("cron.ask-project"),
			value: func(j orchestrator.Job) string { return cmp.Or(render.Cut(j.Dir, 200), p.Text("cron.as-chat")) },
			plain: func(j orchestrator.Job) bool { return j.Dir == "" }, read: readDir, part: part(dirOf),
			choices: []choice{one(p.Text("cron.as-chat-button"), dirOf, "")}},
		{code: "a", label: p.Text("cron.model"), value: func(j orchestrator.Job) string { return modelText(p, j) },
			plain: func(j orchestrator.Job) bool { return j.Agent == "" }, choices: []choice{{
				label: p.Text("cron.as-chat-button"), is: func(j orchestrator.Job) bool { return j.Agent == "" },
				set: func(j *orchestrator.Job) { j.Agent, j.Model, j.Effort = "", "", "" },
			}}},
		{code: "n", label: p.Text("cron.name"), ask: p.Text("cron.ask-name"), value: func(j orchestrator.Job) string {
			return j.Name
		}, read: setText(nameOf), part: part(nameOf)},
		words("m", p.Text("cron.session"), func(j *orchestrator.Job) *string { return &j.Session },
			[2]string{"own", p.Text("cron.session-own")}, [2]string{"shared", p.Text("cron.session-shared")}),
		words("b", p.Text("cron.sandbox"), func(j *orchestrator.Job) *string { return &j.Sandbox },
			[2]string{"", p.Text("cron.sandbox-project")}, [2]string{"docker", p.Text("cron.sandbox-docker")}),
		{code: "o", label: p.Text("cron.limit"), ask: p.Text("cron.ask-limit"), value: func(j orchestrator.Job) string {
			return limitText(p, j)
		},
			plain: func(j orchestrator.Job) bool { return j.Timeout == 0 }, choices: limitChoices(p),
			read: readLimit(p), part: part(func(j *orchestrator.Job) *time.Duration { return &j.Timeout })},
		{code: "q", label: p.Text("cron.quiet"), ask: p.Text("cron.ask-quiet"), value: func(j orchestrator.Job) string {
			return quietText(p, j)
		},
			plain: func(j orchestrator.Job) bool { return j.QuietFrom == "" }, choices: quietChoices(p),
			read: readQuiet(p), part: part(func(j *orchestrator.Job) *orchestrator.Hours { return &j.Hours })},
		words("i", p.Text("cron.missed"), func(j *orchestrator.Job) *string { return &j.Missed },
			[2]string{"once", p.Text("cron.missed-once")}, [2]string{"skip", p.Text("cron.missed-skip")},
			[2]string{"all", p.Text("cron.missed-all")}),
		words("v", p.Text("cron.overlap"), func(j *orchestrator.Job) *string { return &j.Overlap },
			[2]string{"skip", p.Text("cron.overlap-skip")}, [2]string{"queue", p.Text("cron.overlap-queue")}),
		{code: "r", label: p.Text("cron.retries"), value: func(j orchestrator.Job) string { return retriesText(p, j) },
			plain: func(j orchestrator.Job) bool { return j.Retries == 0 }, choices: retryChoices(p)},
	}, rightsFields(p))
	for i := range all {
		all[i].more = i >= firstFields
	}
	return all
}

// one returns a choice that sets a field of a job to a value. pointerTo returns a pointer to this field.
func one[T comparable](label string, pointerTo func(j *orchestrator.Job) *T, value T) choice {
	return choice{label, func(j *orchestrator.Job) { *pointerTo(j) = value }, func(j orchestrator.Job) bool {
		return *pointerTo(&j) == value
	}}
}

// words returns a field with a fixed list of values. Each pair contains a value and its name for users. The first value
// is the default.
func words(code, label string, pointerTo func(j *orchestrator.Job) *string, pairs ...[2]string) field {
	f := field{code: code, label: label, plain: func(j orchestrator.Job) bool { return *pointerTo(&j) == pairs[0][0] }}
	for _, word := range pairs {
		f.choices = append(f.choices, one(word[1], pointerTo, word[0]))
	}
	f.value = func(j orchestrator.Job) string {
		if i := slices.IndexFunc(f.choices, func(c choice) bool { return c.is(j) }); i >= 0 {
			return f.choices[i].label
		}
		return *pointerTo(&j)
	}
	return f
}

func dirOf(j *orchestrator.Job) *string { return &j.Dir }

func promptOf(j *orchestrator.Job) *string { return &j.Prompt }

func nameOf(j *orchestrator.Job) *string { return &j.Name }

// readDir also resolves links in the path. EditJob would not resolve them if the user sent the job's current path
// again.
func readDir(jobs orchestrator.Jobs, j *orchestrator.Job, text string) (err error) {
	j.Dir, err = jobs.ReadDir(j.Conversation, strings.TrimSpace(text))
	return err
}

func modelText(p lang.Printer, j orchestrator.Job) string {
	if j.Agent == "" {
		return p.Text("cron.as-chat")
	}
	return render.ChoiceText(p, j.Agent, j.Model, j.Effort)
}

// setText returns a function that stores the user's text in a field of a job. Any text is valid.
func setText(at func(j *orchestrator.Job) *string) func(orchestrator.Jobs, *orchestrator.Job, string) error {
	return func(_ orchestrator.Jobs, j *orchestrator.Job, text string) error {
		*at(j) = strings.TrimSpace(text)
		return nil
	}
}

func limitText(p lang.Printer, j orchestrator.Job) string {
	if j.Timeout == 0 {
		return p.Text("cron.limit-agent")
	}
	return p.Span(j.Timeout)
}

func limitChoices(p lang.Printer) []choice {
	at := func(j *orchestrator.Job) *time.Duration { return &j.Timeout }
	choices := []choice{one(p.Text("cron.limit-agent-button"), at, 0)}
	for _, d := range []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour} {
		choices = append(choices, one(p.Span(d), at, d))
	}
	return choices
}

// longestLimit is the longest time limit that users can set for a job.
const longestLimit = 7 * 24 * time.Hour

func readLimit(p lang.Printer) func(orchestrator.Jobs, *orchestrator.Job, string) error {
	return func(_ orchestrator.Jobs, j *orchestrator.Job, text string) error {
		d, err := render.ReadSpan(text)
		if err != nil || d < time.Second || d > longestLimit {
			return &orchestrator.BadJob{Why: p.Text("cron.bad-limit")}
		}
		j.Timeout = d
		return nil
	}
}

func quietText(p lang.Printer, j orchestrator.Job) string {
	switch {
	case j.QuietFrom == "":
		return p.Text("cron.quiet-none")
	case j.QuietPolicy == "skip":
		return p.Text("cron.quiet-skip", j.QuietFrom, j.QuietTo)
	}
	return p.Text("cron.quiet-hold", j.QuietFrom, j.QuietTo)
}

func quietChoices(p lang.Printer) []choice {
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
		{label: p.Text("cron.quiet-none-button"), set: func(j *orchestrator.Job) {
			j.QuietFrom, j.QuietTo, j.QuietPolicy = "", "", ""
		},
			is: func(j orchestrator.Job) bool { return j.QuietFrom == "" }},
		{label: p.Text("cron.quiet-hold-button"), set: set("hold"), is: policy("hold")},
		{label: p.Text("cron.quiet-skip-button"), set: set("skip"), is: policy("skip")},
	}
}

func readQuiet(p lang.Printer) func(orchestrator.Jobs, *orchestrator.Job, string) error {
	return func(_ orchestrator.Jobs, j *orchestrator.Job, text string) error {
		words := strings.Fields(strings.NewReplacer("-", " ", "–", " ", " to ", " ", " until ", " ", "from ",
			"").Replace(strings.ToLower(text)))
		if len(words) == 2 {
			from, errFrom := time.Parse("15:04", words[0])
			to, errTo := time.Parse("15:04", words[1])
			if errFrom == nil && errTo == nil {
				j.QuietFrom, j.QuietTo = from.Format("15:04"), to.Format("15:04")
				return nil
			}
		}
		return &orchestrator.BadJob{Why: p.Text("cron.bad-quiet")}
	}
}

func retriesText(p lang.Printer, j orchestrator.Job) string {
	if j.Retries == 0 {
		return p.Text("cron.retries-none")
	}
	return p.Text("cron.retries-some", j.Retries, p.Span(j.Backoff))
}

func retryChoices(p lang.Printer) []choice {
	var choices []choice
	for _, n := range []int{0, 1, 2, 3, 5} {
		label := fmt.Sprint(n)
		if n == 0 {
			label = p.Text("cron.retries-none-button")
		}
		choices = append(choices, one(label, func(j *orchestrator.Job) *int { return &j.Retries }, n))
	}
	return choices
}
