package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ductor/internal/attach/wire"
)

// mostAsked is the maximum size of a request that a user can allow in a terminal, in bytes.
const mostAsked = 128 << 10

// ask is an open approval on the screen. It records which rows the user has read, and which choices the user has made.
type ask struct {
	wire.Approval
	text []row // the complete request

	rows    []row      // the lines of text, broken to fit the screen
	look    Look       // size and style of the screen for which the field rows was computed
	top     int        // index of the first row on the screen
	read    int        // the user has seen the first `read` rows
	shown   int        // number of rows on the screen
	choice  int        // index of the option under the cursor
	marked  []string   // labels chosen so far, if the current question allows several
	answers [][]string // answers to the earlier questions
}

func newAsk(a wire.Approval) *ask {
	k := &ask{}
	k.replace(a)
	return k
}

// replace updates the approval. If the request has changed, the user must read it and make all choices again.
func (k *ask) replace(a wire.Approval) {
	k.Approval = a
	if text := k.describe(); !slices.Equal(text, k.text) {
		*k = ask{Approval: a, text: text}
	}
}

// question returns the question that the user must answer next. It returns nil if the agent requests permission.
func (k *ask) question() *wire.Question {
	if k.Asks != nil || len(k.answers) >= len(k.Questions) {
		return nil
	}
	return &k.Questions[len(k.answers)]
}

// describe returns the complete text of the request. All values are indented, so that a line of a value cannot look
// like the name of another field.
func (k *ask) describe() []row {
	var rows []row
	part := func(s style, name, value string, of func(line string) style) {
		if value == "" {
			return
		}
		if name != "" {
			rows = append(rows, row{cmp.Or(s, bold), name})
		}
		for line := range strings.Lines(value) {
			line = strings.TrimSuffix(line, "\n")
			rows = append(rows, row{of(line), "  " + line})
		}
	}
	without := func(string) style { return normal }
	if q := k.question(); q != nil {
		part(bold, cmp.Or(q.Header, "Question"), q.Text, without)
		return rows
	}
	a := cmp.Or(k.Asks, &wire.Asks{})
	fields := func(wider, label bool) {
		for _, f := range a.Fields {
			if f.Wider == wider && (f.Label && !f.Wider) == label {
				part(map[bool]style{true: red}[wider], f.Name, cmp.Or(f.Value, `""`), without)
			}
		}
	}
	fields(true, false)
	part(bold, a.Tool, cmp.Or(a.Title, a.Detail, "?"), without)
	if a.Title != "" {
		part(bold, "all of it", a.Detail, without)
	}
	for _, c := range a.Changes {
		part(bold, c.Kind, c.Path, without)
		part(normal, "", c.Diff, diffStyle)
	}
	fields(false, false)
	for _, l := range a.Links {
		if l.Outside {
			part(red, l.Path+" leads out of the folder, to", l.Real, without)
		} else {
			part(bold, l.Path+" leads to", l.Real, without)
		}
	}
	part(bold, "folder", k.Dir, without)
	part(bold, "sandbox", k.Sandbox, without)
	part(bold, "why", a.Reason, without)
	fields(false, true)
	for _, o := range k.Choices {
		part(bold, labelOf(o), o.Rule, without)
	}
	if k.Same > 1 {
		rows = append(rows, row{bold, fmt.Sprintf("%d identical requests", k.Same)})
	}
	return rows
}

// lines returns the rows of the request. If the width has changed, lines breaks the text into new rows, and the user
// must read all rows again.
func (k *ask) lines(look Look) []row {
	if look.Height = 0; k.rows != nil && look == k.look {
		return k.rows
	}
	k.look, k.rows, k.top, k.read = look, []row{}, 0, 0
	size := 0
	for _, line := range k.text {
		if size += len(line.text); size > mostAsked {
			break
		}
		for _, text := range wrap(look.reveal(line.text), look.Width, anywhere) {
			k.rows = append(k.rows, row{line.style, text})
		}
	}
	return k.rows
}

// page returns the rows that fit into the given height, and records that the user has read them.
func (k *ask) page(look Look, height int) []row {
	rows := k.lines(look)
	k.top = max(min(k.top, len(rows)-height), 0)
	end := min(k.top+height, len(rows))
	if k.top <= k.read {
		k.read = max(k.read, end)
	}
	return rows[k.top:end]
}

