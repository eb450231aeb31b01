package card

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// snapshot is the state of a running card. The journal stores it for the next process.
type snapshot struct {
	part      int         // index of the newest message
	unchanged int         // number of messages whose content is stored, because it will not change
	text      render.Text // text of the newest message, without the live lines
	starts    []position  // where the messages start
	rich      richContent // rich content of the message, if any
}

// before returns a snapshot of the message before part.
func (s snapshot) before(texts []render.Text, part int) snapshot {
	return snapshot{part: part - 1, unchanged: part - 1, text: texts[part-1], starts: s.starts}
}

// record is the stored content of a card: a snapshot or the final content.
type record struct {
	journal orchestrator.CardStore
	turn    cli.TurnID

	mu       sync.Mutex // held during a write, so that older content never replaces newer content
	final    bool
	snapshot savedCard
}

// load reads the stored content. It returns false if the journal has none.
func (r *record) load(ctx context.Context) (saved savedCard, stored bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, err := r.journal.LoadCard(ctx, string(r.turn))
	if err != nil {
		return savedCard{}, false, fmt.Errorf("load a card: %w", err)
	}
	if len(data) > 0 {
		if saved, err = decodeCard(data); err != nil {
			return savedCard{}, false, err
		}
	}
	if !saved.Final {
		r.snapshot = saved
	}
	return saved, len(data) > 0, nil
}

// update changes the stored snapshot. It stores nothing if the journal has the final content or change returns false.
func (r *record) update(ctx context.Context, change func(snapshot *savedCard) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.snapshot
	if r.final || !change(&changed) {
		return nil
	}
	data, err := changed.encode()
	if err != nil {
		return err
	}
	if err := r.journal.SaveCard(context.WithoutCancel(ctx), string(r.turn), data); err != nil {
		return err
	}
	r.snapshot = changed
	return nil
}

// finish stores the final content.
func (r *record) finish(ctx context.Context, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.journal.SaveCard(ctx, string(r.turn), data); err != nil {
		return fmt.Errorf("store a card: %w", err)
	}
	r.final = true
	return nil
}

// saveSnapshot stores a snapshot. It only logs errors, because the card works without snapshots.
func (c *card) saveSnapshot(ctx context.Context, snap snapshot) {
	err := c.messages.record.update(ctx, func(saved *savedCard) bool {
		*saved = savedCard{
			First: snap.part, Texts: []render.Text{snap.text}, Prints: c.messages.fingerprints(snap.unchanged),
			Rich: snap.rich, Topic: c.messages.where().Topic,
		}
		for _, p := range snap.starts {
			saved.Starts = append(saved.Starts, [2]int{p.segment, p.offset})
		}
		return true
	})
	if err != nil {
		c.cards.opts.Log.Warn("store a running card", "turn", c.turn.ID, "err", err)
	}
}

// forgetFingerprint deletes the stored fingerprint of a message before the message changes.
func (s *messages) forgetFingerprint(ctx context.Context, part int) error {
	return s.record.update(ctx, func(saved *savedCard) bool {
		if part >= len(saved.Prints) || saved.Prints[part] == "" {
			return false
		}
		saved.Prints = slices.Clone(saved.Prints)
		saved.Prints[part], saved.Topic = "", s.where().Topic
		return true
	})
}

// fingerprints returns the fingerprints of the first n messages, or "" for messages with unknown content.
func (s *messages) fingerprints(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, min(n, len(s.parts)))
	for i := range out {
		if p := s.parts[i]; p.State() == orchestrator.Sent {
			out[i] = p.Shown()
		}
	}
	return out
}

// saveFinal stores the final content of the messages.
func (s *messages) saveFinal(ctx context.Context, content contents) error {
	data, err := content.encode(s.where().Topic)
	if err != nil {
		return err
	}
	return s.record.finish(ctx, data)
}

// savedCard is the content of a card in the journal's format.
type savedCard struct {
	Final         bool           `json:"final"` // final content; otherwise a snapshot of the running turn
	First         int            `json:"first"` // messages before this index stay unchanged
	Texts         []render.Text  `json:"texts"`
	Buttons       tgapi.Keyboard `json:"buttons,omitempty"` // below the last message
	Topic         int            `json:"topic"`
	Remark        string         `json:"remark,omitempty"` // line that was added below everything after the end
	File          bool           `json:"file,omitempty"`   // a file with the whole answer follows
	Rich          richContent    `json:"rich,omitzero"`    // shown instead of Texts, if Telegram accepts it
	End           *ending        `json:"end,omitempty"`    // announcement of the end; nil for none
	StripsButtons bool           `json:"strips,omitempty"` // the message before First loses its buttons

	// Starts and Prints are set only while the turn runs. Starts contains the start of each message in the document,
	// as segment and offset. Prints contains the fingerprints of messages that will not change; an unknown
	// fingerprint is empty.
	Starts [][2]int `json:"starts,omitempty"`
	Prints []string `json:"prints,omitempty"`
}

func (s contents) encode(topic int) ([]byte, error) {
	return savedCard{
		Final: true, First: s.first, StripsButtons: s.stripsButtons, Texts: s.texts, Buttons: s.buttons, Topic: topic,
		Remark: s.remark, File: s.file != "", End: s.end, Rich: s.rich,
	}.encode()
}

func (c savedCard) encode() ([]byte, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode a card: %w", err)
	}
	return data, nil
}

// contents returns the stored final content of a card.
func (c savedCard) contents(file string) contents {
	s := contents{
		first: c.First, stripsButtons: c.StripsButtons && c.First > 0, texts: c.Texts, buttons: c.Buttons,
		remark: c.Remark, end: c.End,
	}
	s.rich = c.Rich
	if c.File {
		s.file = file
	}
	if c.Rich.Cut {
		s.whole = file
	}
	return s
}

// maxParts is greater than the number of messages of any card.
const maxParts = 10_000

func decodeCard(data []byte) (savedCard, error) {
	var saved savedCard
	if err := json.Unmarshal(data, &saved); err != nil {
		return savedCard{}, fmt.Errorf("decode a card: %w", err)
	}
	if saved.First < 0 || saved.First > maxParts ||
		max(len(saved.Texts), len(saved.Starts), len(saved.Prints)) > maxParts {
		return savedCard{}, errors.New("decode a card: it has messages that cannot be")
	}
	return saved, nil
}
