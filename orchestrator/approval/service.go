package approval

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// ApprovalOptions configure a Service.
type Options struct {
	Store  orchestrator.AskStore
	Agents Agents
	Asks   orchestrator.Asks // shows what agents ask; nil: no user is asked, and what they would ask for is denied
	// Approvers says who decides what the turn of a user asks for in a group. Nil: that user. In a private chat it is
	// always the one user there.
	Approvers func(in orchestrator.ConversationID, approvals orchestrator.PersonID) []orchestrator.PersonID
	Timeout   time.Duration // what is not decided in time is denied
	// Protected are ductor's own files and directories, absolute and with links resolved. No rule allows a request that
	// touches one of them: a user decides.
	Protected []string

	// Enter reports whether ductor still runs; then the caller calls leave when it is done, and ductor ends after that.
	Enter  func() (leave func(), ok bool)
	Now    func() time.Time
	After  func(d time.Duration, f func()) (stop func() bool)
	Random io.Reader
	NewID  func() string
	Logger *slog.Logger
}

// Agents is what a Service needs of the agents. *service.Service implements it.
type Agents interface {
	// Decide hands a decision to the agent of a turn that runs; cli.ErrNotAsked if nothing of this id waits.
	Decide(ctx context.Context, turn cli.TurnID, ask cli.AskID, d cli.Decision) error
	// ProjectFields says what the project in a directory sets for an agent; see service.Service.
	ProjectFields(in cli.Sandbox, agent cli.Agent, dir string) (fields []cli.Field, missing string)
}

// Service has users and rules decide what agents ask. Safe for concurrent use.
type Service struct {
	opts Options
	log  *slog.Logger

	mu    sync.Mutex
	turns map[cli.TurnID]*Requests // of the turns that run
}

// NewService makes a Service.
func New(opts Options) *Service {
	return &Service{opts: opts, log: opts.Logger, turns: map[cli.TurnID]*Requests{}}
}

func (s *Service) of(turn cli.TurnID) *Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns[turn]
}

// SetMode says in which mode the agent of a running turn works from now on.
func (s *Service) SetMode(turn cli.TurnID, mode cli.PermissionMode) {
	if r := s.of(turn); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.turn.Mode = mode
	}
}

// Ask loads an ask for who may see it; see AskDesk.
func (s *Service) Ask(ctx context.Context, id orchestrator.AskID, in orchestrator.ConversationID) (orchestrator.Ask, error) {
	ask, err := s.opts.Store.FindAsk(ctx, id)
	if err != nil {
		return orchestrator.Ask{}, notFound(err)
	}
	if ask.Conversation != in {
		return orchestrator.Ask{}, orchestrator.ErrElsewhere
	}
	return ask, nil
}

// AskAt finds the ask that a message shows; see AskDesk.
func (s *Service) AskAt(ctx context.Context, in orchestrator.ConversationID, message int) (orchestrator.Ask, error) {
	ask, err := s.opts.Store.FindAskAt(ctx, in, message)
	if err != nil {
		return orchestrator.Ask{}, notFound(err)
	}
	return ask, nil
}

func notFound(err error) error {
	if errors.Is(err, orchestrator.ErrNoAsk) {
		return orchestrator.ErrNoAsk
	}
	return fmt.Errorf("load ask: %w", err)
}

// AskShown records which message shows an ask; see AskDesk.
func (s *Service) AskShown(ctx context.Context, id orchestrator.AskID, state orchestrator.SendState, message int) error {
	return s.opts.Store.SetAskShown(ctx, id, state, message)
}

// Revoke takes a rule back; see AskDesk.
func (s *Service) Revoke(ctx context.Context, id orchestrator.RuleID, by orchestrator.Press) error {
	ok, err := s.opts.Store.RevokeRule(ctx, id, by.Conversation, by.Person, s.opts.Now())
	if err != nil {
		return fmt.Errorf("revoke rule: %w", err)
	}
	if !ok {
		return orchestrator.ErrNoRule
	}
	return nil
}

// Audit lists what happened since a moment, newest first.
func (s *Service) Audit(ctx context.Context, since time.Time, limit int) ([]orchestrator.AuditEntry, error) {
	return s.opts.Store.AuditSince(ctx, since, limit)
}

// WithdrawTurn closes the asks of a turn that has ended.
func (s *Service) WithdrawTurn(ctx context.Context, turn cli.TurnID) {
	asks, err := s.opts.Store.WithdrawTurn(ctx, turn, s.opts.Now())
	if err != nil {
		s.log.Error("withdraw the asks of a turn", "turn", turn, "err", err)
	}
	for _, ask := range asks {
		s.show(ask)
	}
}

// WithdrawEnded closes, after a restart, the asks of turns that do not go on. Those of the others stay open: their agents
// ask again.
func (s *Service) WithdrawEnded(ctx context.Context, turns []orchestrator.Turn, remains map[cli.TurnID]cli.Remains) error {
	open, err := s.opts.Store.OpenAsks(ctx)
	if err != nil {
		return fmt.Errorf("load open asks: %w", err)
	}
	for _, ask := range open {
		goesOn := slices.ContainsFunc(turns, func(t orchestrator.Turn) bool {
			return t.ID == ask.Turn && t.State == orchestrator.TurnRunning && remains[t.ID] == cli.RemainsRun
		})
		if !goesOn {
			s.WithdrawTurn(ctx, ask.Turn)
		}
	}
	return nil
}

func (s *Service) show(ask orchestrator.Ask) {
	if s.opts.Asks == nil {
		return
	}
	if isSecret(ask) {
		ask.Answers = nil
	}
	s.opts.Asks.ShowAsk(ask)
}

// isSecret says whether an answer to an ask is not to be kept.
func isSecret(a orchestrator.Ask) bool {
	return slices.ContainsFunc(a.Questions, func(q cli.Question) bool { return q.Secret })
}

// mayDecide says whether a user is among the approvers.
func mayDecide(a orchestrator.Ask, user orchestrator.PersonID) bool {
	return user != 0 && slices.Contains(a.Approvers, user)
}

// approvers says who decides. The id of a private chat is that of the user in it.
func (s *Service) approvers(p orchestrator.Prompt) []orchestrator.PersonID {
	switch {
	case p.Conversation.Chat > 0:
		return []orchestrator.PersonID{orchestrator.PersonID(p.Conversation.Chat)}
	case s.opts.Approvers != nil:
		return s.opts.Approvers(p.Conversation, p.Person)
	}
	return []orchestrator.PersonID{p.Person}
}

// random is a word that cannot be guessed, of n random bytes.
func (s *Service) random(n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.opts.Random, b); err != nil {
		return "", fmt.Errorf("draw a random word: %w", err)
	}
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b), nil
}
