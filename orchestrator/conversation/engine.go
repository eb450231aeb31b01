package conversation

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/circuit"
	"ductor/orchestrator/handoff"
	"ductor/orchestrator/side"
	"ductor/orchestrator/spending"
	"ductor/orchestrator/turn"
)

// Options configure an Engine. Store, Gateway and Chat are required.
type Options struct {
	Store     orchestrator.Store
	Gateway   orchestrator.Gateway
	Tracer    orchestrator.Tracer // nil: nothing traces turns
	Chat      orchestrator.Chat
	Orders    orchestrator.OrderStore // nil: SubmitOrder takes none
	Snapshots orchestrator.Snapshots  // nil: files are not looked at
	Disk      orchestrator.Disk       // under Store; nil: unknown, and what it does not take is tried again after a while
	// Sandboxes says where agents run; nil: on this host, and an order that asks for a sandbox is refused.
	Sandboxes orchestrator.Sandboxes

	TurnOptions                    // count unless Live says what does
	Live        func() TurnOptions // asked each time

	Dir         string   // for conversations that chose none; absolute
	Roots       []string // directories /cwd may enter, with all below them; absolute
	AddDirs     []string // further directories that agents may use; absolute
	Roles       Roles    // nil: there are none
	Instruction string   // is added to the system prompt of every turn; empty for nothing
	UploadsDir  string   // has a folder for each conversation, which its agent may read; empty for none
	// Protected are ductor's own files and directories, absolute and with links resolved. No rule allows a request that
	// touches one of them: a user decides.
	Protected []string
	// Files looks at the files of a sandbox, for what approvals show.
	Files func(in cli.Sandbox) (approval.Files, error)
	// Servers are what an agent of a conversation gets tools from, in an environment; nil for none.
	Servers func(in orchestrator.ConversationID, agent orchestrator.AgentEnv) []cli.ToolServer
	// Secrets are what agents that work in a directory must not have shown or stored; nil for nothing.
	Secrets func(dir string) *secrets.Set

	QuietHour func(at time.Time) bool // then the message that a turn ends with makes no sound; nil: there are none

	Budgets *spending.Budgets // nil: there are none

	Summarizer *handoff.Summarizer // of history that does not fit; nil: it is shortened. Without a Model only where a user wants a summary
	Shorten    side.Shortener      // of long results of jobs
	// DeliveryWait is how long the next turn waits for the chat to show the one before, and the first pause before
	// an outcome that could not be shown or stored is tried again.
	DeliveryWait time.Duration
	OnFailure

	// Screen shows what agents ask. Nil: no user is asked, and what they would ask for is denied.
	Screen orchestrator.ApprovalScreen
	// Approvers says who decides what the turn of a person asks for in a group. Nil: that person. In a private
	// chat it is always the one person there.
	Approvers       func(in orchestrator.ConversationID, approvals orchestrator.PersonID) []orchestrator.PersonID
	ApprovalTimeout time.Duration // what is not decided in time is denied; DefaultApprovalTimeout when 0

	Lang *lang.Choices // of failures and notices

	Now func() time.Time
	// After calls f once, after d; the function it returns stops that. time.AfterFunc when nil.
	After  func(d time.Duration, f func()) (stop func() bool)
	NewID  func() string
	Logger *slog.Logger
}

// TurnOptions say how turns run. They may change between two turns.
type TurnOptions struct {
	Permission   cli.PermissionMode // for conversations that chose none
	AllowedTools []string
	DeniedTools  []string
	Agents       map[cli.Agent]orchestrator.AgentDefaults
	Projects     []orchestrator.ProjectPolicy
	DefaultRole  string
	Settings     orchestrator.Settings // for conversations that chose none
	LongTurn     time.Duration         // a turn that takes longer ends with a message that notifies; a minute when 0

	QueueMax      int           // turns waiting per conversation
	HandoffTokens int           // of history for an agent that joins a session, at most; 0 is none
	IdleReset     time.Duration // a session unused for so long is not resumed; 0 is never
	DailyReset    string        // "04:00": a session used before that time today is not resumed; "" is never

	Limits     orchestrator.LimitPolicy
	Retries    int           // of a turn whose model is overloaded
	RetryAfter time.Duration // the pause before the first; it doubles
}

// turns says how turns run now.
func (e *Engine) turns() TurnOptions {
	p := e.opts.TurnOptions
	if e.opts.Live != nil {
		p = e.opts.Live()
	}
	if p.LongTurn <= 0 {
		p.LongTurn = time.Minute
	}
	p.Settings.Notify, p.Settings.Think = cmp.Or(p.Settings.Notify, orchestrator.NotifyLong), cmp.Or(p.Settings.Think, orchestrator.ThinkOff)
	p.Settings.Display = cmp.Or(p.Settings.Display, orchestrator.DisplayPlain)
	return p
}

