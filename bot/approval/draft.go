package approval

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// draft is the users' progress with an open approval: the page that its message shows, the answers so far, and the
// user whose words it expects. The journal stores everything except secret words.
type draft struct {
	View     operation             `json:"view,omitempty"` // opShowSession, opShowPattern, opReason, opWords or empty
	Question int                   `json:"question,omitempty"`
	Picks    map[int][]int         `json:"picks,omitempty"`   // chosen options by question
	Words    map[int]string        `json:"words,omitempty"`   // answers in the user's words by question
	From     orchestrator.PersonID `json:"from,omitempty"`    // the user whose words the approval expects
	Until    time.Time             `json:"until,omitzero"`    // end of this wait
	Updates  []int64               `json:"updates,omitempty"` // newest updates that the draft has applied
	Opened   bool                  `json:"opened,omitempty"`  // a user opened the full text and may allow it
	Pinned   int                   `json:"pinned,omitempty"`  // the pinned message; 0 for none

	Files map[int][]orchestrator.Attachment `json:"files,omitempty"` // files named in Words, by question
}

// wordsPatience limits how long an approval waits for a user's words. Later messages are prompts.
const wordsPatience = 10 * time.Minute

// listen starts waiting for the words of a user.
func (d *draft) listen(view operation, p orchestrator.PersonID, now time.Time) {
	d.View, d.From, d.Until = view, p, now.Add(wordsPatience)
}

// waits reports whether the approval expects words from a user, in the next message or in a reply.
func (d draft) waits(p orchestrator.PersonID, now time.Time) bool {
	return (d.View == opReason || d.View == opWords) && d.From == p && now.Before(d.Until)
}

// applied reports whether an update was already applied. If not, it records the update as applied.
func (d *draft) applied(updates []int64) bool {
	if slices.ContainsFunc(updates, func(u int64) bool { return slices.Contains(d.Updates, u) }) {
		return true
	}
	d.Updates = append(slices.Clone(d.Updates), updates...)
	d.Updates = d.Updates[max(len(d.Updates)-updatesKept, 0):]
	return false
}

// updatesKept limits the recorded updates of a draft. The next process repeats fewer updates than that after a crash.
const updatesKept = 32

// toggle selects an option of the current question. If the question allows several, a second call deselects it.
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

// say answers the current question in the user's own words. files are the files that the words name.
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

// answer returns the current answer to a question.
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

// verdict returns the verdict that answers the questions.
func (d draft) verdict(questions []cli.Question) orchestrator.Verdict {
	v := orchestrator.Verdict{Choice: orchestrator.Answer, Answers: d.answers(questions)}
	for _, i := range slices.Sorted(maps.Keys(d.Files)) {
		v.Files = append(v.Files, d.Files[i]...)
	}
	return v
}

// complete reports whether every question has an answer.
func (d draft) complete(questions []cli.Question) bool {
	return !slices.ContainsFunc(d.answers(questions), func(given []string) bool { return len(given) == 0 })
}

// forward moves to the next question. It returns true if no question is left.
func (d *draft) forward(a orchestrator.Approval) bool {
	if d.Question+1 == len(a.Questions) {
		return true
	}
	d.Question++
	return false
}

// encode returns the draft without secret words.
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
	// After a restart the user must enter this secret again.
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
