package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// askDraft is how far people are with an ask that is not decided: what its message shows, what was chosen of
// its questions so far, and whose words are waited for. It is kept in the journal, but for secret words.
type askDraft struct {
	View     askOp                 `json:"view,omitempty"` // askShowSession, askShowPattern, askReason, askWords, or empty
	Question int                   `json:"question,omitempty"`
	Picks    map[int][]int         `json:"picks,omitempty"`   // by question, the options chosen
	Words    map[int]string        `json:"words,omitempty"`   // by question, the answer in own words
	From     orchestrator.PersonID `json:"from,omitempty"`    // whose words are waited for
	Until    time.Time             `json:"until,omitzero"`    // and how long
	Updates  []int64               `json:"updates,omitempty"` // that took effect, the last few
	Opened   bool                  `json:"opened,omitempty"`  // the full text was asked for, so the ask can be allowed
}

// wordsPatience is how long a reason may take: what is said later is a prompt.
const wordsPatience = 10 * time.Minute

// listen has the next words of a person be meant for the ask.
func (d *askDraft) listen(view askOp, p orchestrator.PersonID, now time.Time) {
	d.View, d.From, d.Until = view, p, now.Add(wordsPatience)
}

// waits says whether a person's next message, or reply to this one, is meant for the ask.
func (d askDraft) waits(p orchestrator.PersonID, now time.Time) bool {
	return (d.View == askReason || d.View == askWords) && d.From == p && now.Before(d.Until)
}

// applied says whether an update took effect before, and notes that it does now.
func (d *askDraft) applied(updates []int64) bool {
	for _, u := range updates {
		if slices.Contains(d.Updates, u) {
			return true
		}
	}
	d.Updates = append(slices.Clone(d.Updates), updates...)
	d.Updates = d.Updates[max(len(d.Updates)-updatesKept, 0):]
	return false
}

// updatesKept is how many updates a draft remembers: more than can be taken up again after a crash.
const updatesKept = 32

// toggle chooses an option of the present question, or takes that back where several may be chosen.
func (d *askDraft) toggle(q cli.Question, option int) {
	if d.Picks == nil {
		d.Picks = make(map[int][]int)
	}
	picks := d.Picks[d.Question]
	if !q.Multi {
		d.Picks[d.Question] = []int{option}
		delete(d.Words, d.Question)
		return
	}
	if i := slices.Index(picks, option); i >= 0 {
		d.Picks[d.Question] = slices.Delete(slices.Clone(picks), i, i+1)
		return
	}
	d.Picks[d.Question] = append(slices.Clone(picks), option)
}

// say is an answer in own words to the present question.
func (d *askDraft) say(q cli.Question, words string) {
	if d.Words == nil {
		d.Words = make(map[int]string)
	}
	d.Words[d.Question] = words
	if !q.Multi {
		delete(d.Picks, d.Question)
	}
}

// answer is what was chosen of a question.
func (d askDraft) answer(i int, q cli.Question) []string {
	var out []string
	picks := slices.Clone(d.Picks[i])
	slices.Sort(picks)
	for _, p := range picks {
		if p < len(q.Options) {
			out = append(out, q.Options[p].Label)
		}
	}
	if words := d.Words[i]; words != "" {
		out = append(out, words)
	}
	return out
}

func (d askDraft) answers(questions []cli.Question) [][]string {
	out := make([][]string, len(questions))
	for i, q := range questions {
		out[i] = d.answer(i, q)
	}
	return out
}

// encode leaves out what is not to be kept.
func (d askDraft) encode(questions []cli.Question) ([]byte, error) {
	kept := make(map[int]string)
	for i, words := range d.Words {
		if i < len(questions) && !questions[i].Secret {
			kept[i] = words
		}
	}
	d.Words = kept
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode a draft: %w", err)
	}
	return data, nil
}

func decodeAskDraft(data []byte, questions []cli.Question) (askDraft, error) {
	var d askDraft
	if len(data) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return askDraft{}, fmt.Errorf("decode a draft: %w", err)
	}
	d.Question = max(min(d.Question, len(questions)-1), 0)
	// A secret that was given before a restart has to be given again.
	for i, q := range questions {
		if q.Secret && d.Question > i && len(d.answer(i, q)) == 0 {
			d.Question = i
		}
	}
	return d, nil
}

// askKey is what the journal knows a draft by.
func askKey(id orchestrator.AskID) string { return "ask:" + string(id) }

// load reads the draft of a card of before a restart, once.
func (b *askBoard) load(ctx context.Context, c *askCard) error {
	b.mu.Lock()
	known := c.known
	b.mu.Unlock()
	if known {
		return nil
	}
	data, _, err := b.journal.LoadCard(ctx, askKey(c.id))
	if err != nil {
		return fmt.Errorf("load a draft: %w", err)
	}
	d, err := decodeAskDraft(data, c.questions)
	if err != nil {
		c.log.Warn("a draft is passed over", "err", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !c.known {
		c.draft, c.known = d, true
	}
	return nil
}

// enter is the card of an ask, with its draft.
func (b *askBoard) enter(ctx context.Context, a orchestrator.Ask) (*askCard, error) {
	b.mu.Lock()
	c := b.cards[a.ID]
	if c == nil {
		c = b.newCard(a)
		b.cards[a.ID] = c
	}
	b.mu.Unlock()
	return c, b.load(ctx, c)
}

// change changes the draft of a card by f, keeps it, and shows it. False if f did not want to.
func (b *askBoard) change(ctx context.Context, c *askCard, f func(d *askDraft) bool) (askDraft, bool, error) {
	b.mu.Lock()
	d := c.draft.clone()
	if !f(&d) {
		b.mu.Unlock()
		return d, false, nil
	}
	c.draft, c.known = d, true
	b.mu.Unlock()
	data, err := d.encode(c.questions)
	if err == nil {
		err = b.journal.SaveCard(ctx, askKey(c.id), data)
	}
	if err != nil {
		return d, false, fmt.Errorf("keep a draft: %w", err)
	}
	b.push(c)
	return d, true, nil
}

func (d askDraft) clone() askDraft {
	picks, words := make(map[int][]int, len(d.Picks)), make(map[int]string, len(d.Words))
	for i, p := range d.Picks {
		picks[i] = p
	}
	for i, w := range d.Words {
		words[i] = w
	}
	d.Picks, d.Words = picks, words
	return d
}
