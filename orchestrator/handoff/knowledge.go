package handoff

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// saveDelay is a pause between the moment when the agent accepts the prompt and the write that stores this fact. During
// the pause, the chat can show the first words of the answer, which are more urgent. If ductor crashes before the
// write, the next process reads the events of the turn again and repeats the write.
const saveDelay = 50 * time.Millisecond

// MostMissed limits how many entries ductor reads for an agent that is new in a session. The limit of tokens rarely
// allows more entries in a prompt.
const MostMissed = 1000

// AgentSessions stores the records of the agent sessions that belong to a session of ductor.
type AgentSessions interface {
	SetAgentSession(ctx context.Context, id orchestrator.SessionID, of orchestrator.AgentEnv,
		own orchestrator.AgentSession) error
}

// Knowledge selects the entries of a session that a prompt must contain as history. It also stores which entries the
// agent has seen: once the agent accepts the prompt, it has seen all entries in the prompt. Knowledge stores this in
// the background, so that the answer need not wait for the disk.
//
// Sending, Learn and UpTo may run concurrently with each other. All other methods may run only before or after them, in
// one goroutine.
type Knowledge struct {
	store AgentSessions
	entry orchestrator.Turn
	own   orchestrator.AgentSession
	upTo  int64 // number of the newest entry that the prompt contains, or that the agent has seen before

	forgets  bool // the agent does not remember the prompts of failed turns; see cli.SessionStarted
	accepted bool
	over     chan struct{} // closed by Wait
	wg       sync.WaitGroup
	former   <-chan struct{} // closed when the previous write to the store has ended; nil before the first write
	mu       sync.Mutex      // guards err and, while the agent runs, own and accepted
	err      error
}

// NewKnowledge creates a Knowledge for the prompt of entry. own is the stored record of the agent session in which the
// prompt will run. If store is nil, Knowledge stores nothing.
func NewKnowledge(store AgentSessions, entry orchestrator.Turn, own orchestrator.AgentSession) *Knowledge {
	return &Knowledge{store: store, entry: entry, own: own, upTo: max(entry.Entry.UpTo, own.UpTo),
		over: make(chan struct{})}
}

// Own returns the record of the agent's own session and of the entries that it has seen.
func (k *Knowledge) Own() orchestrator.AgentSession { return k.own }

// UpTo returns the number of the newest entry that the agent will have seen when it accepts the prompt.
func (k *Knowledge) UpTo() int64 { return k.upTo }

// Accepted reports whether the agent accepted the prompt.
func (k *Knowledge) Accepted() bool { return k.accepted }

// KnowsAll records that the agent has seen all entries up to a number.
func (k *Knowledge) KnowsAll(upTo int64) { k.upTo = upTo }

// Missed returns the entries that the prompt must contain as history. The caller passes, in order, all entries of the
// session with numbers greater than k.Own().UpTo. Missed leaves out entries that the agent has seen in another way:
//   - the agent's own last turn
//   - the entry that the prompt quotes
//   - answers of other models, if the agent asked for them in its own last turn and got them as results of tools
//
// If an entry was part of an earlier prompt, but it is unknown whether the agent accepted that prompt, Missed sets Seen
// on the entry.
func (k *Knowledge) Missed(entries []orchestrator.Turn) (missed []orchestrator.Turn) {
	own, who := k.own, k.entry.AgentEnv()
	gotResults := slices.ContainsFunc(entries, func(e orchestrator.Turn) bool {
		return e.ID == own.Told && e.State == orchestrator.TurnDone
	})
	for _, e := range entries {
		k.upTo = max(k.upTo, e.Entry.Number)
		mine, asked := e.AgentEnv() == who, own.Told != "" && e.Entry.Asks == own.Told
		switch {
		case IsCompaction(e), e.ID == k.entry.Prompt.Quotes:
		case e.Entry.Number <= own.UpTo, own.Told != "" && e.ID == own.Told, asked && gotResults:
		case own.Told != "" && mine && knownWithoutPrompt(e):
		default:
			e.Entry.Seen = own.ID != "" && (e.Entry.Number <= own.Offered || mine || asked)
			missed = append(missed, e)
		}
	}
	if len(missed) > 0 {
		k.own.Offered = k.upTo
	}
	return missed
}

// IsCompaction reports whether a turn only compacts an agent's context. Such a turn is of no interest to other agents.
func IsCompaction(t orchestrator.Turn) bool { return t.Wants.Task == cli.TaskCompact }

// knownWithoutPrompt reports whether the agent's own history contains the turn, although ductor never records such a
// turn as accepted. Such turns are the agent's own commands, and messages that were added to another turn.
func knownWithoutPrompt(t orchestrator.Turn) bool {
	return t.Wants.Task != cli.TaskPrompt || t.State == orchestrator.TurnSteered
}

// Sending must be called before the prompt is sent. It stores the number of the newest entry in the prompt as
// AgentSession.Offered. After a crash, this number shows which entries the agent may have seen, although it has not
// accepted the prompt.
func (k *Knowledge) Sending(ctx context.Context) error {
	k.mu.Lock()
	own, offers := k.own, k.own.Offered >= k.upTo
	k.mu.Unlock()
	if k.store == nil || own.ID == "" || !offers {
		return nil
	}
	return k.store.SetAgentSession(ctx, k.entry.Session, k.entry.AgentEnv(), own)
}

// Forget resets the record of the agent session, because the agent starts a new one. The new agent session may have the
// same ID.
func (k *Knowledge) Forget() { k.own, k.upTo = orchestrator.AgentSession{}, 0 }

// Learn updates the record of the agent session when the agent has sent an event.
func (k *Knowledge) Learn(ctx context.Context, ev cli.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	started, begins := ev.(cli.SessionStarted)
	k.forgets = k.forgets || started.Forgets
	if begins && started.AgentSessionID != "" && started.AgentSessionID != k.own.ID {
		k.own.ID = started.AgentSessionID
		k.save(ctx, 0)
	}
	if k.entry.Wants.Task != cli.TaskPrompt || !cli.ShowsAcceptance(ev) {
		return
	}
	_, all := ev.(cli.PromptAccepted)
	if !k.accepted && (all || !k.forgets) {
		k.accepted = true
		k.own.Told, k.own.UpTo, k.own.Offered = k.entry.ID, k.upTo, 0
		k.save(ctx, saveDelay)
	}
}

// save stores the record in the background, after a delay and after all earlier saves.
func (k *Knowledge) save(ctx context.Context, delay time.Duration) {
	if k.store == nil || k.own.ID == "" {
		return
	}
	own, former, done := k.own, k.former, make(chan struct{})
	k.former = done
	k.wg.Go(func() {
		defer close(done)
		if former != nil {
			<-former
		}
		if delay > 0 {
			select {
			case <-time.After(delay):
			case <-k.over:
			}
		}
		err := k.store.SetAgentSession(ctx, k.entry.Session, k.entry.AgentEnv(), own)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.err = errors.Join(k.err, err)
	})
}

// Wait waits until everything is stored. Call it once, after the last call of Learn.
func (k *Knowledge) Wait() error {
	close(k.over)
	k.wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
