package conversation

import (
	"context"
	"errors"
	"sync"

	"ductor/cli"
	"ductor/orchestrator"
)

// knowledge follows what the agent of a turn knows of the session: its own id of it and, once it has accepted the prompt, all up to the
// turn. It stores that beside the stream, so that the first words do not wait for the disk. One goroutine calls learn.
type knowledge struct {
	store  orchestrator.Store
	turn   orchestrator.Turn
	own    cli.AgentSessionID
	handed *cli.HandedOver // is shown once the agent works; of all attempts of the turn
	show   func(cli.Event)

	accepted bool
	wg       sync.WaitGroup
	former   <-chan struct{} // closed when what is to be stored before is; nil for nothing
	mu       sync.Mutex
	err      error
}

// learn takes an event of the turn.
func (k *knowledge) learn(ctx context.Context, ev cli.Event) {
	if started, ok := ev.(cli.SessionStarted); ok && started.AgentSessionID != "" && started.AgentSessionID != k.own {
		k.own = started.AgentSessionID
		k.keep(func() error {
			return k.store.SetAgentSession(ctx, k.turn.Session, k.turn.AgentEnv(), started.AgentSessionID)
		})
	}
	if k.turn.Wants.Task != cli.TaskPrompt || !cli.ShowsAcceptance(ev) {
		return
	}
	if !k.accepted {
		k.accepted = true
		k.keep(func() error { return k.store.SetTold(ctx, k.turn.Session, k.turn.AgentEnv(), k.turn.ID) })
	}
	if _, all := ev.(cli.PromptAccepted); !all {
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

// wait returns when all is stored.
func (k *knowledge) wait() error {
	k.wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
