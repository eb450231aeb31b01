package conversation

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// firstWords is how long an acceptance waits before it is stored: it comes with the first words, which are to be shown first. After a
// crash in between, the events of the turn are read again.
const firstWords = 50 * time.Millisecond

// knowledge follows what the agent of a turn knows of the session: its own id of it and, once it has accepted the prompt, all up to the
// turn. It stores that beside the stream, so that the first words do not wait for the disk. One goroutine calls learn. Use newKnowledge.
type knowledge struct {
	store  orchestrator.Store
	turn   orchestrator.Turn
	own    cli.AgentSessionID
	handed *cli.HandedOver // is shown once the agent works; of all attempts of the turn
	show   func(cli.Event)

	forgets  bool // see cli.SessionStarted
	accepted bool
	over     chan struct{} // closed by wait
	wg       sync.WaitGroup
	former   <-chan struct{} // closed when what is to be stored before is; nil for nothing
	mu       sync.Mutex
	err      error
}

func newKnowledge(
	store orchestrator.Store, turn orchestrator.Turn, own cli.AgentSessionID, handed *cli.HandedOver, show func(cli.Event),
) *knowledge {
	return &knowledge{store: store, turn: turn, own: own, handed: handed, show: show, over: make(chan struct{})}
}

// learn takes an event of the turn.
func (k *knowledge) learn(ctx context.Context, ev cli.Event) {
	started, begins := ev.(cli.SessionStarted)
	k.forgets = k.forgets || started.Forgets
	if begins && started.AgentSessionID != "" && started.AgentSessionID != k.own {
		k.own = started.AgentSessionID
		k.keep(func() error {
			return k.store.SetAgentSession(ctx, k.turn.Session, k.turn.AgentEnv(), started.AgentSessionID)
		})
	}
	if k.turn.Wants.Task != cli.TaskPrompt || !cli.ShowsAcceptance(ev) {
		return
	}
	_, all := ev.(cli.PromptAccepted)
	if !k.accepted && (all || !k.forgets) {
		k.accepted = true
		k.keep(func() error {
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

// hands takes what is handed over. An attempt to which nothing is handed over leaves it at what the one before was told.
func (k *knowledge) hands(over cli.HandedOver) {
	if over.Turns+over.LeftOut > 0 {
		*k.handed = over
	}
}

// ended says what was left out for an agent that accepted the prompt, also if it did nothing with it.
func (k *knowledge) ended() {
	if k.accepted && (k.handed.LeftOut > 0 || k.handed.Shortened) {
		k.showHanded()
	}
}

// showHanded shows once what was handed over.
func (k *knowledge) showHanded() {
	if k.handed.Turns+k.handed.LeftOut > 0 && k.handed.To == k.turn.Agent {
		k.show(*k.handed)
	}
	*k.handed = cli.HandedOver{}
}

// keep stores something after what it was called for before.
func (k *knowledge) keep(store func() error) {
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

// wait returns when all is stored. The caller calls it once, after the last learn.
func (k *knowledge) wait() error {
	close(k.over)
	k.wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
