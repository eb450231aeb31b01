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

// firstWords is how long Knowledge waits before it stores that the agent accepted the prompt. The first words of the
// answer arrive at the same time and have priority. If ductor crashes during the wait, the next process reads the
// events of the turn again.
const firstWords = 50 * time.Millisecond

// MostMissed limits the entries that ductor reads for an agent that joins a session. A token budget rarely has room for
// more.
const MostMissed = 1000

// AgentSessions stores the agents' own sessions that belong to a session; see orchestrator.Store.
type AgentSessions interface {
	SetAgentSession(ctx context.Context, id orchestrator.SessionID, of orchestrator.AgentEnv,
		own orchestrator.AgentSession) error
}

// Knowledge selects the entries of a session that a prompt must contain for its agent. It also records the knowledge of
// the agent: the agent's own session ID and, after the agent accepted the prompt, the entries in it. Knowledge stores
// these in the background, so that the first words do not wait for the disk.
//
// Sending and Learn may run at the same time. One goroutine must call all other methods, before and after them.
type Knowledge struct {
	store AgentSessions // nil: Knowledge stores nothing
	entry orchestrator.Turn
	own   orchestrator.AgentSession
	upTo  int64 // number of the last entry that the agent knows if it accepts the prompt

	forgets  bool // see cli.SessionStarted
	accepted bool
	over     chan struct{} // closed by Wait
	wg       sync.WaitGroup
	former   <-chan struct{} // closed when the previous save has finished; nil for none
	mu       sync.Mutex      // guards err, and guards own and accepted while the agent runs
	err      error
}

// NewKnowledge creates the Knowledge for the prompt of an entry. own is the agent's part of the session. If store is
// nil, Knowledge stores nothing.
func NewKnowledge(store AgentSessions, entry orchestrator.Turn, own orchestrator.AgentSession) *Knowledge {
	return &Knowledge{store: store, entry: entry, own: own, upTo: max(entry.Entry.UpTo, own.UpTo),
		over: make(chan struct{})}
}

// Own returns the agent's own part of the session.
func (k *Knowledge) Own() orchestrator.AgentSession { return k.own }

// UpTo returns the number of the last entry that the agent will know if it accepts the prompt.
func (k *Knowledge) UpTo() int64 { return k.upTo }

// Accepted reports whether the agent accepted the prompt.
func (k *Knowledge) Accepted() bool { return k.accepted }

// KnowsAll records that the agent knows all entries up to this one.
func (k *Knowledge) KnowsAll(upTo int64) { k.upTo = upTo }

// Missed returns the entries that the prompt must contain. entries must be all entries of the session after Own().UpTo,
// in order. Missed omits entries that the agent knows:
//   - the entry of the prompt that it accepted last
//   - the entry that the prompt quotes
//   - entries that the agent's own entry asked for: the agent got them as results of tools
//
// Missed sets Seen on an entry that the agent may have read: the entry is a prompt of unknown outcome, or was part of
// such a prompt.
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

// IsCompaction reports whether a turn only shortened the agent's context and contains no dialog.
func IsCompaction(t orchestrator.Turn) bool { return t.Wants.Task == cli.TaskCompact }

// knownWithoutPrompt reports whether the agent of an ended turn knows the turn without having accepted its prompt. This
// is true for commands of the agent, and for messages that were steered into another turn.
func knownWithoutPrompt(t orchestrator.Turn) bool {
	return t.Wants.Task != cli.TaskPrompt || t.State == orchestrator.TurnSteered
}

// Sending stores the number of the last entry in the prompt, before the prompt is sent. If the agent then does not
// confirm the prompt, it is unknown whether the agent read the entries.
func (k *Knowledge) Sending(ctx context.Context) error {
	k.mu.Lock()
	own, offers := k.own, k.own.Offered >= k.upTo
	k.mu.Unlock()
	if k.store == nil || own.ID == "" || !offers {
		return nil
	}
	return k.store.SetAgentSession(ctx, k.entry.Session, k.entry.AgentEnv(), own)
}

// Forget forgets the agent's part of the session. The agent's next session may have the same ID.
func (k *Knowledge) Forget() { k.own, k.upTo = orchestrator.AgentSession{}, 0 }

// Learn handles an event of the agent.
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
		k.save(ctx, firstWords)
	}
}

// save stores the agent's part of the session in the background, after a delay and after earlier saves.
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

// Wait returns once everything is stored. Call it once, after the last call of Learn.
func (k *Knowledge) Wait() error {
	close(k.over)
	k.wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