// turnSettings returns the settings of turns that run now.
func (e *Engine) turnSettings() turn.Settings {
	now := e.turns()
	return turn.Settings{
		Agents: now.Agents, HandoffTokens: now.HandoffTokens, Limits: now.Limits, Retries: now.Retries, RetryAfter: now.RetryAfter,
	}
}

// OnFailure serves what follows failures of which nothing ran.
type OnFailure struct {
	Owner    orchestrator.PersonID // gets the codes that log agents in, in the private chat; 0: no agent is logged in from the chat
	Jobs     orchestrator.Jobs     // of LimitWait and ActionLater; nil: neither
	Breakers *circuit.Breakers     // of agents that fail often; nil: none is left alone
}

// Roles are the roles that conversations can play. They may change at any time. internal/roles implements it.
type Roles interface {
	// Role finds a role by its name; false if there is none.
	Role(name string) (orchestrator.Role, bool)
	// Names lists the names of all roles, sorted.
	Names() []string
}

// DefaultApprovalTimeout is how long users have to decide.
const DefaultApprovalTimeout = 30 * time.Minute

// Engine runs conversations. Safe for concurrent use; different conversations never wait for each other.
type Engine struct {
	orchestrator.Approvals // approvals, for users
	approvals              *approval.Service
	runner                 *turn.Runner
	opts                   Options
	log                    *slog.Logger

	life context.Context // of every turn; cancelled with ErrShutdown
	end  context.CancelCauseFunc
	wg   sync.WaitGroup

	logins sync.Map // has an orchestrator.AgentEnv for each agent that is being logged in

	mu            sync.Mutex
	conversations map[orchestrator.ConversationID]*conversation
	closed        bool
}

// New makes an Engine. Recover starts what was left over from before; Close ends it.
func New(opts Options) *Engine {
	if opts.ApprovalTimeout <= 0 {
		opts.ApprovalTimeout = DefaultApprovalTimeout
	}
	if opts.After == nil {
		opts.After = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	opts.Chat = quietChat{opts.Chat}
	life, end := context.WithCancelCause(context.Background())
	e := &Engine{
		opts: opts, log: opts.Logger,
		life: life, end: end,
		conversations: make(map[orchestrator.ConversationID]*conversation),
	}
	e.approvals = approval.New(approval.Options{
		Store: opts.Store, Agents: heldAgents{opts.Gateway, e}, Screen: opts.Screen, Approvers: opts.Approvers, Timeout: opts.ApprovalTimeout,
		Protected: opts.Protected, Files: opts.Files, Enter: e.enter,
		Now: opts.Now, After: opts.After, NewID: opts.NewID, Logger: opts.Logger,
	})
	e.Approvals = e.approvals
	e.runner = turn.NewRunner(turn.Options{
		Store: opts.Store, Gateway: opts.Gateway, Tracer: opts.Tracer, Snapshots: opts.Snapshots, Approvals: e.approvals,
		Breakers: opts.Breakers, Summarizer: opts.Summarizer, Owner: opts.Owner, Later: opts.Jobs != nil,
		Settings: e.turnSettings, Secrets: e.secretsOf, Project: e.projectOf,
		Life: life, Spawn: e.wg.Go, Lang: opts.Lang, Now: opts.Now, Log: opts.Logger,
	})
	return e
}

func (e *Engine) now() time.Time { return e.opts.Now() }

// Close stops taking turns from the queues, gives running ones until ctx ends to finish, then interrupts
// them and waits until their conversations were told. Queued turns stay queued in the store.
func (e *Engine) Close(ctx context.Context) {
	done := e.shut()
	select {
	case <-done:
	case <-ctx.Done():
		e.end(orchestrator.ErrShutdown)
		<-done
	}
	e.end(orchestrator.ErrShutdown)
}

// Detach is Close for a restart: it detaches what runs at once, which goes on,
// for Recover of the next one to take up. It waits for the chat to show how far the turns are until ctx ends.
func (e *Engine) Detach(ctx context.Context) {
	done := e.shut()
	e.end(cli.ErrDetached)
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// shut takes no more turns. The channel is closed when those that run are over.
func (e *Engine) shut() <-chan struct{} {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	done := make(chan struct{})
	go func() { e.wg.Wait(); close(done) }()
	return done
}

// conversation gives a conversation for a user's request. It fails once the engine is closed.
func (e *Engine) conversation(id orchestrator.ConversationID) (*conversation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, orchestrator.ErrShutdown
	}
	c := e.conversations[id]
	if c == nil {
		c = &conversation{e: e, id: id, showing: map[cli.TurnID]context.CancelCauseFunc{}, shown: closedChannel()}
		e.conversations[id] = c
	}
	return c, nil
}

// open says whether turns may still start, and counts the caller's goroutine if so.
func (e *Engine) open() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.wg.Add(1)
	return true
}

// enter is open for who is told what to call at its end.
func (e *Engine) enter() (leave func(), ok bool) { return e.wg.Done, e.open() }