// whyShut returns the reason why the user can only deny the request, or "" if the user can allow it.
func (k *ask) whyShut() string {
	size := 0
	for _, line := range k.text {
		size += len(line.text)
	}
	switch {
	case k.Asks == nil:
		return ""
	case k.Asks.Missing != "":
		return "The agent left out " + k.Asks.Missing + ", so you can only deny this."
	case size > mostAsked:
		return "This is too long to show, so you can only deny it."
	}
	return ""
}

// unread reports whether a part of the request has not been on the screen yet.
func (k *ask) unread() bool { return k.rows == nil || k.read < len(k.rows) }

// option is a line that the user can choose.
type option struct {
	label  string
	choice wire.Choice
	needs  focus // input field for the text that this option requires; onPrompt if it requires no text
	done   bool  // this is the option "done" below a question that allows several answers
}

func (k *ask) options() []option {
	var all []option
	for _, o := range k.Choices {
		switch {
		case o.Choice == wire.Deny && k.Asks == nil:
			all = append(all, option{label: "Don't answer", choice: wire.Deny})
		case o.Choice == wire.Deny:
			all = append(all, option{label: "Deny", choice: wire.Deny},
				option{label: "Deny with a reason", choice: wire.Deny, needs: onReason})
		case o.Choice == wire.Answer:
			all = append(all, k.answerOptions()...)
		case k.whyShut() == "":
			all = append(all, option{label: labelOf(o), choice: o.Choice})
		}
	}
	return all
}

func labelOf(o wire.Offer) string {
	switch o.Choice {
	case wire.AllowSession:
		return "Allow what the rule allows in this session"
	case wire.AllowPattern:
		return "Always allow what the rule allows"
	case wire.AllowEdits:
		return "Allow all edits in this folder from now on"
	}
	return "Allow"
}

func (k *ask) answerOptions() []option {
	q := k.question()
	if q == nil {
		return nil
	}
	var all []option
	for _, o := range q.Options {
		label := o.Label
		if o.Description != "" {
			label += " - " + o.Description
		}
		if q.Multi {
			label = map[bool]string{true: "[x] ", false: "[ ] "}[slices.Contains(k.marked, o.Label)] + label
		}
		all = append(all, option{label: label, choice: wire.Answer})
	}
	if q.Free || len(q.Options) == 0 {
		where := onAnswer
		if q.Secret {
			where = onSecret
		}
		all = append(all, option{label: "Type an answer", choice: wire.Answer, needs: where})
	}
	if q.Multi {
		all = append(all, option{label: "Done", choice: wire.Answer, done: true})
	}
	return all
}

// choose applies the option under the cursor. The parameter text is the user's input for this option. choose returns
// the decision, or nil if the user must still make other choices.
func (k *ask) choose(text string) *wire.Decide {
	all := k.options()
	if k.choice >= len(all) {
		return nil
	}
	o := all[k.choice]
	switch {
	case o.choice == wire.Deny:
		return &wire.Decide{Approval: k.ID, Choice: wire.Deny, Reason: text}
	case o.choice != wire.Answer:
		if k.unread() {
			return nil
		}
		return &wire.Decide{Approval: k.ID, Choice: o.choice}
	}
	q := k.question()
	switch {
	case o.done && len(k.marked) == 0:
		return nil
	case o.done:
		return k.answer(k.marked)
	case o.needs != onPrompt && q.Multi:
		return k.answer(append(k.marked, text))
	case o.needs != onPrompt:
		return k.answer([]string{text})
	case q.Multi:
		k.toggle(q.Options[k.choice-k.firstAnswer()].Label)
		return nil
	}
	return k.answer([]string{q.Options[k.choice-k.firstAnswer()].Label})
}

// firstAnswer returns the index of the first option that is an answer.
func (k *ask) firstAnswer() int {
	return slices.IndexFunc(k.options(), func(o option) bool { return o.choice == wire.Answer })
}

func (k *ask) toggle(label string) {
	if i := slices.Index(k.marked, label); i >= 0 {
		k.marked = slices.Delete(k.marked, i, i+1)
		return
	}
	k.marked = append(k.marked, label)
}

// answer records the answer to the current question. After the last question it returns the decision.
func (k *ask) answer(with []string) *wire.Decide {
	answers := append(k.answers, with)
	if len(answers) == len(k.Questions) {
		return &wire.Decide{Approval: k.ID, Choice: wire.Answer, Answers: answers}
	}
	*k = ask{Approval: k.Approval, answers: answers}
	k.text = k.describe()
	return nil
}
