package turn

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// firstWords delays storing that the agent accepted the prompt, because the first words come at the same time and have
// priority. After a crash in between, the next process reads the events of the turn again.
const firstWords = 50 * time.Millisecond

// Knowledge records an agent's knowledge about the session: its own ID of the session and, after it accepted the
// prompt, all turns up to this one. It stores that in the background, so that the first words do not wait for the disk.
// One goroutine calls Learn.
type Knowledge struct {
	store  orchestrator.Store
	turn   orchestrator.Turn
	own    cli.AgentSessionID
	handed *cli.HandedOver // the card shows it once the agent works; all attempts of the turn share it
	show   func(cli.Event)

	forgets  bool // see cli.SessionStarted
	accepted bool
	over     chan struct{} // closed by Wait
	wg       sync.WaitGroup
	former   <-chan struct{} // closed when the call before has stored; nil for none
	mu       sync.Mutex
	err      error
}

// NewKnowledge creates the Knowledge of an attempt. own is the agent's id of the session that it resumes.
func NewKnowledge(
	store orchestrator.Store, turn orchestrator.Turn, own cli.AgentSessionID, handed *cli.HandedOver,
	show func(cli.Event),
) *Knowledge {
	return &Knowledge{store: store, turn: turn, own: own, handed: handed, show: show, over: make(chan struct{})}
}

// Forget forgets the agent's id of the session: a new session may have the same one.
func (k *Knowledge) Forget() { k.own = "" }

// Learn takes an event of the turn.
func (k *Knowledge) Learn(ctx context.Context, ev cli.Event) {
	started, begins := ev.(cli.SessionStarted)
	k.forgets = k.forgets || started.Forgets
	if begins && started.AgentSessionID != "" && started.AgentSessionID != k.own {
		k.own = started.AgentSessionID
		k.save(func() error {
			return k.store.SetAgentSession(ctx, k.turn.Session, k.turn.AgentEnv(), started.AgentSessionID)
		})
	}
	if k.turn.Wants.Task != cli.TaskPrompt || !cli.ShowsAcceptance(ev) {
		return
	}
	_, all := ev.(cli.PromptAccepted)
	if !k.accepted && (all || !k.forgets) {
		k.accepted = true
		k.save(func() error {
			select {
			case <-time.After(firstWords):
			case <-k.over:
			}
			return k.store.SetTold(ctx, k.turn.Session, k.turn.AgentEnv(), k.turn.ID)
		})
	}
	if !all {
		k.showHanded()
	}
}

// Hand records the history for the agent. An attempt without history does not change the record of an earlier attempt.
func (k *Knowledge) Hand(over cli.HandedOver) {
	if over.Turns+over.LeftOut > 0 {
		*k.handed = over
	}
}

// Ended shows the omitted history for an agent that accepted the prompt, even if it did nothing with it.
func (k *Knowledge) Ended() {
	if k.accepted && (k.handed.LeftOut > 0 || k.handed.Shortened) {
		k.showHanded()
	}
}

// showHanded shows once which history the agent got.
func (k *Knowledge) showHanded() {
	if k.handed.Turns+k.handed.LeftOut > 0 && k.handed.To == k.turn.Agent {
		k.show(*k.handed)
	}
	*k.handed = cli.HandedOver{}
}

// save calls store in a goroutine, after the calls before it.
func (k *Knowledge) save(store func() error) {
	former, done := k.former, make(chan struct{})
	k.former = done
	k.wg.Go(func() {
		defer close(done)
		if former != nil {
			<-former
		}
		err := store()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.err = errors.Join(k.err, err)
	})
}

// Wait returns once all is stored. Call it once, after the last Learn.
func (k *Knowledge) Wait() error {
	close(k.over)
	k.wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
