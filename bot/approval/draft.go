package approval

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"ductor/bot/message"
	"ductor/cli"
	"ductor/orchestrator"
)

// draft contains what users have entered for an open approval, but not sent yet. The database stores the draft without
// secret answers.
type draft struct {
	View     operation      `json:"view,omitempty"` // shown page, such as opReason; "" for the usual page
	Question int            `json:"question,omitempty"`
	Picks    map[int][]int  `json:"picks,omitempty"`   // selected options of each question
	Words    map[int]string `json:"words,omitempty"`   // typed answer to each question
	Updates  []int64        `json:"updates,omitempty"` // IDs of the last updates that changed the draft
	Opened   bool           `json:"opened,omitempty"`  // true if a user has read the full text
	Pinned   int            `json:"pinned,omitempty"`  // ID of the pinned message; 0 if none is pinned

	// Expectation is used if View asks for a text (opReason or opWords). It contains the user who pressed the button,
	// and the time until which this user's next message is the text.
	message.Expectation

	Files map[int][]orchestrator.Attachment `json:"files,omitempty"` // files attached to the typed answers, by question
}

// accepts reports whether the draft waits for a message of this user: a reason for a denial, or an answer to a
// question.
func (d draft) accepts(m orchestrator.Press) bool { return d.View.asksForText() && d.Accepts(m) }

// acceptsReply reports whether a message replies to a card that asks for a text. Any user who may decide the approval
// may send it, at any time after the button was pressed.
func (d draft) acceptsReply(m Message) bool {
	return m.ReplyTo != 0 && d.View.asksForText() && m.Arrived.After(d.Pressed)
}

// applied reports whether one of the updates has already changed the draft. If none has, applied adds all of them to
// d.Updates.
func (d *draft) applied(updates []int64) bool {
	if d.changedBy(updates) {
		return true
	}
	d.Updates = append(slices.Clone(d.Updates), updates...)
	d.Updates = d.Updates[max(len(d.Updates)-updatesKept, 0):]
	return false
}

// changedBy reports whether one of the updates has already changed the draft.
func (d draft) changedBy(updates []int64) bool {
	return slices.ContainsFunc(updates, func(u int64) bool { return slices.Contains(d.Updates, u) })
}

// updatesKept is the maximum length of draft.Updates. After a crash, the next process handles only a few updates again,
// so draft.Updates need not contain older ones.
const updatesKept = 32

// toggle selects an option of the current question. If several options are allowed and the option is already selected,
// toggle deselects it.
func (d *draft) toggle(q cli.Question, option int) {
	if d.Picks == nil {
		d.Picks = make(map[int][]int)
	}
	picks := d.Picks[d.Question]
	if !q.Multi {
		d.Picks[d.Question] = []int{option}
		delete(d.Words, d.Question)
		delete(d.Files, d.Question)
		return
	}
	if i := slices.Index(picks, option); i >= 0 {
		d.Picks[d.Question] = slices.Delete(slices.Clone(picks), i, i+1)
		return
	}
	d.Picks[d.Question] = append(slices.Clone(picks), option)
}

// say sets a typed answer to the current question, with the files that the user attached.
func (d *draft) say(q cli.Question, words string, files []orchestrator.Attachment) {
	if d.Words == nil {
		d.Words = make(map[int]string)
	}
	if d.Files == nil {
		d.Files = make(map[int][]orchestrator.Attachment)
	}
	d.Words[d.Question], d.Files[d.Question] = words, files
	if !q.Multi {
		delete(d.Picks, d.Question)
	}
}

// answer returns the answer to question i so far: selected options, and the typed answer.
func (d draft) answer(i int, q cli.Question) []string {
	var out []string
	for _, p := range slices.Sorted(slices.Values(d.Picks[i])) {
		if p < len(q.Options) {
			out = append(out, q.Options[p].Label)
		}
	}
	if words := d.Words[i]; words != "" {
		out = append(out, words)
	}
	return out
}

func (d draft) answers(questions []cli.Question) [][]string {
	out := make([][]string, len(questions))
	for i, q := range questions {
		out[i] = d.answer(i, q)
	}
	return out
}

// verdict returns a decision with the answers to all questions.
func (d draft) verdict(questions []cli.Question) orchestrator.Verdict {
	v := orchestrator.Verdict{Choice: orchestrator.Answer, Answers: d.answers(questions)}
	for _, i := range slices.Sorted(maps.Keys(d.Files)) {
		v.Files = append(v.Files, d.Files[i]...)
	}
	return v
}

func (d draft) complete(questions []cli.Question) bool {
	return !slices.ContainsFunc(d.answers(questions), func(given []string) bool { return len(given) == 0 })
}

// forward moves to the next question. It returns true if the current question is the last one.
func (d *draft) forward(a orchestrator.Approval) bool {
	if d.Question+1 == len(a.Questions) {
		return true
	}
	d.Question++
	return false
}

// encode returns the draft as JSON, without secret answers.
func (d draft) encode(questions []cli.Question) ([]byte, error) {
	d.Words = maps.Clone(d.Words)
	maps.DeleteFunc(d.Words, func(i int, _ string) bool { return i >= len(questions) || questions[i].Secret })
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode a draft: %w", err)
	}
	return data, nil
}

func decodeDraft(data []byte, questions []cli.Question) (draft, error) {
	var d draft
	if len(data) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return draft{}, fmt.Errorf("decode a draft: %w", err)
	}
	d.Question = max(min(d.Question, len(questions)-1), 0)
	// Secrets are not stored, so users must enter them again after a restart.
	for i, q := range questions {
		if q.Secret && d.Question > i && len(d.answer(i, q)) == 0 {
			d.Question = i
		}
	}
	return d, nil
}

func (d draft) clone() draft {
	d.Picks, d.Words, d.Files = maps.Clone(d.Picks), maps.Clone(d.Words), maps.Clone(d.Files)
	return d
}
