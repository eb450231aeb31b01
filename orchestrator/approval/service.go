package approval

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Options configure a Service.
type Options struct {
	Store  orchestrator.ApprovalStore
	Agents Agents
	Screen orchestrator.ApprovalScreen // shows what agents ask; nil: no user is asked, and what they would ask for is denied
	// Approvers says who decides what the turn of a user asks for in a group. Nil: that user. In a private chat it is
	// always the one user there.
	Approvers func(in orchestrator.ConversationID, approvals orchestrator.PersonID) []orchestrator.PersonID
	Timeout   time.Duration // what is not decided in time is denied
	// Protected are ductor's own files and directories, absolute and with links resolved. No rule allows a request that
	// touches one of them: a user decides.
	Protected []string
	// Files looks at the files of a sandbox.
	Files func(in cli.Sandbox) (Files, error)

	// Enter reports whether ductor still runs; then the caller calls leave when it is done, and ductor ends after that.
	Enter  func() (leave func(), ok bool)
	Now    func() time.Time
	After  func(d time.Duration, f func()) (stop func() bool)
	NewID  func() string
	Logger *slog.Logger
}

// Agents is what a Service needs of the agents. *service.Service implements it.
type Agents interface {
	// Decide hands a decision to the agent of a turn that runs; cli.ErrNotAsked if nothing of this id waits.
	Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error
	// Bring copies files of this host into a sandbox; see service.Service.
	Bring(ctx context.Context, in cli.Sandbox, files []string) error
	// ProjectFields says what the project in a directory sets for an agent; see service.Service.
	ProjectFields(in cli.Sandbox, agent cli.Agent, dir string) (fields []cli.Field, missing string)
	// ShowSkill adds to a request for a skill what that does; see service.Service.
	ShowSkill(ctx context.Context, agent cli.Agent, req cli.Request, asked cli.ApprovalAsked) cli.ApprovalAsked
}

// Service has users and rules decide what agents ask. Safe for concurrent use.
type Service struct {
	opts Options
	log  *slog.Logger

	mu    sync.Mutex
	turns map[cli.TurnID]*Requests // of the turns that run
}

// New makes a Service.
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

// Approval loads an approval of the conversation; see orchestrator.Approvals.
func (s *Service) Approval(ctx context.Context, id orchestrator.ApprovalID, in orchestrator.ConversationID) (orchestrator.Approval, error) {
	approval, err := s.opts.Store.FindApproval(ctx, id)
	if err != nil {
		return orchestrator.Approval{}, notFound(err)
	}
	if approval.Conversation != in {
		return approval, orchestrator.ErrElsewhere
	}
	return approval, nil
}

func notFound(err error) error {
	if errors.Is(err, orchestrator.ErrNoApproval) {
		return orchestrator.ErrNoApproval
	}
	return fmt.Errorf("load approval: %w", err)
}

// Revoke takes a rule back; see orchestrator.Approvals.
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

// WithdrawTurn closes the approvals of a turn that has ended.
func (s *Service) WithdrawTurn(ctx context.Context, turn cli.TurnID) {
	approvals, err := s.opts.Store.WithdrawTurn(ctx, turn, s.opts.Now())
	if err != nil {
		s.log.Error("withdraw the approvals of a turn", "turn", turn, "err", err)
	}
	for _, approval := range approvals {
		s.show(approval)
	}
}

// WithdrawEnded closes, after a restart, the approvals of turns that do not go on. Those of the others stay open: their agents
// ask again, and so do terminals, which may need a moment for it. It shows the end of those that a chat shows open.
func (s *Service) WithdrawEnded(ctx context.Context, turns []orchestrator.Turn, remains map[cli.TurnID]cli.Remains) error {
	open, err := s.opts.Store.OpenApprovals(ctx)
	if err != nil {
		return fmt.Errorf("load open approvals: %w", err)
	}
	for _, approval := range open {
		if approval.OfTerminal() {
			s.awaitOutside(approval.Turn)
			continue
		}
		goesOn := slices.ContainsFunc(turns, func(t orchestrator.Turn) bool {
			return t.ID == approval.Turn && t.State == orchestrator.TurnRunning && remains[t.ID] == cli.RemainsRun
		})
		if !goesOn {
			s.WithdrawTurn(ctx, approval.Turn)
		}
	}
	over, err := s.opts.Store.ApprovalsShownOpen(ctx)
	if err != nil {
		return fmt.Errorf("load approvals that are shown open: %w", err)
	}
	for _, approval := range over {
		s.show(approval)
	}
	return nil
}

func (s *Service) show(approval orchestrator.Approval) {
	if s.opts.Screen == nil {
		return
	}
	if isSecret(approval.ApprovalRequest) {
		approval.Answers = nil
	}
	s.opts.Screen.ShowApproval(approval)
}

// isSecret says whether an answer to an approval is not to be kept.
func isSecret(a orchestrator.ApprovalRequest) bool {
	return slices.ContainsFunc(a.Questions, func(q cli.Question) bool { return q.Secret })
}

// mayDecide says whether a user is among the approvers.
func mayDecide(a orchestrator.Approval, user orchestrator.PersonID) bool {
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
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)
}
