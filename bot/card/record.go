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

// snapshot is the state of a running card. The database stores it, so that the next process can continue after a crash.
type snapshot struct {
	part      int
	unchanged int         // number of earlier messages, which will not change any more
	text      render.Text // text of the last message, without the lines of liveLines
	starts    []position  // positions in the document at which the messages start
	rich      richContent // content of the last message if it is a rich message
	lead      []leadNote  // notes of ductor at the start of the document
}

// leadNote is a note of ductor at the start of a document.
type leadNote struct {
	Note     render.Text `json:"note"`
	IfFailed render.Text `json:"if_failed,omitzero"`
}

// snapshotLocked returns a snapshot of the card. part is the index of the last message, and text is the content of this
// message.
func (c *card) snapshotLocked(part int, text render.Text, rich richContent) snapshot {
	return snapshot{
		part: part, unchanged: part, text: text, starts: slices.Clone(c.starts), rich: rich, lead: c.doc.leadNotes(),
	}
}

// before returns a copy of the snapshot without the given part and the parts after it.
func (s snapshot) before(texts []render.Text, part int) snapshot {
	if part == 0 {
		return snapshot{lead: s.lead}
	}
	return snapshot{part: part - 1, unchanged: part - 1, text: texts[part-1], starts: s.starts, lead: s.lead}
}

// record stores the content of a card in the database: snapshots while the turn runs, and the final content when the
// turn has ended.
type record struct {
	journal orchestrator.CardStore
	turn    cli.TurnID

	mu       sync.Mutex // held while writing, so that old content never replaces newer content
	final    bool
	snapshot savedCard
}

// load reads the stored content. It returns stored = false if the database contains no content.
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

// update changes the stored snapshot with the function change. It stores nothing if change returns false, or if the
// final content is already stored.
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

func (r *record) finish(ctx context.Context, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.journal.SaveCard(ctx, string(r.turn), data); err != nil {
		return fmt.Errorf("store a card: %w", err)
	}
	r.final = true
	return nil
}

// saveSnapshot stores a snapshot. It only logs errors, because a running card works without snapshots.
func (c *card) saveSnapshot(ctx context.Context, snap snapshot) {
	err := c.messages.record.update(ctx, func(saved *savedCard) bool {
		*saved = savedCard{
			First: snap.part, Rich: snap.rich, Topic: c.messages.where().Topic,
			Layout: savedLayout{Lead: snap.lead, Prints: c.messages.fingerprints(snap.unchanged)},
		}
		if len(snap.starts) > 0 {
			saved.Texts = []render.Text{snap.text}
		}
		for _, p := range snap.starts {
			saved.Layout.Starts = append(saved.Layout.Starts, [2]int{p.segment, p.offset})
		}
		return true
	})
	if err != nil {
		c.cards.opts.Log.Warn("store a running card", "turn", c.turn.ID, "err", err)
	}
}

// forgetFingerprint deletes the stored fingerprint of a message that the caller is about to edit. A fingerprint is a
// hash of a message's content.
func (s *messages) forgetFingerprint(ctx context.Context, part int) error {
	return s.record.update(ctx, func(saved *savedCard) bool {
		if part >= len(saved.Layout.Prints) || saved.Layout.Prints[part] == "" {
			return false
		}
		saved.Layout.Prints = slices.Clone(saved.Layout.Prints)
		saved.Layout.Prints[part], saved.Topic = "", s.where().Topic
		return true
	})
}

// fingerprints returns a hash of the content of each of the first n messages, or "" if the content is unknown.
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

func (s *messages) saveFinal(ctx context.Context, content contents) error {
	data, err := content.encode(s.where().Topic)
	if err != nil {
		return err
	}
	return s.record.finish(ctx, data)
}

// savedCard is the JSON format in which the database stores the content of a card.
type savedCard struct {
	Final   bool           `json:"final"` // true: final content; false: snapshot of a running turn
	First   int            `json:"first"` // index of the first message in Texts; earlier messages do not change
	Texts   []render.Text  `json:"texts"`
	Buttons tgapi.Keyboard `json:"buttons,omitempty"` // buttons below the last message
	Topic   int            `json:"topic"`
	Remark  string         `json:"remark,omitempty"` // line that Cards.Remark added below the last message
	File    bool           `json:"file,omitempty"`   // whether a file with the whole answer follows
	Rich    richContent    `json:"rich,omitzero"`    // shown instead of Texts, if Telegram accepts rich messages
	End     *ending        `json:"end,omitempty"`    // message that announces the end of the turn; nil for none
	// Strips is the number of messages before index First from which ductor removes the buttons. Older versions of
	// ductor stored StripsButtons = true instead of Strips = 1.
	Strips        int  `json:"stripped,omitempty"`
	StripsButtons bool `json:"strips,omitempty"`

	Layout savedLayout `json:"layout,omitzero"` // only set while the turn runs
}

// savedLayout is the JSON format of how a running card is divided into messages.
type savedLayout struct {
	Lead   []leadNote `json:"lead,omitempty"`   // notes of ductor at the start of the document
	Starts [][2]int   `json:"starts,omitempty"` // segment and offset in the document at which each message starts
	Prints []string   `json:"prints,omitempty"` // hash of the content of each complete message; "" if it is unknown
}

func (s contents) encode(topic int) ([]byte, error) {
	return savedCard{
		Final: true, First: s.first, Strips: s.strips, Texts: s.texts, Buttons: s.buttons, Topic: topic,
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

// contents returns the stored final content. If the card needs a file with the whole answer, the content includes
// wholeAnswer.
func (c savedCard) contents(wholeAnswer string) contents {
	s := contents{
		first: c.First, strips: c.Strips, texts: c.Texts, buttons: c.Buttons, remark: c.Remark, end: c.End,
	}
	if c.StripsButtons {
		s.strips = max(c.Strips, 1)
	}
	s.strips = min(s.strips, c.First)
	s.rich = c.Rich
	if c.File {
		s.file = wholeAnswer
	}
	if c.Rich.Cut {
		s.richFile = wholeAnswer
	}
	return s
}

// maxParts is the maximum number of messages in a stored card. A card with more messages is invalid.
const maxParts = 10_000

func decodeCard(data []byte) (savedCard, error) {
	var saved savedCard
	if err := json.Unmarshal(data, &saved); err != nil {
		return savedCard{}, fmt.Errorf("decode a card: %w", err)
	}
	if saved.Layout.Starts == nil { // older versions of ductor stored the fields of Layout directly in savedCard
		if err := json.Unmarshal(data, &saved.Layout); err != nil {
			return savedCard{}, fmt.Errorf("decode the layout of a card: %w", err)
		}
	}
	if saved.First < 0 || saved.First > maxParts || saved.Strips < 0 ||
		max(len(saved.Texts), len(saved.Layout.Starts), len(saved.Layout.Prints), len(saved.Layout.Lead)) > maxParts {
		return savedCard{}, errors.New("decode a card: it has messages that cannot be")
	}
	return saved, nil
}
