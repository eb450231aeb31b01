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

// Options configures a Service.
type Options struct {
	Store  orchestrator.ApprovalStore
	Agents Agents
	// Snapshots contains the snapshots of turns' files. An agent that may write must wait for the snapshot of its turn.
	// If Snapshots is nil, no agent waits.
	Snapshots orchestrator.Snapshots
	Policy

	// Enter must be called before work in the background starts. If it returns false, ductor is ending and the work
	// must not start. Otherwise ductor does not end before the caller calls leave.
	Enter  func() (leave func(), ok bool)
	Now    func() time.Time
	After  func(d time.Duration, f func()) (stop func() bool)
	NewID  func() string
	Logger *slog.Logger
}

// Policy configures who decides requests, and how.
type Policy struct {
	Screen orchestrator.ApprovalScreen // shows approvals to users; if nil, every request is denied
	// Approvers returns the users who may decide the requests of a turn in a group. The sender is the user who started
	// the turn. If Approvers is nil, only the sender may decide. In a private chat, the user of the chat always
	// decides.
	Approvers func(in orchestrator.ConversationID, sender orchestrator.PersonID) []orchestrator.PersonID
	// ApprovalTimeout is how long users have for a decision before the request is denied. 0 means DefaultTimeout.
	ApprovalTimeout time.Duration
	// Protected lists ductor's own files and directories, as absolute paths without symbolic links. If a request
	// touches one of them, a user must decide it, and no rule applies.
	Protected []string
	// Files gives access to the files in a sandbox.
	Files func(in cli.Sandbox) (Files, error)
}

// DefaultTimeout limits how long users have for a decision, if the Policy has no ApprovalTimeout.
const DefaultTimeout = 30 * time.Minute

// Agents contains the methods of service.Service that a Service needs.
type Agents interface {
	Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error
	Bring(ctx context.Context, in cli.Sandbox, files []string) error
	ProjectFields(in cli.Sandbox, agent cli.Agent, dir string) (fields []cli.Field, missing string)
	ShowSkill(ctx context.Context, agent cli.Agent, req cli.Request, asked cli.ApprovalAsked) cli.ApprovalAsked
}

// Service decides the requests of agents: by rules, or by asking users. It is safe for concurrent use.
type Service struct {
	opts Options
	log  *slog.Logger

	mu    sync.Mutex
	turns map[cli.TurnID]*Requests
}

// New creates a Service.
func New(opts Options) *Service {
	if opts.ApprovalTimeout <= 0 {
		opts.ApprovalTimeout = DefaultTimeout
	}
	return &Service{opts: opts, log: opts.Logger, turns: map[cli.TurnID]*Requests{}}
}

func (s *Service) of(turn cli.TurnID) *Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns[turn]
}

// SetMode records that the permission mode of a running turn has changed.
func (s *Service) SetMode(turn cli.TurnID, mode cli.PermissionMode) {
	if r := s.of(turn); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.turn.Mode = mode
	}
}

// Approval implements orchestrator.Approvals.
func (s *Service) Approval(ctx context.Context, id orchestrator.ApprovalID,
	in orchestrator.ConversationID) (orchestrator.Approval, error) {
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

// Revoke implements orchestrator.Approvals.
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

// Audit implements orchestrator.Approvals.
func (s *Service) Audit(ctx context.Context, since time.Time, limit int) ([]orchestrator.AuditEntry, error) {
	return s.opts.Store.AuditSince(ctx, since, limit)
}

// retryOrLog calls retry after a pause if err is ErrDiskFull, unless ductor ends during the pause. It logs any other
// error. It does not log ErrDiskFull: the bot does so once, but many approvals may wait for the disk.
func (s *Service) retryOrLog(log *slog.Logger, step string, err error, retry func()) {
	const pause = 5 * time.Second
	if !errors.Is(err, orchestrator.ErrDiskFull) {
		log.Error(step, "err", err)
		return
	}
	s.opts.After(pause, func() {
		if leave, ok := s.opts.Enter(); ok {
			defer leave()
			retry()
		}
	})
}

// WithdrawTurn closes the approvals of a turn that has ended. If the disk is full, ductor calls it again later.
func (s *Service) WithdrawTurn(ctx context.Context, turn cli.TurnID) {
	approvals, err := s.opts.Store.WithdrawTurn(ctx, turn, s.opts.Now())
	if err != nil {
		s.retryOrLog(s.log.With("turn", turn), "withdraw the approvals of a turn", err, func() {
			s.WithdrawTurn(context.WithoutCancel(ctx), turn)
		})
	}
	for _, approval := range approvals {
		s.show(approval, false)
	}
}

// WithdrawEnded must be called when ductor starts. It closes the approvals of turns that have ended. It also updates
// chats that still show closed approvals as open.
//
// Approvals of running turns stay open, because the agents repeat their requests. An agent in a terminal must repeat
// its request within askAgainWait. WithdrawEnded shows these approvals at once, without waiting for the agents, because
// the user's first message may be the answer to one of them.
func (s *Service) WithdrawEnded(ctx context.Context, turns []orchestrator.Turn,
	remains map[cli.TurnID]cli.Remains) error {
	open, err := s.opts.Store.OpenApprovals(ctx)
	if err != nil {
		return fmt.Errorf("load open approvals: %w", err)
	}
	for _, approval := range open {
		if approval.OfTerminal() {
			s.show(approval, false)
			s.awaitTerminal(approval.Turn)
			continue
		}
		goesOn := slices.ContainsFunc(turns, func(t orchestrator.Turn) bool {
			return t.ID == approval.Turn && t.State == orchestrator.TurnRunning && remains[t.ID] == cli.RemainsRun
		})
		if goesOn {
			s.show(approval, false)
		} else {
			s.WithdrawTurn(ctx, approval.Turn)
		}
	}
	over, err := s.opts.Store.ApprovalsShownOpen(ctx)
	if err != nil {
		return fmt.Errorf("load approvals that are shown open: %w", err)
	}
	for _, approval := range over {
		s.show(approval, false)
	}
	return nil
}

func (s *Service) show(approval orchestrator.Approval, isNew bool) {
	if s.opts.Screen == nil {
		return
	}
	if isSecret(approval.ApprovalRequest) {
		approval.Answers = nil
	}
	s.opts.Screen.ShowApproval(approval, isNew)
}

// isSecret reports whether the answers to the questions of a request must not be stored.
func isSecret(a orchestrator.ApprovalRequest) bool {
	return slices.ContainsFunc(a.Questions, func(q cli.Question) bool { return q.Secret })
}

func mayDecide(a orchestrator.Approval, user orchestrator.PersonID) bool {
	return user != 0 && slices.Contains(a.Approvers, user)
}

// approvers returns the users who may decide. In a private chat, the ID of the chat is the ID of the user.
func (s *Service) approvers(p orchestrator.Prompt) []orchestrator.PersonID {
	switch {
	case p.Conversation.Chat > 0:
		return []orchestrator.PersonID{orchestrator.PersonID(p.Conversation.Chat)}
	case s.opts.Approvers != nil:
		return s.opts.Approvers(p.Conversation, p.Person)
	}
	return []orchestrator.PersonID{p.Person}
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)
}
