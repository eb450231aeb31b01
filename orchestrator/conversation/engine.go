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

// Options configures an Engine. Store, Gateway and Chat are required.
type Options struct {
	Store     orchestrator.Store
	Gateway   orchestrator.Gateway
	Tokens    side.Tokens         // needed for log-ins with a token
	Tracer    orchestrator.Tracer // nil: turns are not traced
	Chat      orchestrator.Chat
	Viewers   *orchestrator.Viewers   // nil: none
	Orders    orchestrator.OrderStore // nil: SubmitOrder returns an error
	Snapshots orchestrator.Snapshots  // nil: file changes are not recorded
	Disk      orchestrator.Disk       // the disk of Store; nil: unknown, so failed writes are retried after a pause
	// Sandboxes decides where agents run. If it is nil, agents run on this host, and the engine refuses orders for a
	// sandbox.
	Sandboxes orchestrator.Sandboxes

	TurnOptions                    // used if Live is nil
	Live        func() TurnOptions // called for each turn

	Dir         string   // for conversations without a directory; absolute
	Roots       []string // /cwd may enter these directories and everything below them; absolute
	AddDirs     []string // further directories that agents may use; absolute
	Roles       Roles    // nil: none
	Instruction string   // appended to the system prompt of every turn; may be empty
	UploadsDir  string   // has a folder for each conversation, which its agent may read; may be empty
	// Protected are ductor's own files and directories, absolute and with links resolved. No rule allows a request that
	// touches one of them; a user must decide.
	Protected []string
	// Files returns access to the files of a sandbox, for approvals.
	Files func(in cli.Sandbox) (approval.Files, error)
	// Servers returns the tool servers for an agent of a conversation in an environment.
	Servers func(in orchestrator.ConversationID, agent orchestrator.AgentEnv) []cli.ToolServer
	// OwnersServers returns the owner's MCP servers that the agent of a request gets, and all others. wanted reports
	// whether the turn should have a server. OwnersServers is nil if the owner configured none.
	OwnersServers func(ctx context.Context, req cli.Request, wanted func(name string) bool) ([]cli.ToolServer,
		[]cli.AbsentServer)
	// Secrets returns the secrets of a directory and its agents, which must not be shown or stored. It may be nil.
	Secrets func(dir string) *secrets.Set

	// QuietHour reports whether a time is in the quiet hours. Then the message at the end of a turn makes no sound. nil
	// means no quiet hours.
	QuietHour func(at time.Time) bool

	Budgets *spending.Budgets // nil: none

	// Summarizer summarizes history that does not fit. If it is nil, ductor shortens the history instead. If it has no
	// Model, ductor uses it only if a user asks for a summary.
	Summarizer *handoff.Summarizer
	Shorten    side.Shortener // shortens long results of jobs
	// DeliveryWait limits how long the next turn waits until the chat shows the previous turn. It is also the first
	// pause before ductor retries a failed delivery or write.
	DeliveryWait time.Duration
	OnFailure

	// Screen shows approvals. If it is nil, ductor denies all requests without asking a user.
	Screen orchestrator.ApprovalScreen
	// Approvers returns the users who may decide the requests of a user's turn in a group. If it is nil, that user
	// decides. In a private chat the user of the chat always decides.
	Approvers       func(in orchestrator.ConversationID, approvals orchestrator.PersonID) []orchestrator.PersonID
	ApprovalTimeout time.Duration // after this time a request is denied; 0 means DefaultApprovalTimeout

	Lang *lang.Choices // languages of failures and notices

	Now func() time.Time
	// After calls f once, after d. stop cancels the call. nil means time.AfterFunc.
	After  func(d time.Duration, f func()) (stop func() bool)
	NewID  func() string
	Logger *slog.Logger
}

// TurnOptions configures how turns run. The options may change between two turns.
type TurnOptions struct {
	Permissions
	Sessions
	turn.Recovery
	Agents   map[cli.Agent]orchestrator.AgentDefaults
	Projects []orchestrator.ProjectPolicy
	Settings orchestrator.Settings // for conversations without settings
	LongTurn time.Duration         // a longer turn ends with a notification; 0 means a minute
	QueueMax int                   // most waiting turns of a conversation
}

// Permissions configures what agents may do without asking.
type Permissions struct {
	// Mode applies to conversations in which no user chose a mode.
	Mode         cli.PermissionMode `toml:"mode" default:"ask" check:"plan|ask|accept-edits|auto|bypass"`
	AllowedTools []string           `toml:"allowed_tools"`
	DeniedTools  []string           `toml:"denied_tools"`
	AskTimeout   time.Duration      `toml:"ask_timeout" default:"30m" check:"10s..168h" applies:"after a restart"`
	Approvers    string             `toml:"approvers" default:"sender" check:"sender|members"` // who approves in groups
}

// Sessions configures when a session ends, and how much of it ductor shows to a new agent.
type Sessions struct {
	IdleReset time.Duration `toml:"idle_reset" check:"0..87600h"` // for unused sessions; 0: never
	// DailyReset is a time such as "04:00". The next turn does not resume a session that was last used before this time
	// of the current day. If it is empty, sessions have no daily reset.
	DailyReset    string `toml:"daily_reset"`
	HandoffTokens int    `toml:"handoff_tokens" default:"8000" check:"0..1000000"` // most tokens of history
	SummaryModel  string `toml:"summary_model" applies:"after a restart"`          // a model such as "claude/haiku"
	DefaultRole   string `toml:"default_role"`
}

