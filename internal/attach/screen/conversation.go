package screen

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ductor/internal/attach/wire"
)

// mostBlocks limits the turns and notices of a conversation that the screen can show. The chat and /sessions show all
// turns and notices.
const mostBlocks = 300

// block is a part of the conversation: a turn, or a note (a notice or a decision) between two turns.
type block struct {
	at   time.Time
	turn *turn
	note *item
}

func (b block) all() []*item {
	if b.turn != nil {
		return b.turn.all()
	}
	return []*item{b.note}
}

// conversation is the state of a conversation, as received from ductor, and the user's scroll position in it.
type conversation struct {
	about      wire.Snapshot // the newest Snapshot, without Entries, Approvals and Notices
	blocks     []block
	queue      []wire.Entry // waiting turns
	asks       []*ask       // open approvals
	lowest     *item        // the item at the lower edge of the screen; nil if the end of the conversation is visible
	lowestRows int          // number of rows of the item lowest above the lower edge of the screen
	page       int          // number of rows of the conversation on the screen
	// number of rows by which to scroll up the next time that the screen is computed; negative to scroll down
	scrolled int
}

// snapshot merges a Snapshot into the current state. The comment of package wire contains the rules.
func (c *conversation) snapshot(s wire.Snapshot) {
	old := c.asks
	c.queue, c.asks = nil, nil
	listed := map[string]bool{}
	for _, e := range s.Entries {
		listed[e.Turn] = true
		c.entry(e)
	}
	// Remove unfinished turns that ductor no longer lists. ductor may have lost such a turn in a crash. Telegram then
	// sends the prompt to ductor again, as a new turn.
	c.blocks = slices.DeleteFunc(c.blocks, func(b block) bool {
		return b.turn != nil && !b.turn.State.Over() && !listed[b.turn.Turn]
	})
	for _, n := range s.Notices {
		c.notice(n)
	}
	for _, a := range s.Approvals {
		if i := slices.IndexFunc(old, func(o *ask) bool { return o.ID == a.ID }); i >= 0 {
			c.asks = append(c.asks, old[i])
		}
		c.approval(a)
	}
	slices.SortStableFunc(c.blocks, func(a, b block) int { return a.at.Compare(b.at) })
	s.Entries, s.Approvals, s.Notices = nil, nil, nil
	c.about = s
}

// entry applies a new state of a turn. A waiting turn goes into the queue, any other turn into the blocks.
func (c *conversation) entry(e wire.Entry) {
	c.queue = slices.DeleteFunc(c.queue, func(q wire.Entry) bool { return q.Turn == e.Turn })
	t := c.turn(e.Turn)
	if e.State == wire.StateRunning && e.Agent != "" {
		c.about.Agent, c.about.Model = e.Agent, e.Model
	}
	switch {
	case e.State == wire.StateQueued:
		c.queue = append(c.queue, e)
	case t != nil:
		t.replace(e)
	case e.State == wire.StateCancelled:
	default:
		c.add(block{at: e.Queued, turn: newTurn(e)})
	}
}

func (c *conversation) add(b block) {
	c.blocks = append(c.blocks, b)
	c.blocks = slices.Delete(c.blocks, 0, max(len(c.blocks)-mostBlocks, 0))
}

// turn returns the turn with this ID. It returns nil if the turn is unknown or waits in the queue.
func (c *conversation) turn(id string) *turn {
	for _, b := range slices.Backward(c.blocks) {
		if b.turn != nil && b.turn.Turn == id {
			return b.turn
		}
	}
	return nil
}

func (c *conversation) running() *turn {
	for _, b := range slices.Backward(c.blocks) {
		if b.turn != nil && b.turn.State == wire.StateRunning {
			return b.turn
		}
	}
	return nil
}

// note shows a message between turns. If a message with this id is visible, note replaces it.
func (c *conversation) note(id, text string, at time.Time) {
	it := newItem(ofNote)
	it.id = id
	it.body.set(text)
	same := func(b block) bool { return b.note != nil && id != "" && b.note.id == id }
	if i := slices.IndexFunc(c.blocks, same); i >= 0 {
		c.blocks[i].note.body.set(text)
		return
	}
	c.add(block{at: at, note: it})
}

func (c *conversation) notice(n wire.Notice) { c.note("notice "+n.ID, n.Text, n.At) }

// approval shows an open approval, or the decision of a closed one.
func (c *conversation) approval(a wire.Approval) {
	i := slices.IndexFunc(c.asks, func(o *ask) bool { return o.ID == a.ID })
	switch {
	case a.State != wire.ApprovalOpen:
		if i >= 0 {
			c.asks = slices.Delete(c.asks, i, i+1)
		}
		c.note("approval "+a.ID, decisionOf(a), a.Decided)
	case i >= 0:
		c.asks[i].replace(a)
	default:
		c.asks = append(c.asks, newAsk(a))
	}
}

func decisionOf(a wire.Approval) string {
	what := "Question of " + a.Agent
	if a.Asks != nil {
		what = a.Agent + ": " + a.Asks.Tool + " " + cmp.Or(a.Asks.Title, a.Asks.Detail)
		what, _, _ = strings.Cut(what, "\n")
	}
	where := ""
	switch {
	case a.Terminal:
		where = " in a terminal"
	case a.Chat:
		where = " in the chat"
	}
	text := map[wire.ApprovalState]string{
		wire.ApprovalAllowed: "Allowed" + where, wire.ApprovalDenied: "Denied" + where,
		wire.ApprovalAnswered: "Answered" + where, wire.ApprovalExpired: "Nobody decided in time, so it's denied",
		wire.ApprovalWithdrawn: "No longer asked",
	}[a.State] + ": " + what
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	for _, answer := range a.Answers {
		text += "\n  " + strings.Join(answer, ", ")
	}
	return text
}

func (c *conversation) apply(m wire.Message) {
	with := func(id string, f func(t *turn)) {
		if t := c.turn(id); t != nil {
			f(t)
		}
	}
	switch {
	case m.Entry != nil:
		c.entry(*m.Entry)
	case m.Text != nil:
		with(m.Text.Turn, func(t *turn) { t.text(*m.Text) })
	case m.Thought != nil:
		with(m.Thought.Turn, func(t *turn) { t.thought(m.Thought.Text) })
	case m.Tool != nil:
		with(m.Tool.Turn, func(t *turn) { t.tool(*m.Tool) })
	case m.Change != nil:
		with(m.Change.Turn, func(t *turn) { t.change(*m.Change) })
	case m.Plan != nil:
		with(m.Plan.Turn, func(t *turn) { t.showPlan(m.Plan.Steps) })
	case m.Status != nil && m.Status.Warning:
		with(m.Status.Turn, func(t *turn) { t.note(m.Status.Sentence) })
	case m.Status != nil:
		with(m.Status.Turn, func(t *turn) { t.status = m.Status.Sentence })
	case m.Approval != nil:
		c.approval(*m.Approval)
	case m.Notice != nil:
		c.notice(*m.Notice)
	}
}