// Check implements config.checker.
func (s Sessions) Check(problem func(key, format string, args ...any)) {
	if _, err := time.Parse("15:04", s.DailyReset); err != nil && s.DailyReset != "" {
		problem("daily_reset", `%q should be a time of day such as "04:00", or empty for never`, s.DailyReset)
	}
}

// turns returns the current TurnOptions.
func (e *Engine) turns() TurnOptions {
	p := e.opts.TurnOptions
	if e.opts.Live != nil {
		p = e.opts.Live()
	}
	if p.LongTurn <= 0 {
		p.LongTurn = time.Minute
	}
	p.Settings.Notify, p.Settings.Think = cmp.Or(p.Settings.Notify, orchestrator.NotifyLong),
		cmp.Or(p.Settings.Think, orchestrator.ThinkOff)
	p.Settings.Display = cmp.Or(p.Settings.Display, orchestrator.DisplayPlain)
	return p
}

// turnSettings returns the settings for turns that start now.
func (e *Engine) turnSettings() turn.Settings {
	now := e.turns()
	return turn.Settings{Agents: now.Agents, HandoffTokens: now.HandoffTokens, Recovery: now.Recovery}
}

// OnFailure configures how ductor reacts to a turn that failed before its agent ran anything.
type OnFailure struct {
	// Owner gets the codes for agent log-ins in the private chat. 0 disables log-ins from a chat.
	Owner    orchestrator.PersonID
	Jobs     orchestrator.Jobs // for LimitWait and ActionLater; nil disables both
	Breakers *circuit.Breakers // pause agents that fail often; nil: none
}

// Roles are the configured roles. They may change at any time. internal/roles implements it.
type Roles interface {
	// Role returns a role by its name, or false.
	Role(name string) (orchestrator.Role, bool)
	// Names lists the names of all roles, sorted.
	Names() []string
}

// DefaultApprovalTimeout limits the time that users have for a decision.
const DefaultApprovalTimeout = 30 * time.Minute

// Engine runs conversations. Safe for concurrent use; different conversations never wait for each other.
type Engine struct {
	orchestrator.Approvals // for the users' decisions
	*side.LoginDesk
	approvals *approval.Service
	runner    *turn.Runner
	opts      Options
	log       *slog.Logger

	life    context.Context // parent of the contexts of turns; cancelled with ErrShutdown
	endLife context.CancelCauseFunc
	wg      sync.WaitGroup

	mu            sync.Mutex
	conversations map[orchestrator.ConversationID]*conversation
	closed        bool
}

// New creates an Engine. Call Recover to continue the work of the previous process, and Close at the end.
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
		life: life, endLife: end,
		conversations: make(map[orchestrator.ConversationID]*conversation),
	}
	e.approvals = approval.New(approval.Options{
		Store: opts.Store, Agents: heldAgents{opts.Gateway, e}, Screen: opts.Screen, Approvers: opts.Approvers,
		Timeout:   opts.ApprovalTimeout,
		Protected: opts.Protected, Files: opts.Files, Enter: e.enter,
		Now: opts.Now, After: opts.After, NewID: opts.NewID, Logger: opts.Logger,
	})
	e.Approvals = e.approvals
	e.LoginDesk = side.NewLoginDesk(side.LoginOptions{
		Gateway: opts.Gateway, Chat: opts.Chat, Owner: opts.Owner, Tokens: opts.Tokens, Place: e.placeOf, Life: life,
		Client: side.Client{Gateway: opts.Gateway, NewID: opts.NewID, Budgets: opts.Budgets, Secrets: opts.Secrets},
		Enter:  e.enter, Lang: opts.Lang, Log: opts.Logger,
	})
	e.runner = turn.NewRunner(turn.Options{
		Store: opts.Store, Gateway: opts.Gateway, Tracer: opts.Tracer, Snapshots: opts.Snapshots,
		Approvals: e.approvals,
		Breakers:  opts.Breakers, Summarizer: opts.Summarizer, Owner: opts.Owner, Later: opts.Jobs != nil,
		Settings: e.turnSettings, Secrets: e.secretsOf, Project: e.projectOf,
		Life: life, Spawn: e.wg.Go, Lang: opts.Lang, Now: opts.Now, Log: opts.Logger,
	})
	return e
}

func (e *Engine) now() time.Time { return e.opts.Now() }

// Close starts no more queued turns and lets running turns finish. When ctx ends, it interrupts the turns that still
// run, and waits until their chats show the end. Queued turns stay in the store.
func (e *Engine) Close(ctx context.Context) {
	done := e.shut()
	select {
	case <-done:
	case <-ctx.Done():
		e.endLife(orchestrator.ErrShutdown)
		<-done
	}
	e.endLife(orchestrator.ErrShutdown)
}

// Detach is Close for a restart. It detaches from running turns immediately. These turns continue, and Recover of the
// next process takes them over. Detach waits until the chat shows the current state of the turns, but not longer than
// ctx.
func (e *Engine) Detach(ctx context.Context) {
	done := e.shut()
	e.endLife(cli.ErrDetached)
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// shut stops accepting turns. The returned channel is closed when all running turns are over.
func (e *Engine) shut() <-chan struct{} {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	done := make(chan struct{})
	go func() { e.wg.Wait(); close(done) }()
	return done
}

// conversation returns a conversation for a user's request. It fails once the engine is closed.
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

// open reports whether turns may still start. If so, open also counts the caller's goroutine in wg.
func (e *Engine) open() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.wg.Add(1)
	return true
}

// enter calls open. leave is the function that the caller must call at its end.
func (e *Engine) enter() (leave func(), ok bool) { return e.wg.Done, e.open() }
